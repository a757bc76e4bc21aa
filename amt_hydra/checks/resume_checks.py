"""A run against the one that it goes on with, or whose weights it takes."""

from collections.abc import Iterator, Sequence

from amt_hydra import lazy
from amt_hydra.checkpoint import Xray
from amt_hydra.checks.base import Check, Finding, Subject
from amt_hydra.checks.identity_checks import IdentityHolds
from amt_hydra.drift import Drift, architecture, drifts, of_checkpoint, shown
from amt_hydra.extras import extra_dest
from amt_hydra.saved import alike, number
from amt_hydra.schedule import cosine, rates, restored_end
from amt_hydra.schema import leaves
from amt_hydra.settings import Settings


def _resumed(subject: Subject) -> Xray | None:
    return subject.state.last if subject.settings.init.mode == "resume" else None


class SettingsContinue(Check):
    """A resume goes on with the settings that the run had.

    A setting that was given then and is left out now falls back to its default: a run warmed up over 50 steps would go
    on as if over 500, with another learning rate at every step.
    """

    requires = (IdentityHolds,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare what changes the result with the last launch's record, else with what the checkpoint holds."""
        last = _resumed(subject)
        found = drifts(subject, last) if last is not None else []
        sure = [drift for drift in found if drift.judged]
        if last is not None and sure:
            models = any(drift.key.startswith("model.") for drift in sure)
            yield self.error(
                "; ".join(map(str, sure)),
                *as_before(subject, found),
                *(() if models else subject.ways.warmstart_from(last)),
                f"on purpose: {subject.typed.changed(f'checks.ignore.{type(self).__name__}=on purpose')}",
            )
        elif found:
            yield self.warning(f"{'; '.join(map(str, found))}", *as_before(subject, found))


class ArchitectureFits(Check):
    """The model is the one that the warm-start's checkpoint was trained with.

    Weights of another architecture are left out by name and shape, or are loaded into a model that reads other
    frames or tokens: empty output, and no error.
    """

    requires = (IdentityHolds,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare the settings of the model with those that the checkpoint holds."""
        init = subject.state.init if subject.settings.init.mode == "warmstart" else None
        found = architecture(subject, init) if init is not None else []
        if found:
            values = "; ".join(
                f"{d.key}={shown(d.now)}, but the checkpoint has {shown(d.before)} ({d.who})" for d in found
            )
            yield self.error(values, *as_before(subject, found, "as in the checkpoint"))


class LazyPartsFit(Check):
    """Parts of the model that a setting makes are in a resume's checkpoint, or left out of both.

    A true resume is strict about names: a checkpoint trained with pitch shift does not resume without it, and one
    without does not resume with it.
    """

    requires = (IdentityHolds,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare the checkpoint's tensors with the value that makes them."""
        last = _resumed(subject)
        for prefix, texts in subject.settings.repo.lazy.items() if last is not None else ():
            value = lazy.value_of(subject, texts)
            on = lazy.is_on(value)
            if last is None or not last.tensors or on is None or on is lazy.holds(last, prefix):
                continue
            has = "no tensor" if on else "tensors"
            yield self.error(
                f"{last.path.name} holds {has} of {prefix}.*, and this run's value for it is {shown(value)}: a resume "
                "is strict about names, and dies at its start",
                f"as in the checkpoint: {lazy.switched(subject, texts, last, on=not on)}",
                *subject.ways.warmstart_from(last),
            )


class RestoredOnResume(Check):
    """A setting that a resume brings back from the checkpoint is not given anew.

    Lightning restores optimizer and schedule: a learning rate given on a resume is shown everywhere and has no effect.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Name each that was asked for, with what the checkpoint holds."""
        last = subject.state.last
        if subject.identity.actual != "resume" or last is None:
            return
        base, now = rates(last)
        for key, leaf in leaves(Settings).items():
            decision = subject.decision(key)
            value = decision.value
            if leaf.meta.get("kind") != "restored" or not decision.origin.asked or value is None:
                continue
            held = base if key == "optimizer.lr" else []
            if any(alike(value, rate) for rate in held):
                continue
            holds = f", which has {_listed(held)} (at {_listed(now)} by now)" if held else ""
            way = [f"leave it out: {subject.typed.changed(drop=[key])}"] if subject.typed.sets(key) else []
            yield self.warning(f"{key}={value} has no effect on a resume: it comes back from last.ckpt{holds}", *way)


class ScheduleReaches(Check):
    """The learning-rate schedule that a resume goes on with reaches to the end of the run.

    A cosine comes back with the length that it had. Raise max_steps, and from its end on the learning rate climbs
    again; where the length follows max_steps instead, the rate jumps up at once.
    """

    requires = (IdentityHolds,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare the end of the schedule with max_steps."""
        last, goal = _resumed(subject), subject.whole_number("max_steps")
        if last is None or last.global_step is None or goal is None:
            return
        end, to = restored_end(last), "on and on" if goal == -1 else f"to step {goal}"
        if end is not None:
            if goal == -1 or goal > end.step:
                after = (
                    "the learning rate climbs again" if end.beyond == "climbs" else "the scheduler raises ValueError"
                )
                yield self.warning(
                    f"max_steps={goal}, but the schedule comes back from last.ckpt with its end at step {end.step} "
                    f"({end.read}): after it, {to}, {after}{_standing(last)}",
                    *_shorter(subject, last, end.step),
                    *_afresh(subject, last),
                )
            elif goal < end.step and end.beyond == "climbs":
                left = cosine(goal, end.step)
                yield self.info(
                    f"max_steps={goal}, but the schedule comes back from last.ckpt with its end at step {end.step} "
                    f"({end.read}): the run ends with the learning rate at some {left:.0%} of its base",
                    f"to the end of the schedule: {subject.typed.changed(f'max_steps={end.step}')}",
                )
            return
        old = _length(subject, last)
        if "cosine" in str(subject.effective("optimizer.scheduler")).lower() and old is not None and goal > old:
            before, after_all = (f"{cosine(last.global_step, length):.0%}" for length in (old, goal))
            yield self.warning(
                f"max_steps={goal}, but the run so far went to {old}: where the cosine's length follows max_steps, the "
                f"learning rate climbs at step {last.global_step} from some {before} of its base to {after_all}",
                *_shorter(subject, last, old),
                *_afresh(subject, last),
            )


def as_before(subject: Subject, found: Sequence[Drift], label: str = "as before") -> list[str]:
    """The command with all the old values at once; what no command changes is a line to edit."""
    words: list[str] = []
    dropped: list[str] = []
    lines: list[str] = []
    for drift in found:
        channel = subject.channels.get(drift.key)
        spelt = [key for key in _spellings(subject, drift.key) if subject.typed.sets(key)]
        dropped += spelt
        if channel is not None and channel.carrier is None and channel.place is not None:
            lines.append(f"write {shown(drift.before)} at {channel.place}")
        elif drift.before is not None or not spelt:
            words.append(f"{drift.key}={shown(drift.before)}")
    return [*([f"{label}: {subject.typed.changed(*words, drop=dropped)}"] if words or dropped else []), *lines]


def _spellings(subject: Subject, key: str) -> list[str]:
    """The keys under which it may have been typed: flags as on train.py's own command line too."""
    head, _, name = key.partition("extra.flags.")
    if head or not name:
        return [key]
    return [f"extra.flags.{one}" for one in subject.settings.extra.flags if extra_dest(one) == name]


def _length(subject: Subject, last: Xray) -> int | None:
    """The max_steps that the run so far had."""
    held = of_checkpoint(subject, last).get("max_steps")
    steps = number(subject.state.earlier.get("max_steps")) or (number(held.value) if held else None)
    return int(steps) if steps is not None and steps > 0 else None


def _shorter(subject: Subject, last: Xray, end: int) -> list[str]:
    return [f"to its end: {subject.set_to('max_steps', end)}"] if end > (last.global_step or 0) else []


def _afresh(subject: Subject, last: Xray) -> list[str]:
    """A schedule of its own takes a warm-start: a constant one does not even load the state of a cosine."""
    constant = "optimizer.scheduler=constant"
    ways = list(subject.ways.warmstart_from(last))
    channel = subject.channels.get("optimizer.scheduler")
    if channel is None or channel.carrier is None:
        return ways
    again = subject.ways.warmstart_from(last, *subject.ways.elsewhere(), constant)
    return [*ways, *(f"the same with a constant rate: {way.partition(': ')[2]}" for way in again)]


def _standing(last: Xray) -> str:
    now = rates(last)[1]
    return f"; it stands at {_listed(now)}" if now else ""


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
