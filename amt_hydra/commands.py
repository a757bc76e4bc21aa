"""Commands to paste: what the user typed, changed in one respect."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

PROGRAM = "python -m amt_hydra"


@dataclass(frozen=True, slots=True)
class Typed:
    """The command line as it was typed: verb and overrides."""

    verb: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return render(self.verb, self.words)

    def changed(self, *new: str, drop: Sequence[str] = ()) -> str:
        """The same command with overrides replaced or added, and those of the keys in `drop` left out."""
        keys = {_key(word) for word in new} | set(drop)
        return render(self.verb, [*(w for w in self.words if _key(w) not in keys), *new])


def render(verb: str, words: Sequence[str]) -> str:
    """A command line for a POSIX shell."""
    return " ".join([PROGRAM, *([] if verb == "train" else [verb]), *map(shlex.quote, words)])


def _key(word: str) -> str:
    return word.lstrip("+~").partition("=")[0]
