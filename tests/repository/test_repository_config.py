"""The dictionaries of config.py and the names in data_presets.py."""

from pathlib import Path

import pytest
from small_repository import repository

from amt_hydra.repository import Computed


def config(root: Path, text: str, **modules: str) -> dict[str, object]:
    return {key: value.value for key, value in repository(root, config=text, **modules).config.items()}


def test_leaves_places_and_the_monitor(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        config='''\
        """config.py"""
        import numpy as np
        # yapf: disable
        """
        shared_cfg:
        - a bare string between assignments
        """
        shared_cfg = {
            "CHECKPOINT": { # comment
                "save_top_k": 4,
                "monitor": 'validation/macro_onset_f',
                # "every_n_epochs": 20,
                "save_last": True,
            },
            "LR": {"warmup_steps": 1000, "betas": (0.9, 0.98), "range": [-2, 2], "final": 1e-5},
            "google/t5-v1_1-small": {"d_ff":
                1024},
            "empty": {},
        }
        SEED: int = 7
        ''',
    ).config
    assert {key: value.value for key, value in found.items()} == {
        "shared_cfg.CHECKPOINT.save_top_k": 4,
        "shared_cfg.CHECKPOINT.monitor": "validation/macro_onset_f",
        "shared_cfg.CHECKPOINT.save_last": True,
        "shared_cfg.LR.warmup_steps": 1000,
        "shared_cfg.LR.betas": (0.9, 0.98),
        "shared_cfg.LR.range": [-2, 2],
        "shared_cfg.LR.final": 1e-5,
        "shared_cfg.google/t5-v1_1-small.d_ff": 1024,
        "shared_cfg.empty": {},
        "SEED": 7,
    }
    monitor = found["shared_cfg.CHECKPOINT.monitor"].place
    assert (monitor.file.name, monitor.line) == ("config.py", 11)
    assert found["shared_cfg.google/t5-v1_1-small.d_ff"].place.line == 16


def test_computed_values_keep_their_text(tmp_path: Path) -> None:
    found = config(
        tmp_path,
        """
        import os
        N = 4
        cfg = {
            "workers": os.cpu_count(),
            "home": os.path.join("..", "data"),
            "list": [make(), 1],
            "double": N * 2,
            "text": f"n{N}",
            "joined": "a" "b",
            "negative": -1,
            "choice": "x" if N > 3 else "y",
        }
        """,
    )
    assert found["cfg.workers"] == Computed("os.cpu_count()")
    assert found["cfg.home"] == Computed('os.path.join("..", "data")')
    assert found["cfg.list"] == Computed("[make(), 1]")
    assert (found["cfg.double"], found["cfg.text"], found["cfg.joined"]) == (8, "n4", "ab")
    assert (found["cfg.negative"], found["cfg.choice"]) == (-1, "x")


def test_a_name_bound_to_two_values_is_computed_with_both(tmp_path: Path) -> None:
    found = config(
        tmp_path,
        """
        import torch
        if torch.cuda.is_available():
            DEVICE = "cuda"
            SAME = 1
            cfg = {"workers": 8, "pin": True}
        else:
            DEVICE = "cpu"
            SAME = 1
            cfg = {"workers": 0, "pin": True}
        other = {"device": DEVICE}
        try:
            import fast
            FAST = True
        except ImportError:
            FAST = False
        if True:
            TAKEN = 1
        else:
            TAKEN = 2
        """,
    )
    for key, values in {
        "DEVICE": ["'cuda'", "'cpu'"],
        "other.device": ["'cuda'", "'cpu'"],
        "cfg.workers": ["8", "0"],
    }.items():
        value = found[key]
        assert isinstance(value, Computed)
        assert all(text in value.text for text in values)
        assert "torch.cuda.is_available()" in value.text
    assert isinstance(found["FAST"], Computed)
    assert (found["SAME"], found["cfg.pin"], found["TAKEN"]) == (1, True, 1)


def test_later_writes(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        config="""\
        from copy import deepcopy
        base = dict(a=1, b=dict(c=2))
        alias = base
        other = deepcopy(base)
        base["b"]["c"] = 3
        base["b"]["new"] = {"deep": 4}
        alias.update({"a": 5}, d=6)
        base.setdefault("a", 0)
        base["d"] += 1
        other |= {"e": 8}
        spread = {**base["b"], "c": 9}
        union = base["b"] | {"c": 10}
        del base["d"]
        other.pop("b")
        """,
    )
    values = {key: value.value for key, value in found.config.items()}
    assert values == {
        "base.a": 5,
        "base.b.c": 3,
        "base.b.new.deep": 4,
        "alias.a": 5,
        "alias.b.c": 3,
        "alias.b.new.deep": 4,
        "other.a": 1,
        "other.e": 8,
        "spread.c": 9,
        "spread.new.deep": 4,
        "union.c": 10,
        "union.new.deep": 4,
    }
    assert found.config["base.b.c"].place.line == 5
    assert found.problems == ()


def test_what_may_add_keys_is_said(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        config="""\
        cfg = {"a": 1, **load()}
        other = {"b": {}}
        for name in names:
            other["b"][name] = 1
        """,
    )
    assert found.config["cfg.a"].value == 1
    assert [p.split(":")[1] for p in found.problems] == ["1", "4"]


def test_configs_imported_from_the_repository(tmp_path: Path) -> None:
    found = config(
        tmp_path,
        """
        from base import base_cfg, N
        from more import *
        import numpy as np
        base_cfg['x'] = N
        cfg = dict(base_cfg, y=2)
        """,
        base="base_cfg = {'x': 1, 'k': 0}\nN = 3\n",
        more="more_cfg = {'m': 1}\n_hidden = {'h': 1}\n",
    )
    assert found == {"cfg.x": 3, "cfg.k": 0, "cfg.y": 2, "base_cfg.x": 3, "base_cfg.k": 0, "N": 3, "more_cfg.m": 1}


def test_modules_that_import_each_other(tmp_path: Path) -> None:
    assert config(tmp_path, "from base import b\na = 1\n", base="from config import a\nb = a\n")["a"] == 1


def test_the_config_in_a_folder_of_the_home_layout(tmp_path: Path) -> None:
    found = repository(tmp_path, config__config="A = 1\n", config__data_presets="data_preset_single_cfg = {'x': {}}\n")
    assert found.config["A"].value == 1
    assert list(found.presets) == ["x"]
    assert found.config_file == tmp_path / "src" / "config" / "config.py"


def test_no_config_at_all(tmp_path: Path) -> None:
    found = repository(tmp_path)
    assert (found.config_file, found.presets_file, dict(found.config), dict(found.presets)) == (None, None, {}, {})


@pytest.mark.parametrize(
    "hostile",
    [
        "A = 'x' * 10**9",
        "A = 9 ** 9 ** 9",
        "A = 1 << 10**9",
        "A = '%1000000000d' % 1",
        "A = ((1,) * 5000) * 5000",
        "A = 'x' * 9000\nB = A + A\nC = B + B",
        f"A = {'-' * 400}1",
    ],
)
def test_source_cannot_fill_our_memory(tmp_path: Path, hostile: str) -> None:
    assert "A" in config(tmp_path, hostile)


# data_presets.py

PRESETS = """\
from config.vocabulary import *
from config.vocabulary import drum_vocab_presets, program_vocab_presets
from utils.utils import merge_splits

data_preset_single_cfg = {
    "musicnet": {"eval_vocab": [MUSICNET], "train_split": merge_splits(["a"], name="musicnet")},
    "slakh": {"eval_vocab": [None] * 5, "weights": [1] + [2]},
}
data_preset_multi_cfg = {
    "all": {"presets": ["slakh", "nowhere"], "eval_drum_vocab": drum_vocab_presets["ksh"]},
    "slakh": {"presets": ["slakh"]},
}
data_preset_single_cfg["late"] = {"train_split": None}
data_preset_multi_cfg.update({"later": {}}, latest={})
data_preset_multi_cfg.update(**data_preset_single_cfg)
helper = {"not": "a preset"}
"""


def test_preset_names_and_places(tmp_path: Path) -> None:
    found = repository(tmp_path, data_presets=PRESETS, config__vocabulary="drum_vocab_presets = {'ksh': {}}\n")
    places = {name: preset.place.line for name, preset in found.presets.items()}
    assert places == {"musicnet": 6, "slakh": 7, "late": 13, "all": 10, "later": 14, "latest": 14}
    assert found.problems == ()


def test_presets_built_by_a_comprehension_or_a_call_are_said(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        data_presets="""\
        data_preset_single_cfg = {f"cv{i}": {} for i in range(5)}
        data_preset_multi_cfg = {"known": {}, **build()}
        """,
    )
    assert list(found.presets) == ["known"]
    assert [p.split(":")[1] for p in found.problems] == ["2", "1"]


def test_presets_by_another_name_are_the_dictionaries_of_dictionaries(tmp_path: Path) -> None:
    found = repository(tmp_path, data_presets="SETS = {'a': {'x': 1}, 'b': {}}\nflat = {'c': 1}\n")
    assert list(found.presets) == ["a", "b"]


def test_presets_imported_from_another_module(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        data_presets="from more import data_preset_single_cfg\n",
        more="data_preset_single_cfg = {'a': {}}\n",
    )
    assert found.presets["a"].place.file.name == "more.py"
