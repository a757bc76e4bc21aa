"""Bad input of every kind: one clear message, the documented exit code, no traceback, nothing half-written."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from desk import TINY, Desk, Run, environment

Tree = Callable[[Path], dict[str, tuple[int, int, bytes]]]


def refused(run: Run, code: int, *facts: str) -> None:
    text = run.out + run.err
    assert run.code == code, text
    assert "Traceback" not in text
    assert "bug in amt_hydra" not in text
    assert all(fact in text for fact in facts), text


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A repository whose train.py does not parse."""
    (tmp_path / "repo" / "src").mkdir(parents=True)
    (tmp_path / "repo" / "src" / "train.py").write_text("import argparse\nparser = argparse.ArgumentParser(\n")
    return tmp_path / "repo"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB. Mounting one takes root, which CI is."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], check=False)
    if mounted.returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_no_repository_where_amt_repo_points(desk: Desk) -> None:
    refused(desk("plan", AMT_REPO="/nowhere/at all"), 78, "AMT_REPO", "/nowhere/at all")


def test_a_folder_that_is_no_repository(desk: Desk, tmp_path: Path) -> None:
    refused(desk("plan", f"repo.path={tmp_path}"), 78, str(tmp_path), "train.py")


def test_a_train_py_that_does_not_parse(desk: Desk, broken: Path) -> None:
    refused(desk("plan", f"repo.path={broken}"), 78, f"{broken}/src/train.py:2")


def test_an_unknown_preset_with_the_nearest(desk: Desk) -> None:
    refused(desk("plan", "data_presets=syntetic"), 78, "syntetic", "data_presets=synthetic")


def test_a_checkpoint_that_is_not_one(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "x=1.ckpt").write_text("<html>not found</html>")
    refused(desk("plan", "init=warmstart", f"init.ckpt={tmp_path}/x=1.ckpt"), 78, f"{tmp_path}/x=1.ckpt")


def test_a_checkpoint_that_cannot_be_read(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "folder.ckpt").mkdir()
    refused(desk("checkpoint", str(tmp_path / "folder.ckpt")), 78, "folder")


def test_outputs_that_is_a_file(desk: Desk, tmp_path: Path, tree: Tree) -> None:
    (tmp_path / "outputs").write_text("in the way")
    before = tree(tmp_path)
    refused(desk(f"paths.outputs={tmp_path}/outputs", *TINY), 78, f"{tmp_path}/outputs", "no folder")
    assert tree(tmp_path) == before


def test_outputs_on_a_file_system_that_cannot_be_written(desk: Desk) -> None:
    refused(desk("paths.outputs=/proc/outputs", *TINY), 78, "/proc")


def test_a_full_disk_leaves_nothing_half_written(desk: Desk, small_disk: Path, tree: Tree) -> None:
    (small_disk / "fill").write_bytes(b"x" * 60 * 1024)
    before = tree(small_disk)
    refused(desk(f"paths.outputs={small_disk}", *TINY), 78, str(small_disk))
    assert tree(small_disk).keys() == before.keys()


def test_home_unset(desk: Desk) -> None:
    variables = environment(desk.folder)
    del variables["HOME"]
    words = [sys.executable, "-m", "amt_hydra", "plan"]
    done = subprocess.run(words, cwd=desk.folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "bundled" in done.stdout


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}])
def test_a_terminal_that_cannot_show_every_letter(desk: Desk, locale: dict[str, str]) -> None:
    run = desk("plan", "exp_id=旋律", **locale)
    assert run.code == 0, run.err
    assert "Traceback" not in run.err


def test_a_folder_one_stands_in_that_is_gone(desk: Desk) -> None:
    gone = desk.folder / "gone"
    gone.mkdir()
    script = f"cd {str(gone)!r} && rmdir {str(gone)!r} && exec {sys.executable} -m amt_hydra plan"
    done = subprocess.run(
        ["bash", "-c", script], env=environment(desk.folder), capture_output=True, text=True, check=False
    )
    refused(Run(done.returncode, done.stdout, done.stderr), 64, "gone")
