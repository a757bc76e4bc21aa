"""The configs that were composed."""

from collections.abc import Iterator

from amt_hydra.checks.base import Check, Finding, Subject
from amt_hydra.commands import quote


class ConfigsCount(Check):
    """Configs of your own count: none has the name of one that is looked for first.

    Shipped options cannot be shadowed, so that `precision=bf16` means the same everywhere; a file of that name would be
    edited without effect.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Name each file that is passed over."""
        for file in subject.shadowed:
            renamed = file.with_stem(f"my_{file.stem}")
            yield self.warning(
                f"{file} is not used: there is a config of that name already",
                f"give it a name of its own: mv {quote(str(file))} {quote(str(renamed))}",
            )
