"""How a launch ended: what it trained, and what its exit code means for us."""

import contextlib
import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from amt_hydra.checkpoint import best, checkpoints
from amt_hydra.errors import INTERRUPTED, TRAINED_NOTHING
from amt_hydra.identity import Identity
from amt_hydra.launch.run import Ended
from amt_hydra.runstate import Place, describe


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a launch."""

    code: int
    """Our exit code: train.py's own, 65 where it ended well having trained nothing, 130 after Ctrl-C."""
    verdict: str
    """One line for a person."""
    step: int | None
    """global_step reached, as far as checkpoints and metrics tell."""
    best: float | None
    """Best monitored value among the checkpoints kept."""
    best_checkpoint: Path | None
    seconds: float
    resumable: bool
    """last.ckpt is there, and whole."""


def seen(place: Place) -> Mapping[Path, tuple[int, int]]:
    """The files that tell steps, with time of change and size: what a launch finds there is none of its doing."""
    found = {}
    for file in (*place.checkpoints.glob("*.ckpt"), *place.experiment.glob("**/metrics.csv")):
        with contextlib.suppress(OSError):  # a link to nothing, or gone by now
            status = file.stat()
            found[file] = (status.st_mtime_ns, status.st_size)
    return found


def judge(ended: Ended, place: Place, identity: Identity, mode: str, before: Mapping[Path, tuple[int, int]]) -> Outcome:
    """Compare what the launch left in the experiment's folder with what was `seen` before, and with its start."""
    after = seen(place)
    new = {file for file in after if after[file] != before.get(file)}
    found = checkpoints(place.checkpoints)
    written = [x for x in found if x.path in new]
    top = best(found if identity.actual == "resume" else written, mode)
    steps = [x.global_step for x in written if x.whole] + [_last_step(f) for f in new if f.name == "metrics.csv"]
    reached = max((step for step in steps if step is not None), default=None)
    start = identity.start_step
    if ended.interrupted:
        code, verdict = INTERRUPTED, f"interrupted at step {reached or start}"
    elif ended.code != 0:
        how = f"was ended by signal {ended.signal}" if ended.signal else f"ended with exit code {ended.code}"
        code, verdict = ended.code, f"train.py {how}, at step {reached or start}"
    elif reached is None or reached <= start:
        code, verdict = TRAINED_NOTHING, f"train.py ended with exit code 0, but trained nothing beyond step {start}"
    else:
        code, verdict = 0, f"trained steps {start} to {reached}" + (f"; best is {describe(top)}" if top else "")
    return Outcome(
        code=code,
        verdict=verdict,
        step=reached,
        best=top.score if top else None,
        best_checkpoint=top.path if top else None,
        seconds=ended.seconds,
        resumable=any(x.path == place.last and x.whole for x in found),
    )


def _last_step(file: Path) -> int | None:
    """The last step that a metrics.csv logged: at most global_step, by one in some loggers less."""
    try:
        with file.open(encoding="utf-8", errors="replace", newline="") as handle:
            steps = [row.get("step") or "" for row in csv.DictReader(handle)]
    except (OSError, csv.Error):
        return None  # a file that cannot be read says nothing
    return next((int(step) for step in reversed(steps) if step.isdecimal()), None)
