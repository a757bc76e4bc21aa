"""The configs that a composition merged, in order, each with the keys that it names."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amt_hydra.conf_path import PRESETS, shipped
from amt_hydra.documented import read_yaml
from amt_hydra.schema import flatten

_PACKAGE = re.compile(r"^\s*#\s*@package\s+(\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Layer:
    """One config: conf/<group>/<option>.yaml, or config.yaml itself, which has no group."""

    group: str
    option: str
    package: str
    """Dotted key under which its content is merged; empty for the top."""
    content: Mapping[str, Any]
    file: Path | None
    """None for a shipped config."""

    @property
    def name(self) -> str:
        """As it is chosen on a command line."""
        return f"{self.group}={self.option}" if self.group else "conf/config.yaml"

    def values(self) -> Iterator[tuple[str, Any]]:
        """What it says, by dotted key."""
        content = {k: v for k, v in self.content.items() if k != "defaults"}
        return flatten(content, f"{self.package}." if self.package else "")


def layers(loader: Any, choices: Mapping[str, str | None], overrides: Sequence[str]) -> list[Layer]:
    """Return the configs behind a composition, first merged first."""
    chosen = list(_by_choice(loader, choices))
    if all(layer.file is None for layer in chosen):
        return chosen  # the shipped configs pull in no others
    return list(_by_defaults_list(loader, overrides))


def _by_choice(loader: Any, choices: Mapping[str, str | None]) -> Iterator[Layer]:
    yield _layer(loader, "", "config", "")
    for group, option in sorted(choices.items(), key=lambda item: item[0] == "experiment"):
        if option is not None and not group.startswith("hydra/"):
            yield _layer(loader, group, option, None)


def _by_defaults_list(loader: Any, overrides: Sequence[str]) -> Iterator[Layer]:
    """What configs of the user's own pull in is known to Hydra alone; asking takes as long as half a composition."""
    from hydra.types import RunMode

    for default in loader.compute_defaults_list("config", list(overrides), RunMode.RUN).defaults:
        group, slash, option = str(default.config_path).partition("/")
        if group != "hydra":
            yield _layer(loader, group if slash else "", option or group, default.package or "")


def _layer(loader: Any, group: str, option: str, package: str | None) -> Layer:
    file = _file(loader, f"{group}/{option}" if group else option)
    if file is None:  # a preset of the repository's, which has no file
        return Layer(group, option, PRESETS, {"name": option}, None)
    text = file.read_text(encoding="utf-8")
    content = read_yaml(text)
    if package is None:
        header = _PACKAGE.search(text)
        package = group if header is None else header[1].replace("_global_", "")
    own = None if file.is_relative_to(shipped()) else file
    return Layer(group, option, package, content if isinstance(content, dict) else {}, own)


def _file(loader: Any, config: str) -> Path | None:
    name = config if config.endswith(".yaml") else f"{config}.yaml"
    sources = (s for s in loader.get_sources() if s.scheme() == "file" and s.is_config(config))
    return next((Path(s.path) / name for s in sources), None)
