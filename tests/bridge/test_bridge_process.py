"""The bridge as its own process: values of a config module, what passes through, and what is refused."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

BRIDGE = Path(__file__).resolve().parents[2] / "amt_hydra" / "bridge"

CONFIG = '''\
"""The settings."""
from __future__ import annotations

import os
from copy import deepcopy

RATE = 16000
if os.environ.get("BIG"):
    SIZE = 64
else:
    SIZE = 8
cfg = {"LR": {"warmup": 1000, "betas": (0.9, 0.99)}, "size": SIZE, "per-tf": {"depth": 3}}
copied = deepcopy(cfg)
cfg["derived"] = cfg["LR"]["warmup"] * 2
cfg["size"] = cfg["size"] + 1
'''
SHOWS = """\
import json, sys
from config import RATE, cfg, copied
print(json.dumps([RATE, cfg, copied, sys.argv[1:], __name__, __file__.rpartition("/")[2]]))
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str
    events: list[dict[str, Any]]

    @property
    def shown(self) -> Any:
        return json.loads(self.out.splitlines()[-1])


@pytest.fixture
def folder(weird_path: Path) -> Path:
    weird_path.mkdir(parents=True, exist_ok=True)
    return weird_path


def run(
    folder: Path,
    train: str = SHOWS,
    config: Mapping[str, object] | None = None,
    capabilities: Mapping[str, object] | None = None,
    argv: tuple[str, ...] = ("base", "--x=1", "-ps", "-2", "2"),
    **variables: str,
) -> Ended:
    """Write a repository and a plan, and start the bridge in train.py's place."""
    source = folder / "src"
    source.mkdir(exist_ok=True)
    (source / "config.py").write_text(CONFIG)
    (source / "train.py").write_text(train)
    entries = [{"file": str(source / "config.py"), "key": k.split("."), "value": v} for k, v in (config or {}).items()]
    plan = {
        "schema": 1,
        "root": str(folder),
        "train": str(source / "train.py"),
        "checkpoints": str(folder / "checkpoints"),
        "config": entries,
        "capabilities": capabilities or {},
    }
    (folder / "bridge.json").write_text(json.dumps(plan))
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AMT_", "BIG"))}
    done = subprocess.run(
        [sys.executable, str(BRIDGE / "run.py"), *argv],
        cwd=source,
        env={**kept, "AMT_BRIDGE_PLAN": str(folder / "bridge.json"), **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    report = folder / f"bridge-rank{variables.get('RANK', '0')}.jsonl"
    events = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
    return Ended(done.returncode, done.stdout, done.stderr, events)


# Values.


def test_a_value_reaches_all_that_is_made_of_it(folder: Path) -> None:
    _, cfg, copied, *_ = run(folder, config={"cfg.LR.warmup": 5}).shown
    assert cfg["LR"]["warmup"] == copied["LR"]["warmup"] == 5
    assert cfg["derived"] == 10


def test_a_value_that_the_module_changes_later_is_the_one_asked_for_at_its_end(folder: Path) -> None:
    assert run(folder, config={"cfg.size": 3}).shown[1]["size"] == 3


def test_scalars_tuples_and_hyphens(folder: Path) -> None:
    rate, cfg, *_ = run(folder, config={"RATE": 8000, "cfg.LR.betas": [0.8, 0.9], "cfg.per-tf.depth": 6}).shown
    assert (rate, cfg["LR"]["betas"], cfg["per-tf"]["depth"]) == (8000, [0.8, 0.9], 6)


def test_a_name_bound_in_a_branch_is_changed_where_it_is_bound(folder: Path) -> None:
    assert run(folder, config={"SIZE": 2}).shown[1]["size"] == 3, "the module itself adds one"


def test_a_module_imported_under_two_names_is_changed_in_both(folder: Path) -> None:
    train = (
        "import importlib.util, json, config\n"
        "spec = importlib.util.spec_from_file_location('again', config.__file__)\n"
        "import sys; sys.path.insert(0, '..'); import src.config as other\n"
        "print(json.dumps([config.RATE, other.RATE]))\n"
    )
    assert run(folder, train, {"RATE": 1}).shown == [1, 1]


def test_a_key_that_is_not_there_is_refused_with_those_that_are(folder: Path) -> None:
    ended = run(folder, config={"cfg.LR.warm_up": 5})
    assert ended.code == 78
    assert "no cfg.LR.warm_up: no 'warm_up' among betas, warmup" in ended.err
    assert ended.out.count("\n") == 1, "train.py was not reached"
    assert ended.events[-1]["event"] == "refused"


def test_a_config_that_is_never_imported_is_refused_at_the_end(folder: Path) -> None:
    ended = run(folder, "print('trained')", {"RATE": 1})
    assert ended.code == 78
    assert "never applied: RATE" in ended.err


def test_each_change_is_said_and_reported_with_the_old_value(folder: Path) -> None:
    ended = run(folder, config={"cfg.LR.warmup": 5})
    assert "[amt_hydra bridge] cfg.LR.warmup: 5 (was 1000)" in ended.out
    assert {"event": "patched", "rank": 0, "what": "cfg.LR.warmup", "detail": "5 (was 1000)"} in ended.events
    assert ended.events[-1]["event"] == "end"


def test_another_rank_reports_to_its_own_file_and_says_the_plan_only(folder: Path) -> None:
    first, second = run(folder, config={"RATE": 1}), run(folder, config={"RATE": 1}, RANK="1")
    assert [e["hash"] for e in (first.events[0], second.events[0])] == [first.events[0]["hash"]] * 2
    assert "RATE" not in second.out.splitlines()[0] + second.out.splitlines()[-2]
    assert second.events[0]["rank"] == 1


# What passes through.


def test_train_py_is_main_with_its_own_arguments(folder: Path) -> None:
    assert run(folder).shown[3:] == [["base", "--x=1", "-ps", "-2", "2"], "__main__", "train.py"]


@pytest.mark.parametrize(("train", "code"), [("raise SystemExit(3)", 3), ("import sys; sys.exit(0)", 0), ("1/0", 1)])
def test_its_exit_code_is_its_own(folder: Path, train: str, code: int) -> None:
    assert run(folder, train).code == code


def test_an_error_of_its_own_is_shown_with_its_line(folder: Path) -> None:
    ended = run(folder, "x = 1\nraise ValueError('of its own')\n", {"RATE": 1})
    assert ended.code == 1
    assert 'train.py", line 2' in ended.err
    assert "ValueError: of its own" in ended.err
    assert "never applied" not in ended.err


def test_wrong_arguments_end_as_argparse_says(folder: Path) -> None:
    assert run(folder, "import argparse; argparse.ArgumentParser().parse_args()").code == 2


def test_modules_of_the_repository_may_have_the_names_of_ours(folder: Path) -> None:
    (folder / "src").mkdir()
    for name in ("session", "hooks", "values", "weights"):
        (folder / "src" / f"{name}.py").write_text(f"NAME = 'theirs {name}'\n")
    train = "import session, hooks, values, weights, json; print(json.dumps([session.NAME, weights.NAME]))"
    assert run(folder, train).shown == ["theirs session", "theirs weights"]


# A forced scratch run.


def test_a_forced_scratch_run_leaves_last_ckpt_behind_under_another_name(folder: Path) -> None:
    last = folder / "checkpoints" / "last.ckpt"
    last.parent.mkdir()
    last.write_text("old")
    assert run(folder, capabilities={"force_scratch": {}}, AMT_FORCE_SCRATCH="0").code == 0
    assert last.exists()
    assert run(folder, capabilities={"force_scratch": {}}, AMT_FORCE_SCRATCH="1").code == 0
    (aside,) = last.parent.iterdir()
    assert aside.name.startswith("last.ckpt.before-")
    assert aside.read_text() == "old"


# The plan.


def test_without_a_plan_it_says_what_it_is(folder: Path) -> None:
    done = subprocess.run([sys.executable, str(BRIDGE / "run.py")], capture_output=True, text=True, check=False, env={})
    assert done.returncode != 0
    assert "in place of train.py" in done.stderr


def test_a_capability_that_it_does_not_have_is_refused(folder: Path) -> None:
    ended = run(folder, capabilities={"teleport": {}})
    assert ended.code == 78
    assert "teleport" in ended.err


@pytest.mark.parametrize("file", sorted(BRIDGE.glob("*.py")), ids=lambda f: f.name)
def test_every_file_is_python_3_8(file: Path) -> None:
    ast.parse(file.read_text(), feature_version=(3, 8))


@pytest.mark.parametrize("file", sorted(BRIDGE.glob("*.py")), ids=lambda f: f.name)
def test_nothing_is_imported_but_the_standard_library_and_itself(file: Path) -> None:
    """torch and Lightning are looked at when train.py has imported them."""
    top = [node for node in ast.parse(file.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [n.module if isinstance(n, ast.ImportFrom) else n.names[0].name for n in top if not getattr(n, "level", 0)]
    assert {str(name).split(".")[0] for name in names} <= sys.stdlib_module_names
