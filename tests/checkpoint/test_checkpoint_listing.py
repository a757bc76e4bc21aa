"""The checkpoints of a folder, the newest and the best."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from amt_hydra.checkpoint import Monitor, Xray, best, checkpoints, newest

Write = Callable[..., Path]


def _x(name: str, step: int | None = 1, score: float | None = None, whole: bool = True, mtime: float = 0.0) -> Xray:
    monitors = (Monitor("loss", None, None, None), Monitor("f", None, None, score))
    return Xray(
        Path("/r") / name, 1, mtime, None, whole, None if whole else "cut short", global_step=step, monitors=monitors
    )


def test_a_folder_is_listed_by_name_and_not_below(saved: Write, tmp_path: Path) -> None:
    for name in ("b.ckpt", "a.ckpt", "last.ckpt", "a.pt"):
        saved({"global_step": 1}, name)
    (tmp_path / "below").mkdir()
    saved({"global_step": 1}, "below/c.ckpt")
    (tmp_path / "broken.ckpt").symlink_to("nowhere.ckpt")
    (tmp_path / "sharded.ckpt").mkdir()
    seen = checkpoints(tmp_path)
    assert [x.path.name for x in seen] == ["a.ckpt", "b.ckpt", "broken.ckpt", "last.ckpt", "sharded.ckpt"]
    assert [x.whole for x in seen] == [True, True, False, True, False]


def test_no_folder_is_no_checkpoints(tmp_path: Path) -> None:
    assert checkpoints(tmp_path / "none") == checkpoints(tmp_path) == checkpoints(Path("a\0b")) == ()
    (tmp_path / "file").touch()
    assert checkpoints(tmp_path / "file") == ()


def test_newest_is_the_largest_step_among_whole_ones() -> None:
    a, b, cut = _x("a", 5), _x("b", 7), _x("c", 9, whole=False)
    assert newest((a, b, cut)) is b
    assert newest((cut, _x("plain", None))) is None
    assert newest(()) is None


def test_newest_of_one_step_is_the_one_written_last() -> None:
    a, b = _x("a", 5, mtime=2.0), _x("b", 5, mtime=1.0)
    assert newest((b, a)) is newest((a, b)) is a


def test_best_by_score_in_both_directions() -> None:
    a, b, c = _x("a", score=0.5), _x("b", score=0.75), _x("c", score=0.9, whole=False)
    assert best((a, b, c, _x("d"))) is b
    assert best((a, b, c, _x("d")), "min") is a
    assert best((c, _x("d"))) is None


def test_best_ignores_nan() -> None:
    a = _x("a", score=0.5)
    for mode in ("max", "min"):
        assert best((_x("n", score=float("nan")), a, _x("n", score=float("nan"))), mode) is a


@pytest.mark.parametrize("mode", ["max", "min"])
def test_a_last_loses_ties_and_nothing_else(mode: str) -> None:
    last, named = _x("last.ckpt", 9, score=0.5), _x("epoch=1.ckpt", 8, score=0.5)
    assert best((last, named), mode) is best((named, last), mode) is named
    better = _x("last.ckpt", 9, score=0.6 if mode == "max" else 0.4)
    assert best((better, named), mode) is better


@pytest.mark.parametrize("mode", ["max", "min"])
def test_of_equal_scores_the_first_is_the_best_unless_the_newest_names_another(mode: str) -> None:
    """Lightning's ModelCheckpoint keeps the first, and writes it down as best_model_path."""
    files = [_x(f"{step}.ckpt", step, score=0.0) for step in (2, 4, 6)]
    assert best(files, mode) is best(files[::-1], mode) is files[0]
    state = Monitor("f", "/moved/since/4.ckpt", 0.0, 0.0)
    last = replace(_x("last.ckpt", 8, score=0.0), monitors=(state,))
    assert best([*files, last], mode) is best([last, *files], mode) is files[1]
    gone = replace(last, monitors=(replace(state, best_path="/elsewhere/3.ckpt"),))
    assert best([*files, gone], mode) is files[0]


def test_best_of_a_named_monitor() -> None:
    a, b = _x("a", score=0.5), _x("b", score=0.75)
    assert best((a, b), "max", "f") is b
    assert best((a, b), "max", "loss") is None


def test_a_mode_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="'maximum'; valid are max and min"):
        best((), "maximum")


def test_real_files(saved: Write, tmp_path: Path) -> None:
    for step, score in ((10, 0.5), (20, 0.75), (30, 0.25)):
        state = {"monitor": "f", "best_model_path": "", "best_model_score": None, "current_score": torch.tensor(score)}
        path = saved({"global_step": step, "callbacks": {"ModelCheckpoint{}": state}}, f"step={step}.ckpt")
    (tmp_path / "last.ckpt").write_bytes(path.read_bytes())
    os.utime(tmp_path / "last.ckpt", (1, 1))
    seen = checkpoints(tmp_path)
    assert newest(seen).path.name == "step=30.ckpt"  # type: ignore[union-attr]
    assert best(seen).path.name == "step=20.ckpt"  # type: ignore[union-attr]
    assert best(seen, "min").path.name == "step=30.ckpt"  # type: ignore[union-attr]
