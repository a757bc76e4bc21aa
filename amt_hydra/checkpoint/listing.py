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

    A last.ckpt is a copy or link of a named file at best, and loses a tie to it; other ties go to the later step.
    NaN is no score.
    """
    if mode not in ("max", "min"):
        raise ValueError(f"mode is {mode!r}; valid are max and min")
    sign = 1 if mode == "max" else -1
    looked = ((_score(x, monitor), x) for x in xrays if x.whole)
    scored = [(score, x) for score, x in looked if score is not None and not isnan(score)]
    ranked = max(scored, key=lambda s: (sign * s[0], s[1].path.name != LAST, s[1].global_step or 0), default=None)
    return ranked[1] if ranked else None


def _score(x: Xray, monitor: str | None) -> float | None:
    if monitor is None:
        return x.score
    return next((m.current_score for m in x.monitors if m.monitor == monitor and m.current_score is not None), None)
