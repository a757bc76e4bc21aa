"""How a setting reaches a repository: the means that its mapping lists, against what the source really has."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from amt_hydra.errors import AmtError
from amt_hydra.repository.facts import Computed, ConfigValue, Flag, Place, Repository

_MEANS = re.compile(r"(?P<kind>flag|env|config|bridge):(?P<name>[^\[\]\s]+)(?:\[(?P<index>\d+)\])?")
_BRIDGED = ("bridge:warmstart", "bridge:seed", "bridge:csv", "bridge:grad_finite", "bridge:detect_anomaly")


@dataclass(frozen=True, slots=True)
class Means:
    """One means as the mapping writes it: flag:DEST, flag:DEST[INDEX] of a flag with several values, env:NAME,
    config:DOTTED.KEY of config.py (set by the bridge), bridge:CAPABILITY."""

    kind: Literal["flag", "env", "config", "bridge"]
    name: str
    index: int | None

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" + ("" if self.index is None else f"[{self.index}]")


@dataclass(frozen=True, slots=True)
class Channel:
    """One setting in one repository: by which means it is set there, and the value it has where nobody sets it."""

    key: str
    carrier: Means | None
    """The first means listed that exists, has an effect and may be used; None where there is none."""
    flag: Flag | None
    """The carrier's flag, where it is one."""
    stands: ConfigValue | Flag | None
    """Where the repository's own value stands."""
    current: object
    """The repository's own value: a literal, Computed, or None where it cannot be told."""

    @property
    def place(self) -> Place | None:
        """Where the repository's own value stands."""
        return self.stands.place if self.stands else None


def parse(text: str, key: str) -> Means:
    """Read one means of a mapping. Raises AmtError where it is not one."""
    match = _MEANS.fullmatch(text)
    if match is None:
        raise AmtError(
            f"repo.means.{key}: {text!r} is no means",
            fix=[f"valid are flag:DEST, flag:DEST[INDEX], env:NAME, config:DOTTED.KEY and {', '.join(_BRIDGED)}"],
        )
    if match["kind"] == "bridge" and text not in _BRIDGED:
        raise AmtError(f"repo.means.{key}: the bridge has no {text!r}", fix=[f"it has {', '.join(_BRIDGED)}"])
    kind: Literal["flag", "env", "config", "bridge"] = match["kind"]  # type: ignore[assignment] # the pattern admits no other
    return Means(kind, match["name"], int(match["index"]) if match["index"] else None)


def channels(means: Mapping[str, Sequence[str]], repository: Repository, *, bridged: bool = True) -> dict[str, Channel]:
    """Per setting that the mapping knows, its channel in this repository. `bridged`: the bridge may be used."""
    return {
        key: channel(key, [parse(text, key) for text in texts], repository, bridged=bridged)
        for key, texts in means.items()
    }


def channel(key: str, means: Sequence[Means], repository: Repository, *, bridged: bool = True) -> Channel:
    """Look the means up in what was read of the repository."""
    there = [m for m in means if exists(m, repository)]
    carrier = next((m for m in there if bridged or m.kind in ("flag", "env")), None)
    flag = repository.flag(carrier.name) if carrier and carrier.kind == "flag" else None
    stands, current = _current(there, repository)
    return Channel(key, carrier, flag, stands, current)


def lookup(means: Sequence[Means], repository: Repository) -> object:
    """The value that the repository has by the first of the means that yields one: None where none does."""
    return _current([m for m in means if exists(m, repository)], repository)[1]


def exists(means: Means, repository: Repository) -> bool:
    """Whether the repository has it, and it has an effect there."""
    if means.kind == "flag":
        flag = repository.flag(means.name)
        return flag is not None and not is_dead(flag)
    if means.kind == "env":  # wandb reads its own
        return means.name.startswith("WANDB_") or any(s.name == means.name for s in repository.switches)
    if means.kind == "bridge":
        return bool(repository.lightning) and (means.name != "csv" or "WandbLogger" in repository.loggers)
    return means.name in repository.config


def is_dead(flag: Flag) -> bool:
    """Whether the flag can be given and does nothing: it is read nowhere, or what it sets is."""
    return flag.reads == () or bool(flag.lost)


def why_dead(flag: Flag) -> str:
    """Why a dead flag does nothing, in words that follow its name."""
    return flag.lost or "is read nowhere"


def _current(there: Sequence[Means], repository: Repository) -> tuple[ConfigValue | Flag | None, object]:
    for means in there:
        if means.kind == "flag" and (flag := repository.flag(means.name)) and flag.default is not None:
            return flag, _item(flag.default, means.index)
        if means.kind == "config":
            value = repository.config[means.name]
            return value, _item(value.value, means.index)
    return None, None


def _item(value: object, index: int | None) -> object:
    if index is None or isinstance(value, Computed):
        return value
    return value[index] if isinstance(value, list | tuple) and index < len(value) else None
