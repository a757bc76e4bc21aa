"""The documented defaults: their values, and that they stand in one place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amt_hydra.conf_path import bundled_repository, shipped
from amt_hydra.documented import documented

PACKAGE = bundled_repository().parent

# The table that the family's users know.
TABLE = {
    "optimizer.name": "AdamW",
    "precision.name": "bf16-mixed",
    "optimizer.warmup_steps": 500,
    "checkpoint.monitor": "validation/macro_onset_f",
    "checkpoint.mode": "max",
    "checkpoint.save_top_k": 7,
    "checkpoint.save_last": True,
}


def test_the_documented_values() -> None:
    assert {key: entry.value for key, entry in documented().items()} == TABLE


@pytest.mark.parametrize("key", TABLE)
def test_each_has_a_reason_and_an_origin(key: str) -> None:
    assert len(documented()[key].reason.split()) > 3
    assert documented()[key].origin


def test_where_nothing_is_said_they_are_the_settings(compose_here: Callable[..., tuple[Any, Any]]) -> None:
    made, _ = compose_here()
    for key, value in TABLE.items():
        section, name = key.split(".")
        assert getattr(getattr(made, section), name) == value, key


def text_files() -> list[Path]:
    own = [p for p in PACKAGE.rglob("*") if p.suffix in (".py", ".yaml") and not p.is_relative_to(bundled_repository())]
    return [*own, *shipped().rglob("*.yaml")]


def holders(literal: str) -> list[str]:
    return [p.name for p in text_files() if literal in p.read_text(encoding="utf-8")]


def test_the_values_stand_nowhere_else() -> None:
    assert holders("macro_onset_f") == ["documented.yaml"]
    assert holders("warmup_steps: 500") == holders("save_top_k: 7") == []


def test_config_yaml_refers_to_them() -> None:
    text = (shipped() / "config.yaml").read_text(encoding="utf-8")
    assert [key for key in TABLE if f"${{documented:{key}}}" not in text] == []
