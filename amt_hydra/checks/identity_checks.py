"""Identity and checkpoints."""

from collections.abc import Iterator

from amt_hydra.checks.base import Check, Finding, Subject
from amt_hydra.commands import quote
from amt_hydra.runstate import describe


class IdentityHolds(Check):
    """The run is what it was declared to be.

    A run that starts under another identity than meant costs days: a resume that was a scratch run, a fresh run that
    went on from old weights. So the two are compared, and nothing starts where they differ.
    """

    ignorable = False

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Report the refusal."""
        if subject.identity.refusal:
            yield self.error(subject.identity.refusal.message, *subject.identity.refusal.ways)


class LastIsCurrent(Check):
    """last.ckpt is the newest checkpoint, and a real copy.

    One that froze, on a plateau or beside last-v1.ckpt, loses steps; a link breaks when its target is pruned or the
    folder is copied, and then everything is lost.
    """

    requires = (IdentityHolds,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare it with the other checkpoints of the experiment."""
        last, newest = subject.state.last, subject.state.newest
        if last is None or subject.settings.init.mode != "resume":
            return
        if last.link is not None:
            yield self.warning(
                f"{last.path} is a link to {last.link}; it breaks when that is pruned",
                f"cp --remove-destination {quote(str(last.link))} {quote(str(last.path))}",
            )
        if newest and last.global_step is not None and (newest.global_step or 0) > last.global_step:
            quoted = [quote(str(p)) for p in (last.path, last.path.with_name("last.ckpt.old"), newest.path)]
            yield self.warning(
                f"last.ckpt is at global_step {last.global_step}, but {describe(newest)} is newer: "
                f"{(newest.global_step or 0) - last.global_step} steps would be trained again",
                f"mv {quoted[0]} {quoted[1]} && cp {quoted[2]} {quoted[0]}",
            )


class LeftoverSwitches(Check):
    """AMT_* switches of the shell are shown.

    A variable exported last week still counts today, and nobody remembers it.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Name each that train.py will see."""
        for name, value in subject.leftovers.items():
            yield self.info(f"{name}={value} is set in this shell and reaches train.py", f"unset {name}")


class ExperimentFree(Check):
    """Nobody else is training this experiment.

    Two runs in one checkpoint folder overwrite each other's last.ckpt.
    """

    ignorable = False

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Report who holds the lock."""
        if subject.locked:
            yield self.error(
                f"{subject.settings.exp_id} is being trained: {subject.locked}",
                "wait for it"
                if subject.settings.init.mode == "resume"
                else f"wait for it, or train another: {subject.typed.changed(f'exp_id={subject.state.unused}')}",
                f"if it is surely gone: rm {quote(str(subject.plan.place.lock))}",
            )
