"""How a setting reaches a repository: the means that its mapping lists, against what the source really has."""

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from amt_hydra.errors import AmtError
from amt_hydra.repository.facts import Computed, ConfigValue, Flag, Place, Repository

_MEANS = re.compile(r"(?P<kind>flag|env|config):(?P<name>[^\[\]\s]+)(?:\[(?P<index>\d+)\])?")
_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")  # argparse's own idea of a negative number


@dataclass(frozen=True, slots=True)
class Means:
    """One means as the mapping writes it: flag:DEST, flag:DEST[INDEX] of a flag with several values, env:NAME,
    config:DOTTED.KEY (read, never set)."""

    kind: Literal["flag", "env", "config"]
    name: str
    index: int | None

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" + ("" if self.index is None else f"[{self.index}]")


@dataclass(frozen=True, slots=True)
class Channel:
    """One setting in one repository: by which means it is set there, and the value it has where nobody sets it."""

    key: str
    carrier: Means | None
    """The first means listed that exists, has an effect and can set the value; None where there is none."""
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
            fix=["valid are flag:DEST, flag:DEST[INDEX], env:NAME and config:DOTTED.KEY"],
        )
    kind: Literal["flag", "env", "config"] = match["kind"]  # type: ignore[assignment] # the pattern admits no other
    return Means(kind, match["name"], int(match["index"]) if match["index"] else None)


def channels(means: Mapping[str, Sequence[str]], repository: Repository) -> dict[str, Channel]:
    """Per setting that the mapping knows, its channel in this repository."""
    return {key: channel(key, [parse(text, key) for text in texts], repository) for key, texts in means.items()}


def channel(key: str, means: Sequence[Means], repository: Repository) -> Channel:
    """Look the means up in what was read of the repository."""
    there = [m for m in means if _exists(m, repository)]
    carrier = next((m for m in there if m.kind != "config"), None)
    flag = repository.flag(carrier.name) if carrier and carrier.kind == "flag" else None
    stands, current = _current(there, repository)
    return Channel(key, carrier, flag, stands, current)


def lookup(means: Sequence[Means], repository: Repository) -> object:
    """The value that the repository has by the first of the means that yields one: None where none does."""
    return _current([m for m in means if _exists(m, repository)], repository)[1]


def _exists(means: Means, repository: Repository) -> bool:
    if means.kind == "flag":
        flag = repository.flag(means.name)
        return flag is not None and not is_dead(flag)
    if means.kind == "env":
        return any(s.name == means.name for s in repository.switches)
    return means.name in repository.config


def is_dead(flag: Flag) -> bool:
    """Whether the flag is parsed and read nowhere: it can be given, and does nothing."""
    return flag.reads == ()


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


def render(flag: Flag, value: object) -> list[str]:
    """The words that put `value` on train.py's command line.

    Raises ValueError, in words for a user, where the flag cannot take it: argparse would only say so after the start.
    """
    if flag.action in ("store_true", "store_false", "store_const", "BooleanOptionalAction"):
        return _switch(flag, value)
    if flag.action == "count":
        return [flag.option or ""] * _whole_number(value)
    if flag.action not in ("store", "append", "extend") or flag.nargs in ("...", "A..."):
        raise ValueError("is of a kind that cannot be given from here")
    values = list(value) if isinstance(value, list | tuple) else [value]
    if flag.action == "append" and flag.nargs is None:
        return [word for one in values for word in _words(flag, [one])]
    if isinstance(flag.nargs, int) and len(values) != flag.nargs:
        raise ValueError(f"takes {flag.nargs} values, not {len(values)}")
    if flag.nargs in (None, "?") and len(values) != 1:
        raise ValueError(f"takes one value, not {len(values)}")
    if flag.nargs == "+" and not values:
        raise ValueError("takes one value or more, not 0")
    return _words(flag, values)


def _words(flag: Flag, values: Sequence[object]) -> list[str]:
    words = [cast(flag, v) for v in values]
    if "--" in words:
        raise ValueError("cannot be '--': argparse drops it")
    dashed = [w for w in words if w.startswith("-") and not _NEGATIVE_NUMBER.fullmatch(w)]
    if flag.option is None:
        if dashed:
            raise ValueError(f"{dashed[0]!r} would be taken for an option")
        return words
    if not dashed:
        return [flag.option, *words]
    if len(words) == 1:
        return [f"{flag.option}={words[0]}"]
    raise ValueError(f"{dashed[0]!r} would be taken for an option")


def cast(flag: Flag, value: object) -> str:
    """One value as the flag's type reads it. Raises ValueError."""
    if isinstance(value, Computed) or value is None:
        raise ValueError("has no value that can be written on a command line")
    if isinstance(value, Mapping | list | tuple):
        raise ValueError(f"takes single values, not {value}")
    if flag.type == "int":
        text = str(_whole_number(value))
    elif flag.type == "float":
        text = repr(_number(value))
    elif flag.type == "bool":
        # type=bool makes every text but the empty one true.
        if not isinstance(value, bool):
            raise ValueError("takes true or false")
        text = "True" if value else ""
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value)
    return _choice(flag, text)


def _number(value: object) -> float:
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):
            return float(value)
    raise ValueError("takes a number")


def _whole_number(value: object) -> int:
    with contextlib.suppress(ValueError, OverflowError):  # "x", NaN, infinity
        if isinstance(value, str):  # 1e5 is one too; digits alone are read to the last
            value = int(value) if value.lstrip("+-").isdecimal() else float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and int(value) == value:
            return int(value)
    raise ValueError("takes a whole number")


def _choice(flag: Flag, text: str) -> str:
    """The choice that is meant, as the repository spells it: argparse compares exactly, this family in lower case."""
    if not isinstance(flag.choices, tuple):
        return text
    known = [str(choice) for choice in flag.choices]
    if text in known or (flag.type == "float" and float(text) in flag.choices):
        return text
    meant = [choice for choice in known if choice.lower() == text.lower()]
    if len(meant) != 1:
        raise ValueError(f"takes one of {', '.join(known)}")
    return meant[0]


def _switch(flag: Flag, value: object) -> list[str]:
    if not isinstance(value, bool):
        raise ValueError("takes true or false")
    assert flag.option is not None  # a positional cannot be a switch
    if flag.action == "BooleanOptionalAction" and flag.option.startswith("--"):
        return [flag.option if value else f"--no-{flag.option.removeprefix('--')}"]
    if value == (flag.action != "store_false"):
        return [flag.option]
    if flag.default is value or (flag.action == "store_const" and flag.default is None):
        return []
    raise ValueError(f"can only be switched {'off' if flag.action == 'store_false' else 'on'}")
