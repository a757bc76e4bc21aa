"""Who decided a value: worked out from the configs that were merged and the overrides given."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from amt_hydra.documented import documented
from amt_hydra.layers import Layer
from amt_hydra.schema import MISSING, flatten

Who = Literal["documented", "default", "experiment", "override", "environment", "repository", "machine"]

_ENVIRONMENT = re.compile(r"\$\{oc\.env:(\w+)")


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
    """Per dotted key of `raw`, the unresolved values, its origin: the last layer that names it, or an override."""
    words = {word.lstrip("+~").partition("=")[0] for word in overrides}
    groups = {layer.group for layer in layers if layer.group}
    first_choice = _defaults(layers[0].content)
    found: dict[str, Origin] = {}
    for layer in layers:
        who = _who_chose(layer, words & groups, first_choice)
        where = f"{layer.group}={layer.option}" if layer.group else "conf/config.yaml"
        content = {k: v for k, v in layer.content.items() if k != "defaults"}
        for key, value in flatten(content, f"{layer.package}." if layer.package else ""):
            if value != MISSING:  # a value that is still to be given takes none away
                found[key] = Origin(who, where, layer.file)
    given = words - groups
    result = {}
    for key, value in flatten(raw):
        if key in given or any(key.startswith(f"{name}.") for name in given):
            result[key] = Origin("override", "command line")
        elif key in found:
            result[key] = _sharpen(key, value, found[key], environ)
    return result


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
    if isinstance(value, str) and (name := _ENVIRONMENT.search(value)) and name[1] in environ:
        return Origin("environment", name[1])
    entry = documented().get(key)
    if origin.who == "default" and entry and value in (entry.value, f"${{documented:{key}}}"):
        return Origin("documented", "conf/documented.yaml")
    return origin
