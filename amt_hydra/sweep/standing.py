"""How a point of a sweep stands now: looked at, and never remembered."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from amt_hydra.checkpoint import checkpoints, newest
from amt_hydra.errors import INTERRUPTED
from amt_hydra.launch.lock import inspect
from amt_hydra.launch.lock_content import Holder
from amt_hydra.readback import launches
from amt_hydra.slurm import attempts
from amt_hydra.slurm.queue import Queued, ends, queue
from amt_hydra.sweep.ledger import Entry, read
from amt_hydra.sweep.points import Point, score

_ASKED_TO_END = (INTERRUPTED, 128 + signal.SIGTERM, 128 + signal.SIGHUP)
State = Literal["running", "queued", "done", "failed", "stopped", "waiting"]


@dataclass(frozen=True, slots=True)
class Standing:
    """One point now."""

    sweep: str
    exp_id: str
    signature: str
    state: State
    """stopped: it has got somewhere, and nothing trains it; waiting: it was not started yet; queued: Slurm has it."""
    job: str | None
    """The id of its last Slurm job."""
    in_queue: bool | None
    """Whether Slurm still has to do with that; None where it does not answer."""
    step: int | None
    goal: int | None
    best: float | None
    """The best monitored value among its checkpoints."""
    said: str
    """Who trains it, or the verdict of its last launch."""
    checkpoints: Path
    command: str
    """The run of this point alone, as it was when its sweep was asked for."""
    holder: Holder | None
    """Who has the lock."""


def standings(entries: Sequence[Entry], environ: Mapping[str, str]) -> list[Standing]:
    """Look at every point; Slurm is asked only where one was submitted, of ended jobs only where they left no word."""
    places = {(entry.exp_id, entry.lock): entry.place for entry in entries if entry.place}  # of whichever sweep
    entries = [replace(entry, place=places.get((entry.exp_id, entry.lock))) for entry in entries]
    there = queue(environ) if places else None
    found = [_standing(entry, there) for entry in entries]
    silent = [
        now.job
        for entry, now in zip(entries, found, strict=True)
        if there is not None and now.job and not now.in_queue and not now.holder and not _told_by(now.job, entry)
    ]
    said = ends(environ, silent) if silent else {}
    return [_ended_by_slurm(now, said.get(now.job)) if now.job in silent else now for now in found]


def without_queued(
    points: Sequence[Point], environ: Mapping[str, str], before: Mapping[str, Queued] | None = None
) -> list[Point]:
    """The points, those whose job Slurm still has left to it: whichever sweep has submitted it.

    `before` is what the queue held before they were planned: a job that has ended since must not be taken for none.
    """
    wanted = {(point.exp_id, point.paths.lock): number for number, point in enumerate(points) if point.paths}
    outputs = {point.paths.outputs for point in points if point.paths}
    entries = [one for folder in outputs for one in read(folder) if one.place and (one.exp_id, one.lock) in wanted]
    there = before if before is not None or not entries else queue(environ)
    found = list(points)
    for entry in entries:
        job = entry.place.found(there) if entry.place and there else None
        number = wanted[entry.exp_id, entry.lock]
        if job is not None and found[number].trains:
            found[number] = replace(found[number], action="queued", why=str(job))
    return found


def _standing(entry: Entry, there: Mapping[str, Queued] | None) -> Standing:
    """By queue, lock, checkpoints and the last word of a launch, in this order."""
    holder = inspect(entry.lock)
    job = entry.place.found(there) if entry.place and there else None
    rays = checkpoints(entry.checkpoints)
    last, told = newest(rays), _last_word(entry)
    step = last.global_step if last else None
    state: State
    if holder is not None or (job is not None and job.state != "PENDING"):
        state = "running"
    elif job is not None:
        state = "queued"
    else:
        state = _ended(entry, step, told)
    said = " · ".join(str(one) for one in (job, holder) if one is not None) or str((told or {}).get("verdict", ""))
    if entry.place and there is None and state in ("stopped", "waiting"):
        said = "squeue does not answer: it may be queued"
    return Standing(
        sweep=entry.sweep,
        exp_id=entry.exp_id,
        signature=entry.signature,
        state=state,
        job=job.id if job else entry.place.job if entry.place else None,
        in_queue=None if entry.place and there is None else job is not None,
        step=step,
        goal=entry.goal,
        best=score(rays, entry.mode),
        said=said,
        checkpoints=entry.checkpoints,
        command=entry.command,
        holder=holder,
    )


def _ended(entry: Entry, step: int | None, told: Mapping[str, Any] | None) -> State:
    """The state of a point that nothing trains, and that no queue has."""
    if entry.goal is not None and 0 <= entry.goal <= (step or 0):
        return "done"
    code = None if told is None else told.get("code")
    if code == 0 and (entry.goal is None or entry.goal < 0):
        return "done"  # it has no goal but the end of its own train.py
    if code not in (0, None, *_ASKED_TO_END):
        return "failed"
    return "waiting" if step is None and told is None else "stopped"


def _told_by(job: str, entry: Entry) -> bool:
    """Whether the job itself wrote how it ended."""
    return any(one.get("job") == job and "code" in one for one in attempts.read(entry.records))


def _ended_by_slurm(now: Standing, how: str | None) -> Standing:
    """A point whose job left no word, by Slurm's, which forgets it after minutes where it keeps no accounts."""
    if now.state == "done":
        return now
    failed = how in ("out of memory", "failed") or (how is None and now.state == "waiting")
    said = f"Slurm job {now.job}: {how or 'it is gone, and left no word'}"
    return replace(now, state="failed" if failed else now.state, said=said)


def _last_word(entry: Entry) -> Mapping[str, Any] | None:
    """How the last launch ended, by its record or by its job; {} where it left no word. None without a launch."""
    record = next(launches(entry.records), None)
    jobs = [one for one in attempts.read(entry.records) if "verdict" in one]
    if jobs and (record is None or str(jobs[-1].get("at", "")) >= str(record.get("started", ""))):
        return jobs[-1]
    if record is None:
        return None
    outcome = record.get("outcome", {})
    return outcome if isinstance(outcome, dict) else {}
