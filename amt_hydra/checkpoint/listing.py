"""The checkpoints of one folder, the newest and the best of them."""

from collections.abc import Iterable
from math import isnan
from pathlib import Path

from amt_hydra.checkpoint.facts import Xray
from amt_hydra.checkpoint.look import xray

LAST = "last.ckpt"


def checkpoints(folder: Path) -> tuple[Xray, ...]:
    """Look at every *.ckpt of `folder`, not of its subfolders, sorted by name; () where there is no such folder."""
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".ckpt"))
    except (OSError, ValueError):
        return ()
    return tuple(xray(folder / name) for name in names)


def newest(xrays: Iterable[Xray]) -> Xray | None:
    """Return the whole checkpoint with the largest global_step, of several the one written last; None without any."""
    whole = [x for x in xrays if x.whole and x.global_step is not None]
    return max(whole, key=lambda x: (x.global_step or 0, x.mtime), default=None)


def best(xrays: Iterable[Xray], mode: str = "max", monitor: str | None = None) -> Xray | None:
    """Return the whole checkpoint with the best score (`mode` is "max" or "min"); None where none has one.

    The score is that of `monitor` where it is given, else of the first monitor that has one.

    A last.ckpt is a copy or link of a named file at best, and loses a tie to it; other ties go to the file that the
    newest one's own state names as the best, else to the earlier step: Lightning keeps the first. NaN is no score.
    """
    if mode not in ("max", "min"):
        raise ValueError(f"mode is {mode!r}; valid are max and min")
    sign = 1 if mode == "max" else -1
    whole = [x for x in xrays if x.whole]
    looked = ((_score(x, monitor), x) for x in whole)
    scored = [(score, x) for score, x in looked if score is not None and not isnan(score)]
    named = _named(newest(whole), monitor)

    def rank(item: tuple[float, Xray]) -> tuple[float, bool, bool, int]:
        score, x = item
        return sign * score, x.path.name != LAST, x.path.name in named, -(x.global_step or 0)

    return max(scored, key=rank)[1] if scored else None


def _named(x: Xray | None, monitor: str | None) -> frozenset[str]:
    """Names of the files that a checkpoint's own state calls the best."""
    kept = [m for m in x.monitors if monitor in (None, m.monitor)] if x else []
    return frozenset(Path(m.best_path).name for m in kept if m.best_path)


def _score(x: Xray, monitor: str | None) -> float | None:
    if monitor is None:
        return x.score
    return next((m.current_score for m in x.monitors if m.monitor == monitor and m.current_score is not None), None)
