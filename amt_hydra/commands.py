"""Commands to paste: what the user typed, changed in one respect."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PROGRAM = "python -m amt_hydra"
SET_BY_GROUP: Mapping[str, str] = {
    "init": "init.mode",
    "precision": "precision.name",
    "optimizer": "optimizer.name",
    "data_presets": "data_presets.name",
    "logger": "logger.kind",
    "ddp": "ddp.accelerator",
}
"""The key that an option of the group sets: set by itself, beside the option, it wins."""


@dataclass(frozen=True, slots=True)
class Typed:
    """The command line as it was typed: verb, overrides, and the folder of configs that was named."""

    verb: str
    words: tuple[str, ...]
    config_dir: str | None = None

    def __str__(self) -> str:
        return self._render(self.words)

    def changed(self, *new: str, drop: Sequence[str] = ()) -> str:
        """The same command with overrides replaced or added, and those of the keys in `drop` left out."""
        keys = {_key(word) for word in new} | set(drop)
        keys |= {SET_BY_GROUP[key] for key in keys & SET_BY_GROUP.keys()}
        return self._render([*(w for w in self.words if _key(w) not in keys), *new])

    def sets(self, key: str) -> bool:
        """Whether one of the overrides is of this key."""
        return any(_key(word) == key for word in self.words)

    def _render(self, words: Sequence[str]) -> str:
        folder = [] if self.config_dir is None else ["--config-dir", self.config_dir]
        return render(self.verb, [*folder, *words])


def render(verb: str, words: Sequence[str]) -> str:
    """A command line for a POSIX shell."""
    return " ".join([PROGRAM, *([] if verb == "train" else [verb]), *map(shlex.quote, words)])


def _key(word: str) -> str:
    return word.lstrip("+~").partition("=")[0]
