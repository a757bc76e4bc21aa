"""How a launch ended: what it trained, and what its exit code means for us."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from amt_hydra.checkpoint import best, checkpoints, newest
from amt_hydra.errors import INTERRUPTED, TRAINED_NOTHING
from amt_hydra.identity import describe
from amt_hydra.launch.run import Ended
from amt_hydra.plan import Plan


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


def judge(ended: Ended, plan: Plan, start_step: int, mode: str) -> Outcome:
    """Compare what lies in the experiment's folder now with where the launch started."""
    found = checkpoints(plan.place.checkpoints)
    top, latest = best(found, mode), newest(found)
    reached = max(
        [x for x in (latest.global_step if latest else None, _metrics_step(plan)) if x is not None], default=None
    )
    trained = reached is not None and reached > start_step
    if ended.interrupted:
        code, verdict = INTERRUPTED, f"interrupted at step {reached or start_step}"
    elif ended.code != 0:
        how = f"was ended by signal {ended.signal}" if ended.signal else f"ended with exit code {ended.code}"
        code, verdict = ended.code, f"train.py {how}, at step {reached or start_step}"
    elif not trained:
        code, verdict = (
            TRAINED_NOTHING,
            f"train.py ended with exit code 0, but trained nothing beyond step {start_step}",
        )
    else:
        code = 0
        verdict = f"trained steps {start_step} to {reached}" + (f"; best is {describe(top)}" if top else "")
    return Outcome(code, verdict, reached, top.score if top else None, top.path if top else None, ended.seconds)


def _metrics_step(plan: Plan) -> int | None:
    """The last step that a metrics.csv of the experiment logged, counted as global_step is."""
    steps = [step for file in plan.place.experiment.glob("**/metrics.csv") for step in _steps(file)]
    return max(steps) + 1 if steps else None  # a logger's step is the index of the step, which starts at 0


def _steps(file: Path) -> Iterator[int]:
    try:
        with file.open(encoding="utf-8", errors="replace", newline="") as handle:
            for row in csv.DictReader(handle):
                text = row.get("step") or ""
                if text.isdigit():
                    yield int(text)
    except (OSError, csv.Error):
        return  # a file that cannot be read says nothing
