"""How a point of a sweep stands now: looked at, and never remembered."""

import json
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from amt_hydra.checkpoint import checkpoints
from amt_hydra.errors import INTERRUPTED
from amt_hydra.launch.lock import inspect
from amt_hydra.sweep.ledger import Entry
from amt_hydra.sweep.points import score

_ASKED_TO_END = (INTERRUPTED, 128 + signal.SIGTERM, 128 + signal.SIGHUP)
State = Literal["running", "done", "failed", "stopped", "waiting"]


@dataclass(frozen=True, slots=True)
class Standing:
    """One point now."""

    sweep: str
    exp_id: str
    state: State
    """stopped: it has got somewhere, and nothing trains it; waiting: it was not started yet."""
    step: int | None
    goal: int | None
    best: float | None
    """The best monitored value among its checkpoints."""
    said: str
    """Who trains it, or the verdict of its last launch."""
    checkpoints: Path
    command: str
    """The run of this point alone, as it was when its sweep was asked for."""


def standing(entry: Entry) -> Standing:
    """Look at lock, checkpoints and the last record, in this order."""
    holder = inspect(entry.lock)
    found = checkpoints(entry.checkpoints)
    steps = [ray.global_step for ray in found if ray.whole and ray.global_step is not None]
    step, outcome = max(steps, default=None), _outcome(entry.records)
    state: State
    if holder is not None:
        state = "running"
    elif entry.goal is not None and 0 <= entry.goal <= (step or 0):
        state = "done"
    elif outcome is not None and outcome.get("code") == 0 and (entry.goal is None or entry.goal < 0):
        state = "done"  # it has no goal but the end of its own train.py
    elif outcome is not None and outcome.get("code") not in (0, None, *_ASKED_TO_END):
        state = "failed"
    else:
        state = "waiting" if step is None and outcome is None else "stopped"
    said = str(holder) if holder is not None else str((outcome or {}).get("verdict", ""))
    return Standing(
        sweep=entry.sweep,
        exp_id=entry.exp_id,
        state=state,
        step=step,
        goal=entry.goal,
        best=score(found, entry.mode),
        said=said,
        checkpoints=entry.checkpoints,
        command=entry.command,
    )


def _outcome(records: Path) -> dict[str, Any] | None:
    """How the last launch ended; {} where it left no word: it was killed, or it still runs. None without a launch."""
    files = sorted(records.glob("[!.]*/record.json"))
    if not files:
        return None
    try:
        outcome = json.loads(files[-1].read_text(encoding="utf-8")).get("outcome", {})
    except (OSError, ValueError, AttributeError):
        return {}
    return outcome if isinstance(outcome, dict) else {}
