"""The settings of a run as its checkpoint holds them, in hyper_parameters. Pure."""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from amt_hydra.mapping import parse
from amt_hydra.repository.facts import Computed, Repository
from amt_hydra.unkept import same

_BOXES = ("args", "hparams", "config")
"""Where save_hyperparameters() puts what a LightningModule takes as one object: a Namespace, or a dictionary."""
_PARTS = ("encoder", "decoder")
"""Dictionaries with a section per type, of which ENCODER_TYPE or DECODER_TYPE names the one that counts."""
_PLACEHOLDERS = ("", "auto", "default", "none", "null", "…")
"""Texts that stand for a value which the run works out; "…" for what the X-ray leaves out."""
_REDACTED = "***"
"""Stands in a record for a secret."""
_SPELT: Mapping[str, str] = {"64": "64-true", "32": "32-true", "16": "16-mixed", "bf16": "bf16-mixed"}
"""_PRECISION_INPUT_STR_ALIAS_CONVERSION of lightning_fabric/plugins/precision/precision.py."""


@dataclass(frozen=True, slots=True)
class Saved:
    """One setting in a checkpoint."""

    value: object
    path: str
    """Where it stands in hyper_parameters, dotted."""


def saved(
    hyper_parameters: Mapping[str, object],
    means: Mapping[str, Sequence[str]],
    names: Mapping[str, Sequence[str]],
    repository: Repository,
) -> dict[str, Saved]:
    """The settings that can be told, by key. `names` are those of repo.saved, which come before the means."""
    found = {}
    for key in dict.fromkeys((*names, *means)):
        texts = means.get(key, ())
        if any(_is_lost(text, key, repository) for text in texts):
            continue  # what the flag was given stands there, and not what the run had
        paths = [tuple(name.split(".")) for name in names.get(key, ())]
        hit = find(hyper_parameters, [*((path, None) for path in paths), *_paths(texts, key)])
        if hit is not None:
            found[key] = hit
    return found


def find(hyper_parameters: Mapping[str, object], paths: Sequence[tuple[tuple[str, ...], int | None]]) -> Saved | None:
    """The first of the paths (and items of a list there) that leads to a value which can be judged."""
    for path, index in paths:
        for whole in (path, *((box, *path) for box in _BOXES if len(path) == 1)):
            value = _at(hyper_parameters, whole)
            if index is not None:
                value = value[index] if isinstance(value, list | tuple) and index < len(value) else None
            if judged(value):
                return Saved(value, ".".join(whole))
    return None


def of_means(texts: Sequence[str], key: str, hyper_parameters: Mapping[str, object]) -> Saved | None:
    """A value in a checkpoint by the means that set it."""
    return find(hyper_parameters, list(_paths(texts, key)))


def judged(value: object) -> bool:
    """Whether it is a value that can be compared: neither computed, nor a placeholder, nor left out of a record."""
    if isinstance(value, list | tuple):
        return bool(value) and all(map(judged, value))
    if isinstance(value, str):
        blank = value.strip().lower() in _PLACEHOLDERS or (value.startswith("<") and value.endswith(">"))
        return not (blank or value.startswith(str(Computed(""))) or _REDACTED in value)
    return isinstance(value, bool | int | float) or hasattr(value, "__fspath__")


def alike(one: object, other: object, key: str = "") -> bool:
    """Whether two values mean the same, however they are spelt: 1e-3 and 0.001, AdamW and adamw, 32 and 32-true."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if key == "precision.name":
        one, other = (_SPELT.get(str(value), value) for value in (one, other))
    numbers = number(one), number(other)
    return same(one, other) or (numbers[0] is not None and numbers[0] == numbers[1])


def number(value: object) -> float | None:
    """A finite number, or a text that is one."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):
            found = float(value)
            return found if math.isfinite(found) else None
    return None


def _paths(texts: Sequence[str], key: str) -> Iterator[tuple[tuple[str, ...], int | None]]:
    for text in texts:
        means = parse(text, key)
        if means.kind == "flag":
            yield (means.name,), means.index
        elif means.kind == "config":
            yield tuple(means.name.split(".")), means.index


def _is_lost(text: str, key: str, repository: Repository) -> bool:
    means = parse(text, key)
    flag = repository.flag(means.name) if means.kind == "flag" else None
    return flag is not None and bool(flag.lost)


def _at(tree: object, path: Sequence[str]) -> object:
    """What a path leads to; None where that is nothing, or a section of a type that the model is not of."""
    for part, inner in zip(path, (*path[1:], None), strict=True):
        if not isinstance(tree, Mapping):
            return None
        kind = tree.get(f"{part}_type") if part in _PARTS else None
        if inner is not None and isinstance(kind, str) and kind != inner:
            return None
        tree = tree.get(part)
    return tree
