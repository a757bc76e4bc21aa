"""What is installed for train.py: what its versions mean for this run, and what the plan does about it."""

import sys
from collections.abc import Iterator
from pathlib import Path

from amt_hydra import version_rules as rules
from amt_hydra.bridged import loads_openly
from amt_hydra.checkpoint import Xray
from amt_hydra.checks.base import Check, Finding, Subject
from amt_hydra.checks.identity_checks import IdentityHolds
from amt_hydra.checks.machine_checks import InterpreterRuns
from amt_hydra.version_rules import Last

_LAST: dict[Last, str] = {
    "link": "makes last.ckpt a link to a top-k checkpoint: it breaks when that is pruned, and freezes on a plateau",
    "frozen": "writes last.ckpt beside a top-k save only: on a plateau it freezes, and a resume loses the steps since",
}


class VersionsKnown(Check):
    """Python and Lightning, as the repository's own interpreter has them, are versions that this run works with.

    The launcher and the training may live in different environments: what counts is what train.py will import.
    """

    requires = (InterpreterRuns,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Judge the Python and the Lightning; name them where they are not those beside us."""
        versions, bridge = subject.versions, subject.plan.bridge
        if versions.python is None:
            yield self.info(f"what is installed for {subject.python} is not known: {versions.source}")
            return
        if bridge is not None and rules.too_old(versions):
            yield self.error(
                f"{subject.python} is Python {_dotted(versions.python)}, and the bridge needs "
                f"{_dotted(rules.OLDEST_PYTHON)}",
                f"another interpreter: {subject.typed.changed('repo.python=<python>')}",
                f"without it: {subject.typed.changed('repo.bridge=false')}",
            )
        found = rules.lightning(versions, subject.repository.lightning)
        if found is None:
            return
        yield from self._of_lightning(subject, *found)
        if subject.python != Path(sys.executable):
            names = ", ".join(f"{name} {version}" for name, version in versions.packages.items())
            yield self.info(f"train.py gets Python {_dotted(versions.python)}, {names} ({versions.source})")

    def _of_lightning(self, subject: Subject, name: str, number: rules.Release) -> Iterator[Finding]:
        precision = subject.effective("precision.name")
        old = rules.old_precision(number, precision)
        if old is not None:
            yield self.error(
                f"precision {precision}: {name} {_dotted(number)} spells it {old!r}, and refuses the newer spelling",
                subject.set_to("precision.name", old),
            )
        if subject.plan.bridge is not None and rules.untested(number):
            yield self.warning(
                f"{name} {_dotted(number)}: the bridge was tried with {_dotted(rules.OLDEST)} to "
                f"{_dotted(rules.NEWEST)}; it refuses where what it patches is not there"
            )


class LastIsWritten(Check):
    """last.ckpt is written as a real copy of the newest state, whatever Lightning is installed.

    save_last=True means a copy at each validation, a link (2.1), or a copy beside a top-k save only (2.6 and newer).
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Say what it means here, and what is done about it."""
        wanted = subject.effective("checkpoint.save_last")
        found = rules.lightning(subject.versions, subject.repository.lightning)
        if found is None or wanted is None or wanted is False:
            return
        meaning = rules.last_is(found[1], wanted)
        if meaning == "copy" or subject.repository.saves:
            return
        text = f"{found[0]} {_dotted(found[1])} {_LAST[meaning]}"
        bridge = subject.plan.bridge
        if bridge is not None and "last" in bridge.capabilities:
            yield self.info(f"{text}; the bridge keeps it a real file, and current")
        else:
            yield self.warning(text, *_with_bridge(subject))


class LoadsAsIs(Check):
    """The checkpoint loads under torch's weights_only default.

    Since torch 2.6 a checkpoint with classes of its own is refused on load unless whoever loads it asks for otherwise.
    """

    requires = (IdentityHolds,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        """List the classes that would be refused, and who sees to it that they are not."""
        mode, state = subject.settings.init.mode, subject.state
        ray = {"scratch": None, "resume": state.last, "warmstart": state.init}[mode]
        by_fit = mode == "resume" and bool(subject.repository.resumes)
        takes = "last" if mode == "resume" else "init"
        if ray is None or ray.weights_only or (not by_fit and loads_openly(subject.repository, takes)):
            return
        imported = subject.repository.lightning
        refuses = rules.fit_refuses(subject.versions, imported) if by_fit else rules.torch_refuses(subject.versions)
        torch = f"torch {subject.versions.packages.get('torch', '2.6 and newer')}"
        if refuses is None:
            torch = "torch 2.6 and newer"
        text = f"{ray.path.name} holds {_refused(ray)}, which {torch} refuses by its weights_only default"
        if refuses is not False and _unpickled(subject):
            yield self.info(f"{text}; the bridge loads this one file without it")
        elif refuses is not False:
            ways = (*_with_bridge(subject), *_at_the_load(subject))
            yield (self.error if refuses else self.warning)(text, *ways)


def _unpickled(subject: Subject) -> bool:
    """Whether the bridge widens torch.load for the file."""
    added = subject.plan.bridge.capabilities if subject.plan.bridge is not None else {}
    return "unpickle" in added or any(added.get(name, {}).get("pickled") for name in ("resume", "warmstart"))


def _refused(ray: Xray) -> str:
    shown = ", ".join(ray.refused_globals[:5])
    return shown or f"the opcodes {', '.join(ray.refused_opcodes[:5])}"


def _with_bridge(subject: Subject) -> list[str]:
    return [] if subject.settings.repo.bridge else [f"by the bridge: {subject.typed.changed('repo.bridge=true')}"]


def _at_the_load(subject: Subject) -> list[str]:
    places = [load.place for load in subject.repository.start.loads if load.weights_only is None]
    return [f"pass weights_only=False at {place}" for place in places[:1]]


def _dotted(number: rules.Release) -> str:
    return ".".join(map(str, number))
