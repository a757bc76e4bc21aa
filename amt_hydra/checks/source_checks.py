"""The repository's own source: what makes its train.py die, or a W&B run mixed up."""

import sys
from collections.abc import Iterator, Sequence

from amt_hydra.checks.base import Check, Finding, Subject
from amt_hydra.checks.identity_checks import IdentityHolds
from amt_hydra.resolve import wandb_mode
from amt_hydra.settings import NOT_ONLINE


class TrainStarts(Check):
    """train.py can start: it uses nothing that is not there.

    Forks break: an argument that is read and no flag defines, a logger that is None by now and used two lines
    on. Each is an exception a minute after the start, on the node, after the queue.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Name each use that dies."""
        for name, place in subject.repository.undefined.items():
            yield self.error(
                f"train.py dies at {place}: it reads args.{name}, which no flag defines",
                f"define it there, or take the line out: $EDITOR +{place.line} {place.file}",
            )
        for place, words in subject.repository.unparsed.items():
            ours = subject.versions.python is None or subject.versions.python[:2] == sys.version_info[:2]
            text = f"train.py dies at {place}: it does not parse: {words}"
            edit = f"$EDITOR +{place.line} {place.file}"
            yield self.error(text, edit) if ours else self.warning(f"{text} (Python {_dotted(sys.version_info)})", edit)
        if not subject.repository.trains:
            yield self.warning(
                f"nothing in {subject.repository.train}, nor in what it imports, calls .fit(…): it may train nothing"
            )
        for broken in subject.repository.broken:
            yield self.error(
                f"train.py dies at {broken.used}: {broken.expression}, which is None since {broken.none}",
                f"mend either line: $EDITOR +{broken.used.line} {broken.used.file}",
            )


def _dotted(version: Sequence[object]) -> str:
    return ".".join(map(str, version[:2]))


class WandbRunFresh(Check):
    """A W&B run is gone on with on a resume only.

    This family's W&B run has the exp_id as its id. A fresh run under an old id is appended to the old curves, and W&B
    drops every row whose step it has already.
    """

    requires = (IdentityHolds,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look for an earlier run of the experiment, where this one goes to W&B and is no resume."""
        mode = wandb_mode(subject.settings, subject.channels, subject.machine)
        online = subject.settings.logger.kind == "wandb" and mode not in NOT_ONLINE
        if not online or subject.identity.actual == "resume" or "WandbLogger" not in subject.repository.loggers:
            return
        if subject.plan.moved_to is not None:
            yield self.warning(
                f"the W&B run {subject.settings.exp_id!r} may be there already: a {subject.identity.actual} run under "
                "its id is appended to it, and rows of steps that it has are dropped",
                f"an id of its own: {subject.typed.changed(f'exp_id={subject.state.unused}', drop=['init.overwrite'])}",
            )
