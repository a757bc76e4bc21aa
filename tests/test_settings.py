"""The settings as an interface: each key has a kind, a type, a meaning, a default and a comment."""

import ast
import dataclasses
import re
import typing
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from amt_hydra import settings as settings_module
from amt_hydra.conf_path import groups, shipped
from amt_hydra.schema import flatten, leaves
from amt_hydra.settings import Kind, Settings

KEYS = leaves(Settings)
OPTION_FILES = sorted(p for p in shipped().glob("*/*.yaml"))


def config_yaml() -> dict[str, object]:
    return dict(yaml.safe_load((shipped() / "config.yaml").read_text(encoding="utf-8")))


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_classified(key: str) -> None:
    assert KEYS[key].meta["kind"] in typing.get_args(Kind)


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        (
            "identity",
            "optimizer.name optimizer.warmup_steps optimizer.scheduler seed init.ckpt extra.flags "
            "precision.name data_presets.name batch.local",
        ),
        ("free", "init.mode max_steps val_interval data.num_workers logger.kind ddp.devices ddp.nodes paths.outputs"),
        ("restored", "optimizer.lr"),
    ],
)
def test_what_a_change_of_a_key_means_for_a_run_that_exists(kind: str, keys: str) -> None:
    assert {key: KEYS[key].meta["kind"] for key in keys.split()} == dict.fromkeys(keys.split(), kind)


def test_config_yaml_and_settings_have_the_same_keys() -> None:
    sections = {f.name for f in dataclasses.fields(Settings)}
    maps = {key for key, leaf in KEYS.items() if leaf.is_map}
    assert config_yaml().keys() - {"defaults"} == sections
    assert {k for k, _ in flatten({k: v for k, v in config_yaml().items() if k in sections})} | maps == KEYS.keys()


def test_config_yaml_gives_every_group_an_option() -> None:
    defaults = config_yaml()["defaults"]
    assert isinstance(defaults, list)
    named = {name for entry in defaults if isinstance(entry, dict) for name in entry}
    assert named == set(groups([shipped()]))


def test_every_default_has_a_comment() -> None:
    lines = (shipped() / "config.yaml").read_text(encoding="utf-8").partition("\nexp_id:")[2].splitlines()
    values = [line for line in lines if re.match(r"\s*\w+: *[^\s#]", line)]
    assert values
    assert [line for line in values if not re.search(r"\s# \S", line)] == []


@pytest.mark.parametrize("file", OPTION_FILES, ids=lambda p: f"{p.parent.name}={p.stem}")
def test_every_option_says_what_it_is(file: Path) -> None:
    comments = [x for x in file.read_text(encoding="utf-8").splitlines() if x.startswith("# ") and "@package" not in x]
    assert comments


@pytest.mark.parametrize("name", [name for name, cls in vars(settings_module).items() if dataclasses.is_dataclass(cls)])
def test_a_docstring_stands_under_every_field(name: str) -> None:
    tree = ast.parse(Path(settings_module.__file__).read_text(encoding="utf-8"))
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name).body
    for statement, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign):
            section = dataclasses.is_dataclass(getattr(settings_module, ast.unparse(statement.annotation), None))
            text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            assert section or text, f"{name}.{ast.unparse(statement.target)}"


NAMES = """
    exp_id project seed max_steps val_interval repo.path repo.kind repo.python repo.runs repo.init_ckpt
    init.mode init.ckpt init.overwrite precision.name optimizer.name optimizer.lr optimizer.warmup_steps
    optimizer.scheduler batch.sub batch.local batch.accumulate ddp.devices ddp.nodes ddp.strategy
    ddp.sync_batchnorm data_presets.name data.num_workers data.home checkpoint.monitor checkpoint.mode
    checkpoint.save_top_k checkpoint.save_last logger.kind paths.outputs checks.ignore checks.strict
    extra.flags extra.env
"""


def test_the_names_that_other_parts_rely_on() -> None:
    assert set(NAMES.split()) <= KEYS.keys()


def test_the_mappings_of_repositories_name_settings_only() -> None:
    for file in (shipped() / "repo").glob("*.yaml"):
        means = yaml.safe_load(file.read_text(encoding="utf-8")).get("means", {})
        assert {key for key, _ in flatten(means)} <= KEYS.keys(), file


def test_settings_cannot_be_changed_once_made(compose_here: Callable[..., tuple[Settings, object]]) -> None:
    settings, _ = compose_here()
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.seed = 1  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.optimizer.lr = 1.0  # type: ignore[misc]
