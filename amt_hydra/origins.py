"""Who decided a value: worked out from the configs that were merged and the overrides given."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from amt_hydra.commands import SET_BY_GROUP
from amt_hydra.documented import documented
from amt_hydra.errors import USAGE, AmtError
from amt_hydra.layers import Layer
from amt_hydra.schema import MISSING, flatten

Who = Literal["documented", "default", "experiment", "override", "environment", "repository", "machine"]

_ENVIRONMENT = re.compile(r"\$\{(?:oc\.env|environment):(\w+)")


@dataclass(frozen=True, slots=True)
class Origin:
    """Who decided a value, and where that stands."""

    who: Who
    where: str
    file: Path | None = None
    """The config file that holds it, where it is not a shipped one."""

    @property
    def asked(self) -> bool:
        """Whether the user asked for it, as opposed to a default."""
        return self.who in ("experiment", "override", "environment")

    def __str__(self) -> str:
        return f"{self.where} in {self.file}" if self.file else self.where


def origins(
    raw: Mapping[str, Any], layers: Sequence[Layer], overrides: Sequence[str], environ: Mapping[str, str]
) -> dict[str, Origin]:
    """Per dotted key of `raw`, the unresolved values, its origin: the last layer that names it, or an override.

    Raises AmtError where an experiment takes back what an option given on the command line says.
    """
    words = {word.lstrip("+~").partition("=")[0] for word in overrides}
    groups = {layer.group for layer in layers if layer.group}
    given = words - groups
    found = _by_layer(layers, words & groups)
    _refuse_taken_back(layers, words)
    result = {}
    for key, value in flatten(raw):
        if key in given or any(key.startswith(f"{name}.") for name in given):
            result[key] = Origin("override", "command line")
        elif key in found:
            result[key] = _sharpen(key, value, found[key], environ)
    return result


def _by_layer(layers: Sequence[Layer], by_user: set[str]) -> dict[str, Origin]:
    first_choice = _defaults(layers[0].content)
    found = {}
    for layer in layers:
        who = _who_chose(layer, by_user, first_choice)
        for key, value in layer.values():
            if value != MISSING:  # a value that is still to be given takes none away
                found[key] = Origin(who, layer.name, layer.file)
    return found


def _refuse_taken_back(layers: Sequence[Layer], words: set[str]) -> None:
    """An experiment that sets init.mode by its key wins over init=resume: whoever typed that must be told."""
    said = [(layer, dict(layer.values())) for layer in layers]
    for layer, content in said:
        key = SET_BY_GROUP.get(layer.group, "")
        if layer.group not in words or key in words or key not in content:
            continue
        winner, value = next((x, c[key]) for x, c in reversed(said) if key in c)
        if value != content[key]:
            raise AmtError(
                f"{layer.name} was given, but {winner.name} in {winner.file or 'conf'} sets {key}={value}, and wins",
                fix=[f"give the key too: {key}={content[key]}", f"take {key} out of it"],
                code=USAGE,
            )


def _defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """The option of each group in the defaults list of config.yaml."""
    return {k: v for x in config["defaults"] if isinstance(x, dict) for k, v in x.items()}


def _who_chose(layer: Layer, by_user: set[str], first: Mapping[str, Any]) -> Who:
    if layer.group == "experiment":
        return "experiment"
    if layer.group in by_user:
        return "override"
    return "default" if not layer.group or first.get(layer.group) == layer.option else "experiment"


def _sharpen(key: str, value: Any, origin: Origin, environ: Mapping[str, str]) -> Origin:
    """A default may be a documented one, and any value may come from the environment."""
    if isinstance(value, str) and (name := _ENVIRONMENT.search(value)) and environ.get(name[1]):
        return Origin("environment", name[1])
    entry = documented().get(key)
    if origin.who == "default" and entry and value in (entry.value, f"${{documented:{key}}}"):
        return Origin("documented", "conf/documented.yaml")
    return origin
