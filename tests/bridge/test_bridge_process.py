"""train.py in the bridge's process: as Python itself would run it, and its end is its own."""

import ast
import json
import sys
from pathlib import Path

import pytest
from bridge_runs import ENTRY, Ended, start, started


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    return tmp_path / "src"


def run(folder: Path, train: str, *argv: str, **how: object) -> Ended:
    (folder / "train.py").write_text(train)
    return start(folder / "train.py", folder.parent / "plan" / "bridge.json", *argv, **how)  # type: ignore[arg-type]


def test_every_file_is_python_3_8() -> None:
    files = sorted(ENTRY.parent.glob("*.py"))
    assert len(files) > 5
    for file in files:
        ast.parse(file.read_text(encoding="utf-8"), file.name, feature_version=(3, 8))


def test_nothing_is_imported_but_the_standard_library_and_itself() -> None:
    """torch and Lightning are looked at when train.py has imported them."""
    for file in ENTRY.parent.glob("*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            names = [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert {str(name).split(".")[0] for name in names} <= sys.stdlib_module_names, file.name


# Its end.


@pytest.mark.parametrize(
    ("last", "code"),
    [("sys.exit(3)", 3), ("sys.exit()", 0), ("sys.exit(0)", 0), ("sys.exit('no data')", 1), ("os._exit(5)", 5)],
)
def test_an_exit_code_passes_through(folder: Path, last: str, code: int) -> None:
    ended = run(folder, f"import os, sys\n{last}\n")
    assert ended.code == code
    assert ("no data" in ended.err) == ("no data" in last)


def test_an_exception_shows_train_py_line(folder: Path) -> None:
    ended = run(folder, "def main():\n    print(1 / 0)\n\n\nmain()\n")
    assert ended.code == 1
    assert f'File "{folder}/train.py", line 2, in main\n    print(1 / 0)' in ended.err
    assert ended.err.endswith("ZeroDivisionError: division by zero\n")


def test_a_wrong_option_ends_with_2(folder: Path) -> None:
    ended = run(folder, "import argparse\nargparse.ArgumentParser().parse_args()\n", "--nothing")
    assert ended.code == 2
    assert "unrecognized arguments: --nothing" in ended.err


def test_a_failure_of_its_own_outweighs_what_was_not_applied(folder: Path) -> None:
    ended = run(folder, "import sys\nsys.exit(3)\n", added={"last": {}})
    assert ended.code == 3
    assert "refused" not in ended.err


def test_what_was_never_applied_is_refused(folder: Path) -> None:
    ended = run(folder, "print('over')\n", added={"last": {}, "csv": {}})
    assert ended.code == 78
    assert "never applied: csv, last" in ended.err


def test_what_was_never_applied_is_refused_after_sys_exit_0(folder: Path) -> None:
    assert run(folder, "import sys\nsys.exit(0)\n", added={"last": {}}).code == 78


# Its surroundings.


def test_it_is_main_and_finds_itself(folder: Path) -> None:
    (folder / "beside.txt").write_text("here")
    train = """\
import inspect, os, sys
def f(): return 1
print(__name__, sys.modules["__main__"].f is f, __spec__, __file__ == os.path.abspath("train.py"))
print(open(os.path.join(os.path.dirname(__file__), "beside.txt")).read(), sys.path[0] == os.getcwd(), sys.argv[1:])
print(inspect.getsource(f), __import__("pickle").loads(__import__("pickle").dumps(f)) is f)
"""
    ended = run(folder, train, "a b", "-x", "")
    assert ended.out.splitlines()[1:] == [
        "__main__ True None True",
        "here True ['a b', '-x', '']",
        "def f(): return 1",
        " True",
    ]


def test_modules_of_the_repository_with_the_bridges_names_are_its_own(folder: Path) -> None:
    names = [file.stem for file in ENTRY.parent.glob("*.py") if file.stem != "__init__"]
    for name in names:
        (folder / f"{name}.py").write_text("mine = True\n")
    train = "\n".join(f"import {name}\nassert {name}.mine" for name in names)
    assert run(folder, train).code == 0


def test_under_python_s_safe_path_nothing_is_taken_off_it(folder: Path) -> None:
    ended = run(folder, "import sys\nprint(any('bridge' in p for p in sys.path), '' in sys.path)\n", python=("-P",))
    assert ended.out.splitlines()[-1] == "False False"


@pytest.mark.parametrize("name", ["with space", 'it\'s "quoted"', "楽譜 — メロディ", "%d {x} $HOME"])
def test_odd_names_of_folders(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name / "src"
    folder.mkdir(parents=True)
    (folder / "config.py").write_text("cfg = {'a': 1}\n")
    (folder / "train.py").write_text("import config\nprint(config.cfg)\n")
    plan = tmp_path / name / "plan" / "bridge.json"
    ended = start(folder / "train.py", plan, config={folder / "config.py": {"cfg.a": name}})
    assert ended.code == 0, ended.all
    assert repr({"a": name}) in ended.out
    assert "cfg.a" in ended.patched()


def test_a_terminal_that_knows_ascii_only_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.py").write_text("cfg = {'a': 1}\n")
    (tmp_path / "train.py").write_text("import config\nprint('trained')\n")
    how = {"config": {tmp_path / "config.py": {"cfg.a": "音"}}}
    ended = start(tmp_path / "train.py", tmp_path / "b.json", PYTHONIOENCODING="ascii", **how)  # type: ignore[arg-type]
    assert ended.code == 0, ended.all
    assert "trained" in ended.out


def test_a_report_that_cannot_be_written_ends_nothing(folder: Path) -> None:
    (folder.parent / "plan" / "bridge-rank0.jsonl").mkdir(parents=True)
    ended = run(folder, "print('trained')\n")
    assert ended.code == 0
    assert "no report" in ended.out
    assert "trained" in ended.out


# The plan.


def test_without_a_plan_it_says_who_starts_it(folder: Path) -> None:
    ended = started(folder, Path(), AMT_BRIDGE_PLAN="")
    assert ended.code not in (0, 78)
    assert "AMT_BRIDGE_PLAN is not set" in ended.err


@pytest.mark.parametrize(
    ("change", "words"),
    [({"schema": 2}, "is of schema 2"), ({"capabilities": {"teleport": {}}}, "asks for teleport")],
)
def test_a_plan_of_another_bridge_is_refused(folder: Path, change: dict[str, object], words: str) -> None:
    ended = run(folder, "print('trained')\n")
    ended.plan.write_text(json.dumps({**json.loads(ended.plan.read_text()), **change}))
    again = started(folder, ended.plan)
    assert again.code == 78
    assert words in again.err
    assert "trained" not in again.out


# Ranks.


@pytest.mark.parametrize(
    ("variables", "rank"),
    [
        ({"RANK": "3", "LOCAL_RANK": "1"}, 3),
        ({"LOCAL_RANK": "1", "NODE_RANK": "0"}, 1),
        ({"LOCAL_RANK": "1", "SLURM_PROCID": "0"}, 1),  # Lightning's own children inside one Slurm task
        ({"SLURM_PROCID": "5", "SLURM_LOCALID": "1"}, 5),
    ],
)
def test_each_rank_has_its_own_report(folder: Path, variables: dict[str, str], rank: int) -> None:
    ended = run(folder, "", **variables)
    assert ended.events(rank)[0]["rank"] == rank
    assert f"rank {rank}: plan {ended.hash}" in ended.out


def test_what_was_changed_is_said_by_rank_0_only(folder: Path) -> None:
    (folder / "config.py").write_text("rate = 1\n")
    how = {"config": {folder / "config.py": {"rate": 2}}}
    ended = run(folder, "import config\n", RANK="1", **how)
    assert ended.patched(1) == {"rate": "2 (was 1)"}
    assert "was 1" not in ended.out


def test_a_forced_scratch_run_moves_last_ckpt_aside_and_says_so(folder: Path) -> None:
    last = folder / "checkpoints" / "last.ckpt"
    last.parent.mkdir()
    last.write_text("old")
    train = "import os\nprint(os.listdir('checkpoints'))\n"
    off = run(folder, train, added={"force_scratch": {}}, AMT_FORCE_SCRATCH="No")
    assert "['last.ckpt']" in off.out
    on = run(folder, train, added={"force_scratch": {}}, AMT_FORCE_SCRATCH="1")
    assert on.code == 0
    assert "AMT_FORCE_SCRATCH is on" in on.out
    (aside,) = last.parent.iterdir()
    assert aside.name.startswith("last.ckpt.before-")
    assert aside.read_text() == "old"
