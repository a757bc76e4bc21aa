"""From a plain tree of values to a frozen dataclass: every fault is found in one pass, and named by its dotted key.

OmegaConf's structured configs are not used for this: they turn 1.5 into 1 without a word, stop at the first fault,
and know neither Literal nor frozen classes.
"""

import dataclasses
import math
import os
import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

MISSING = "???"
NO_SETTING = "is no setting"
_LONGEST_NAME = 200  # file systems allow 255, and a stamp is added when a folder is moved aside


@dataclasses.dataclass(frozen=True, slots=True)
class Leaf:
    """One settings key: its dotted name, type and metadata."""

    key: str
    annotation: Any
    meta: Mapping[str, Any]

    def accepts(self, kind: type) -> bool:
        """Whether a value of this plain type can be right."""
        return kind in _members(self.annotation)

    @property
    def is_map(self) -> bool:
        """Whether it takes keys of the user's own."""
        return get_origin(self.annotation) is Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """A value that does not fit: what is wrong and what is valid."""

    key: str
    value: object
    message: str


@cache
def leaves(cls: type, prefix: str = "") -> Mapping[str, Leaf]:
    """Every key of a dataclass of dataclasses, dotted."""
    found: dict[str, Leaf] = {}
    hints = typing.get_type_hints(cls)
    for f in dataclasses.fields(cls):
        key = f"{prefix}{f.name}"
        if dataclasses.is_dataclass(hints[f.name]):
            found.update(leaves(hints[f.name], f"{key}."))
        else:
            found[key] = Leaf(key, hints[f.name], f.metadata)
    return types.MappingProxyType(found)


def build(cls: type, tree: Mapping[str, Any], base: Path) -> tuple[Any, list[Problem]]:
    """Make `cls` of `tree`; relative paths are taken from `base`. The value is meaningless where there are problems."""
    problems: list[Problem] = []
    return _build(cls, tree, base, "", problems), problems


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of nested mappings by dotted key; an empty mapping has none."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _build(cls: type, tree: Mapping[str, Any], base: Path, prefix: str, problems: list[Problem]) -> Any:
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for f in dataclasses.fields(cls):
        key = f"{prefix}{f.name}"
        value = tree.get(f.name, MISSING)
        if dataclasses.is_dataclass(hints[f.name]):
            section = typing.cast(type, hints[f.name])
            if isinstance(value, Mapping):
                values[f.name] = _build(section, value, base, f"{key}.", problems)
            else:
                names = ", ".join(x.name for x in dataclasses.fields(section))
                problems.append(Problem(key, value, f"is a group of settings: {names}"))
            continue
        try:
            values[f.name] = convert(value, Leaf(key, hints[f.name], f.metadata), base)
        except ValueError as error:
            problems.append(Problem(key, value, str(error)))
    for name in (n for n in tree if n not in {f.name for f in dataclasses.fields(cls)}):
        nested = str(name).replace(".", ": {") + ": …" + "}" * str(name).count(".")
        message = f"is not written with dots in a file, but as {nested}" if "." in str(name) else NO_SETTING
        problems.append(Problem(f"{prefix}{name}", tree[name], message))
    return None if problems else cls(**values)


def convert(value: Any, leaf: Leaf, base: Path) -> Any:
    """Return `value` as the leaf's type. Raises ValueError saying what is valid."""
    if value == MISSING:
        raise ValueError("must be given")
    if leaf.is_map:
        return _mapping(value, leaf)
    if get_origin(leaf.annotation) is tuple:
        return _strings(value)
    if value is None:
        if leaf.accepts(types.NoneType):
            return None
        raise ValueError(f"must be {describe(leaf.annotation)}, not null")
    for member in _members(leaf.annotation):
        matched, result = _as_member(value, member, base)
        if matched:
            _check_limits(result, leaf.meta)
            return result
    raise ValueError(f"must be {describe(leaf.annotation)}")


def describe(annotation: Any) -> str:
    """Words for a type: "a whole number or auto"."""
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Path: "a path"}
    parts = []
    for member in _members(annotation):
        if member is types.NoneType:
            parts.append("null")
        elif get_origin(member) is Literal:
            parts.extend(get_args(member))
        else:
            parts.append(words[member])
    return " or ".join(parts) if len(parts) < 3 else ", ".join(parts[:-1]) + f" or {parts[-1]}"


def _members(annotation: Any) -> tuple[Any, ...]:
    if isinstance(annotation, types.UnionType) or get_origin(annotation) is typing.Union:
        return get_args(annotation)
    return (annotation,)


def _as_member(value: Any, member: Any, base: Path) -> tuple[bool, Any]:
    """Whether `value` is a `member` without loss, and the value as such."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if get_origin(member) is Literal:
        return value in get_args(member) and isinstance(value, str), value
    if member is int:  # 1e5 is a float to YAML and to Hydra, and a whole number to everybody else
        whole = number and int(value) == value
        return whole, int(value) if whole else value
    if member is float:
        return number, float(value) if number else value
    if member is Path:
        usable = isinstance(value, str) and value != "" and "\0" not in value
        return usable, absolute(value, base) if usable else value
    if member is bool or member is str:
        return isinstance(value, member), value
    return False, value


def absolute(text: str, base: Path) -> Path:
    """Return the path that `text` names for somebody who stands in `base`; "~" is the home folder."""
    try:
        path = Path(text).expanduser()
    except RuntimeError:  # "~" without a HOME, or an unknown "~name": a folder may well be called so
        path = Path(text)
    return base / path


def _check_limits(value: Any, meta: Mapping[str, Any]) -> None:
    if meta.get("folder"):
        check_folder_name(value)
    if isinstance(value, str):
        return
    if "least" in meta and value < meta["least"]:
        raise ValueError(f"must be {meta['least']} or more")
    if "most" in meta and value > meta["most"]:
        raise ValueError(f"must be {meta['most']} or less")
    if "above" in meta and value <= meta["above"]:
        raise ValueError(f"must be above {meta['above']}")


def check_folder_name(name: str) -> None:
    """A name that is one folder on every file system, no flag to argparse, and free of YourMT3's own "@" syntax.

    Raises ValueError with what it must be.
    """
    if not name.strip() or name in (".", "..") or name.startswith(("-", ".")):
        raise ValueError("must be a plain folder name, not empty and not starting with '-' or '.'")
    if any(c in "/\\@{}" or ord(c) < 32 for c in name):
        raise ValueError("must be a plain folder name, without / \\ @ { } or control characters")
    if len(os.fsencode(name)) > _LONGEST_NAME:
        raise ValueError(f"must be at most {_LONGEST_NAME} bytes long")


def _strings(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(x, str) for x in items):
        raise ValueError("must be a list of text")
    return tuple(items)


def _mapping(value: Any, leaf: Leaf) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("must be a map of names to values")
    item = get_args(leaf.annotation)[1]
    if leaf.meta.get("nested"):
        value = dict(flatten(value))
    if get_origin(item) is tuple:
        return {str(k): _strings(v) for k, v in value.items()}
    if item is str:
        # A whole number in a file (N: 1) is meant as it is written; of 1e5 or yes the spelling is lost.
        odd = [k for k, v in value.items() if not isinstance(v, str | int) or isinstance(v, bool)]
        if odd:
            raise ValueError(f"must be a map of names to text: put the value of {odd[0]} in quotes")
        return {str(k): str(v) for k, v in value.items()}
    return {str(k): v for k, v in value.items()}
