"""Commands to paste: what the user typed, changed in one respect."""

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PROGRAM = "python -m amt_hydra"
_NOT_UTF8 = re.compile("[\udc80-\udcff]+")  # as Python holds such bytes
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
        keys = {key_of(word) for word in new} | set(drop)
        keys |= {SET_BY_GROUP[key] for key in keys & SET_BY_GROUP.keys()}
        return self._render([*(w for w in self.words if key_of(w) not in keys), *new])

    def mended(self, new: Sequence[str], drop: Sequence[str]) -> tuple[str, ...]:
        """The command with these overrides instead, and without the keys in `drop`; () where that is no change."""
        nulled = [key for key, _, value in (word.partition("=") for word in self.words) if value == "null"]
        keys = [key for key in drop if self.sets(key)]
        keys += [group for key in drop if (group := key.partition(".")[0]) in nulled]
        return (self.changed(*new, drop=keys),) if new or keys else ()

    def sets(self, key: str) -> bool:
        """Whether one of the overrides is of this key."""
        return any(key_of(word) == key for word in self.words)

    def _render(self, words: Sequence[str]) -> str:
        folder = [] if self.config_dir is None else ["--config-dir", self.config_dir]
        return render(self.verb, [*folder, *words])


def render(verb: str, words: Sequence[str]) -> str:
    """A command line for a POSIX shell."""
    return " ".join([PROGRAM, *([] if verb == "train" else [verb]), *map(quote, words)])


def quote(text: str) -> str:
    """One word for a shell. Bytes of a path that are no UTF-8 cannot be printed: bash, zsh and ksh read $'…'."""
    if not _NOT_UTF8.search(text):
        return shlex.quote(text)
    escaped = re.sub(r"[\\']", r"\\\g<0>", text)
    return "$'" + _NOT_UTF8.sub(lambda m: "".join(rf"\x{byte:02x}" for byte in os.fsencode(m[0])), escaped) + "'"


def key_of(word: str) -> str:
    """The key or group that an override is of."""
    return word.lstrip("+~").partition("=")[0]
