"""What git knows, asked without side effects."""

import os
import subprocess
from pathlib import Path

import pytest

from amt_hydra.repository.git import commit, diff


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "採譜 a=b"
    root.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "x")
    git(root, "init", "-q")
    (root / "train.py").write_text("x = 1\n")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "x")
    return root


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_clean_and_dirty(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert commit(checkout) == (head, False)
    assert diff(checkout, 1000) == ""
    (checkout / "train.py").write_text("x = '修改'\n")
    assert commit(checkout) == (head, True)
    assert "-x = 1\n+x = '修改'\n" in diff(checkout, 1000)


def test_a_new_file_is_dirty(checkout: Path) -> None:
    (checkout / "new.py").write_text("")
    assert commit(checkout)[1] is True


def test_a_long_diff_is_cut(checkout: Path) -> None:
    (checkout / "train.py").write_text("y\n" * 5000)
    found = diff(checkout, 300)
    assert len(found.encode()) < 400
    assert "cut" in found.splitlines()[-1]


def test_no_repository_no_commit_no_git(tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert commit(tmp_path) == (None, None)
    assert diff(tmp_path, 100) == ""
    assert commit(tmp_path / "nowhere") == (None, None)
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    assert commit(empty) == (None, None)
    monkeypatch.setenv("PATH", str(empty))
    assert commit(checkout) == (None, None)


def test_programs_that_the_repository_names_do_not_run(checkout: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "diff.x.command", "diff.x.textconv", "filter.x.clean"):
        git(checkout, "config", key, str(program))
    (checkout / ".gitattributes").write_text("*.py diff=x\n")
    hooks = checkout / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-index-change").symlink_to(program)
    (checkout / "train.py").write_text("x = 2\n")
    assert commit(checkout)[1] is True
    assert "+x = 2" in diff(checkout, 1000)
    assert not marker.exists()


def test_the_index_is_not_rewritten(checkout: Path) -> None:
    index = checkout / ".git" / "index"
    before = (index.read_bytes(), index.stat().st_mtime_ns)
    os.utime(checkout / "train.py")
    assert commit(checkout)[1] is False
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before


def test_variables_of_an_outer_git_do_not_mislead(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    assert commit(checkout)[0] is not None
