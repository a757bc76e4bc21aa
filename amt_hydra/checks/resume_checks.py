"""A resume against the run that it goes on with."""

from collections.abc import Iterator

from amt_hydra.checks.base import Check, Finding, Subject
from amt_hydra.checks.identity_checks import IdentityHolds
from amt_hydra.schema import leaves
from amt_hydra.settings import Settings
from amt_hydra.unkept import same


class SettingsContinue(Check):
    """A resume goes on with the settings that the run had.

    A setting that was given then and is left out now falls back to its default: a run warmed up over 50 steps would go
    on as if over 500, with another learning rate at every step.
    """

    requires = (IdentityHolds,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare the keys that change the result with those of the last launch's record."""
        for key, leaf in leaves(Settings).items():
            before = subject.state.earlier.get(key)
            if leaf.meta["kind"] != "identity" or leaf.is_map or before is None or key == "init.ckpt":
                continue
            now = subject.effective(key)
            if not same(before, now):
                yield self.warning(
                    f"{key}={now}, but the run so far had {before}",
                    f"as before: {subject.typed.changed(f'{key}={before}')}",
                )
