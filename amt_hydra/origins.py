"""Who decided a value: worked out from the config files chosen and the overrides given."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from amt_hydra.documented import documented, yaml_loader
from amt_hydra.schema import flatten

Who = Literal["documented", "default", "experiment", "override", "environment", "repository", "machine"]

_ENVIRONMENT = re.compile(r"\$\{oc\.env:(\w+)")
_PACKAGE = re.compile(r"^\s*#\s*@package\s+(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Origin:
    """Who decided a value, and where that stands."""

    who: Who
    where: str

    @property
    def asked(self) -> bool:
        """Whether the user asked for it, as opposed to a default."""
        return self.who in ("experiment", "override", "environment")


def origins(
    raw: Mapping[str, Any],
    tree: Mapping[str, Any],
    choices: Mapping[str, str | None],
    overrides: Sequence[str],
    files: Sequence[tuple[str, str, Path]],
    environ: Mapping[str, str],
) -> dict[str, Origin]:
    """Per dotted key of `raw` (unresolved) and `tree` (resolved), its origin; later files win over earlier ones."""
    given = {word.lstrip("+~").partition("=")[0] for word in overrides}
    chosen_by_user = {group: word for word in overrides if (group := word.partition("=")[0].lstrip("+")) in choices}
    values = dict(flatten(raw))
    resolved = dict(flatten(tree))
    found: dict[str, tuple[Any, Origin]] = {}
    first_choice: dict[str, Any] = {}
    for group, option, file in files:
        content, package = _read(file)
        if not group:
            first_choice = _defaults(content)
        who = _who_chose(group, option, chosen_by_user, first_choice)
        where = f"{group}={option}" if group else "conf/config.yaml"
        prefix = "" if not group or package == "_global_" else f"{package or group}."
        for key, value in flatten({k: v for k, v in content.items() if k != "defaults"}, prefix):
            found[key] = (value, Origin(who, where))
    result = {}
    for key, value in values.items():
        if key in given or any(key.startswith(f"{g}.") for g in given):
            result[key] = Origin("override", "command line")
        elif key not in found or found[key][0] != value:  # a config that an experiment pulls in
            result[key] = Origin("experiment", "a config of yours")
        else:
            result[key] = _sharpen(key, value, resolved.get(key), found[key][1], environ)
    return result


def _read(file: Path) -> tuple[Mapping[str, Any], str | None]:
    import yaml

    text = file.read_text(encoding="utf-8")
    content = yaml.load(text, yaml_loader())
    package = _PACKAGE.search(text)
    return content if isinstance(content, dict) else {}, package[1] if package else None


def _defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """The option of each group in the defaults list of config.yaml."""
    return {k: v for x in config["defaults"] if isinstance(x, dict) for k, v in x.items()}


def _who_chose(group: str, option: str, by_user: Mapping[str, str], first: Mapping[str, Any]) -> Who:
    if group == "experiment":
        return "experiment"
    if group in by_user:
        return "override"
    return "default" if not group or first.get(group) == option else "experiment"


def _sharpen(key: str, value: Any, resolved: Any, origin: Origin, environ: Mapping[str, str]) -> Origin:
    """A default may be a documented one, and any value may come from the environment."""
    if isinstance(value, str) and (name := _ENVIRONMENT.search(value)) and name[1] in environ:
        return Origin("environment", name[1])
    if origin.who == "default" and key in documented() and documented()[key].value == resolved:
        return Origin("documented", "conf/documented.yaml")
    return origin
