"""The documented defaults: conf/documented.yaml, read once."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from amt_hydra.conf_path import shipped


@dataclass(frozen=True, slots=True)
class Documented:
    """The documented value of one setting, why it is so, and where it comes from."""

    value: object
    reason: str
    origin: str


@cache
def documented() -> Mapping[str, Documented]:
    """By settings key."""
    text = (shipped() / "documented.yaml").read_text(encoding="utf-8")
    return {key: Documented(**entry) for key, entry in read_yaml(text).items()}


def read_yaml(text: str) -> Any:
    """The plain values of a YAML text. libyaml's loader is ten times faster, and not in every build of PyYAML."""
    import yaml

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
