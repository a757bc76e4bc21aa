"""Settings against the repository: does each reach it, and does it fit."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import NoneType

from amt_hydra.checks.base import Check, Finding, Subject
from amt_hydra.documented import documented
from amt_hydra.errors import nearest
from amt_hydra.mapping import Channel
from amt_hydra.plan import differs
from amt_hydra.schema import leaves
from amt_hydra.settings import Settings
from amt_hydra.unkept import Unkept

PRECISIONS = (
    *("transformer-engine", "transformer-engine-float16", "16-true", "16-mixed", "bf16-true", "bf16-mixed"),
    *("32-true", "64-true", "64", "32", "16", "bf16"),
)
"""What Lightning takes: _PRECISION_INPUT of lightning/fabric/plugins/precision/precision.py, compared exactly."""
_NAME_MEANS = "name its means in conf/repo/<kind>.yaml"


class SettingReaches(Check):
    """Every setting that was asked for reaches the repository.

    A setting shown is the setting used: one that no flag or variable carries would train with the repository's value.
    """

    ignorable = False

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Report each that does not; those of one section that share a reason (an option's keys, say) in one go."""
        together: dict[tuple[str, str], list[Unkept]] = {}
        for lost in _unkept(subject, "unreached"):
            if lost.asked:
                together.setdefault((lost.key.rpartition(".")[0], lost.message), []).append(lost)
        for (section, message), group in together.items():
            named = ", ".join(f"{lost.key}={lost.value}" for lost in group)
            it = "it" if len(group) == 1 else "them"
            ways = [f"leave {it} to the repository: {_left(subject, section, group)}"]
            if not subject.settings.repo.bridge and all(map(subject.has_means, (lost.key for lost in group))):
                ways.append(f"by the bridge: {subject.typed.changed('repo.bridge=true')}")
            yield self.error(f"{named}: {message}", *ways)


class DefaultKept(Check):
    """Documented defaults that the repository cannot be told are named.

    They are conventions, not wishes of this run, so they are shown beside what the repository does.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Report each."""
        for lost in (*_unkept(subject, "unreached"), *_unkept(subject, "misfit")):
            if not lost.asked:
                yield self.warning(f"documented default {lost.key}={lost.value} is not kept: {lost.message}")


class ValueFits(Check):
    """Every value is one that its flag takes.

    argparse would refuse it too, but only after the start, on the node, after the queue.
    """

    ignorable = False

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Report each that does not fit."""
        for lost in _unkept(subject, "misfit"):
            if lost.asked:
                yield self.error(f"{lost.key}={lost.value}: {lost.message}", *_fitting(subject, lost))


class PrecisionKnown(Check):
    """The precision is one that Lightning knows.

    It is passed on as it is, and refused only when the trainer is made, after all imports.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look the name up; a repository whose flag lists its own names is judged by those."""
        name = subject.decision("precision.name").value
        if name is None or name in PRECISIONS or _choices(subject.channels.get("precision.name")):
            return
        yield self.error(
            f"precision.name={name}: Lightning knows no such precision; valid are {', '.join(PRECISIONS)}",
            *(subject.typed.changed(f"precision={option}") for option in ("bf16", "fp16", "fp32")),
        )


class DataHomeExists(Check):
    """The folder of the data set is there.

    Its absence is noticed only when the data set is read, after the start-up.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look for the folder that was asked for, and for the one that the bundled `folder` preset reads."""
        decision, home = subject.decision("data.home"), subject.effective("data.home")
        asked = decision.value is not None and decision.origin.asked
        needed = subject.settings.repo.kind == "reference" and subject.settings.data_presets.name == "folder"
        if not (asked or needed) or not isinstance(home, str | Path):
            return
        folder = Path(os.path.realpath(subject.repository.cwd / home))
        if not os.path.isdir(folder):  # noqa: PTH112 # Path.is_dir raises for a name that is too long
            way = f"give a folder that exists: {subject.typed.changed(drop=['data.home'])} data.home=<folder>"
            yield self.error(f"data.home={home}: {folder} is no folder", way)


class FeatureImplemented(Check):
    """A feature is switched on only where the repository implements it.

    DeepSpeed offload, RL branches and dynamic dataset weighting exist in some forks; elsewhere the switch would be
    silently without effect.
    """

    ignorable = False

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Report each that is not found."""
        for lost in _unkept(subject, "feature"):
            yield self.error(f"{lost.key}=true: {lost.message}", subject.typed.changed(lost.fix), _NAME_MEANS)


class ExtraFlagExists(Check):
    """extra.flags names flags that train.py has, and no setting of its own carries.

    Abbreviations and near misses are not relied on.
    """

    ignorable = False

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Report each that does not, and each that train.py parses and never reads."""
        for lost in _unkept(subject, "flag"):
            yield self.error(f"{lost.key}: {lost.message}", lost.fix)
        for lost in _unkept(subject, "dead"):
            yield self.warning(
                f"{lost.key}: {lost.message}, so it has no effect", subject.typed.changed(drop=[lost.key])
            )


class PresetExists(Check):
    """The data preset is a key of the repository's data_presets.py.

    A name that is not dies late, after the start-up.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look the name up, and propose the nearest."""
        name, presets = subject.settings.data_presets.name, subject.repository.presets
        if name is None or name in presets:
            return
        close, file = nearest(name, list(presets)), subject.repository.presets_file
        if close:
            fix = f"did you mean data_presets={close}?"
        elif presets:
            fix = f"there are: {', '.join(sorted(presets))}"
        else:
            unread = "none can be read there" if file else "there is no data_presets.py"
            passing = subject.typed.changed("checks.ignore.PresetExists=it is there all the same")
            fix = f"{unread}; checks.ignore.PresetExists lets the name pass: {passing}"
        where = file or "the repository (it has no data_presets.py)"
        yield self.error(f"data_presets={name}: {where} has no such preset", fix)


class DocumentedDefaults(Check):
    """A value that leaves a documented default is shown beside it, with the reason for the default.

    It is no error: it is what somebody reading the run a month later wants to know.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Report each that differs."""
        named = {lost.key for lost in subject.plan.unkept}  # with all there is to say, by other checks
        for decision in subject.plan.decisions:
            if differs(decision) and decision.key not in named:
                entry = documented()[decision.key]
                value = decision.value if decision.value is not None else decision.own
                who = f"{decision.origin.who}: {decision.origin.where}"
                yield self.info(
                    f"{decision.key}={value} instead of {entry.value} ({who}); the default's reason: {entry.reason}"
                )


class IgnoresAreKnown(Check):
    """checks.ignore names checks that exist, may be ignored, and says why.

    A typo there would leave a finding standing, or hide the wrong one.
    """

    ignorable = False

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Report each entry that is wrong."""
        from amt_hydra.checks import CHECKS

        known = {check.__name__: check for check in CHECKS}
        for name, reason in subject.settings.checks.ignore.items():
            if name not in known:
                close = nearest(name, list(known))
                fix = f"did you mean checks.ignore.{close}?" if close else "python -m amt_hydra conventions lists them"
                yield self.error(f"checks.ignore.{name}: there is no such check", fix)
            elif not known[name].ignorable:
                yield self.error(f"checks.ignore.{name}: this check cannot be ignored: {known[name].title()}")
            elif not reason.strip():
                yield self.error(f"checks.ignore.{name}: give the reason", f'checks.ignore.{name}="why"')


def _fitting(subject: Subject, lost: Unkept) -> list[str]:
    """The command with the nearest of the flag's choices, else with the value left to the repository."""
    if lost.fix:
        return [subject.typed.changed(lost.fix)]
    close = nearest(str(lost.value), _choices(subject.channels.get(lost.key)))
    if close:
        return [f"the nearest: {subject.typed.changed(f'{lost.key}={close}')}"]
    leaf = leaves(Settings).get(lost.key)  # none of extra.flags.x, which knows null too
    if leaf is None or leaf.accepts(NoneType):
        return [f"leave it to the repository: {subject.typed.changed(f'{lost.key}=null')}"]
    return []


def _left(subject: Subject, section: str, group: Sequence[Unkept]) -> str:
    """The command that leaves settings to the repository: without the option, where it set them all and no other."""
    keys = {lost.key for lost in group}
    asked = {
        d.key
        for d in subject.plan.decisions
        if d.key.startswith(f"{section}.") and d.origin.asked and d.value is not None
    }
    whole = bool(section) and subject.typed.sets(section) and not any(subject.typed.sets(key) for key in keys)
    if whole and len(group) > 1 and asked <= keys:
        return subject.typed.changed(drop=[section])
    fixed = [lost.fix for lost in group if lost.fix]
    return subject.typed.changed(*fixed, drop=[lost.key for lost in group if not lost.fix])


def _choices(channel: Channel | None) -> list[str]:
    """What a flag lists as its values, where it does."""
    choices = channel.flag.choices if channel and channel.flag else None
    return [str(choice) for choice in choices] if isinstance(choices, tuple) else []


def _unkept(subject: Subject, kind: str) -> list[Unkept]:
    return [lost for lost in subject.plan.unkept if lost.kind == kind]
