"""Parts of a model that exist only where a value is set, which a strict resume trips over. Pure."""

from collections.abc import Sequence

from amt_hydra.checkpoint import Xray
from amt_hydra.checks.base import Subject
from amt_hydra.drift import shown
from amt_hydra.extras import extra_dest
from amt_hydra.mapping import Means, exists, lookup, parse
from amt_hydra.repository.facts import Computed
from amt_hydra.saved import number, of_means

_ON = (-2, 2)
"""Upstream's own range of semitones, where the checkpoint does not tell the one it had."""
_OFF = (0, 0)


def holds(ray: Xray, prefix: str) -> bool:
    """Whether a checkpoint has tensors of the part, at the top or below "model."."""
    return any(tensor.name.startswith((f"{prefix}.", f"model.{prefix}.")) for tensor in ray.tensors)


def is_on(value: object) -> bool | None:
    """Whether a value makes the part; None where that cannot be told."""
    if value is None or isinstance(value, bool):
        return bool(value)
    parts = value if isinstance(value, list | tuple) else [value]
    numbers = [number(part) for part in parts]
    if isinstance(value, Computed) or None in numbers:
        return None
    return any(numbers)


def value_of(subject: Subject, texts: Sequence[str]) -> object:
    """The value that the run has: as extra.flags or extra.config gives it, else the repository's own."""
    extra, means = subject.settings.extra, _means(subject, texts)
    if not means:
        return Computed("by no means of the mapping")
    flags = {extra_dest(name): value for name, value in extra.flags.items()}
    for one in means:
        given = flags.get(one.name) if one.kind == "flag" else extra.config.get(one.name)
        if given is not None:
            return given
    return lookup(means, subject.repository)


def switched(subject: Subject, texts: Sequence[str], ray: Xray, on: bool) -> str:
    """How the value is set so that the part is there, or is not."""
    kept = of_means(texts, "repo.lazy", ray.hyper_parameters)
    value = shown(kept.value if kept is not None and is_on(kept.value) else _ON) if on else shown(_OFF)
    first = _means(subject, texts)[0]
    if first.kind == "flag":
        return subject.extra_flag(first.name, value)
    if subject.settings.repo.bridge:
        return subject.typed.changed(f"extra.config.{first.name}={value}")
    return f"write {value} at {subject.repository.config[first.name].place}"


def _means(subject: Subject, texts: Sequence[str]) -> list[Means]:
    means = [parse(text, "repo.lazy") for text in texts]
    return [one for one in means if one.kind in ("flag", "config") and exists(one, subject.repository)]
