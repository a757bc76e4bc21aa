"""What runs in a job: one point, planned and checked again on the machine that it got.

A requeue starts this anew with the words that were submitted: what lies in the point's folder says whether it begins or
goes on. So it makes no difference who requeued it: submitit at the time limit, Slurm at a preemption or a dead machine.
"""

import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amt_hydra.checkpoint import checkpoints, newest
from amt_hydra.commands import key_of
from amt_hydra.errors import REFUSED
from amt_hydra.readback import launches
from amt_hydra.record import now
from amt_hydra.slurm import attempts
from amt_hydra.sweep.local import Running, finished, start
from amt_hydra.sweep.points import Paths, Point, plan_point

_MARGIN_S = 15
"""Seconds kept for the requeue itself, of those between signal and time limit."""
_LOCKED_S = 300
"""Seconds to wait for what an earlier attempt left running: Slurm ends it when its machine answers again."""


@dataclass(frozen=True)
class PointJob:
    """A point as submitit calls it in the job. Pickled: plain values only."""

    words: tuple[str, ...]
    """As the sweep asked for it."""
    config_dir: str | None
    cwd: str
    signal_s: int
    requeues: int
    """How often it may be requeued at the signal."""

    def __call__(self) -> float | None:
        """Train it; returns the best score. Ends the process with the exit code of a run that failed."""
        environ = dict(os.environ)
        point = self._planned(environ)
        if point.action == "done":
            return point.score
        if not point.trains or point.paths is None:
            _tell(point.paths, code=REFUSED, verdict=f"not started, {point.action}: {point.why}")
            raise SystemExit(REFUSED)
        begun = point.step or 0 if point.action == "continue" else 0
        _refuse_in_vain(point.paths, begun)
        _tell(point.paths, **{"from": begun, "restarts": environ.get("SLURM_RESTART_COUNT", "0")})
        running = start(point, environ, Path(self.cwd), self.config_dir, quiet=False)
        _RUNNING.append((running, begun))
        _until_ended(running)
        end = finished(running)
        _tell(point.paths, code=end.code, verdict=end.verdict)
        if end.code:
            raise SystemExit(end.code)
        return end.best

    def checkpoint(self) -> Any:
        """Have train.py save and end; called by submitit at the signal, on top of `__call__`. It then requeues.

        Ends the process where there is nothing to go on with: the run was done, or has not got any further.
        """
        from submitit.helpers import DelayedSubmission

        if not _RUNNING:  # it is still being planned
            return DelayedSubmission(self)
        running, begun = _RUNNING[-1]
        paths = running.point.paths
        assert paths is not None  # it was started
        running.process.send_signal(signal.SIGTERM)
        if _until_ended(running, time.monotonic() + max(self.signal_s - _MARGIN_S, 5)):
            end = finished(running)
            if end.code == 0:
                _tell(paths, code=0, verdict=end.verdict)
                raise SystemExit(0)
        step = _step(paths)
        verdict = ""
        if step <= begun:
            verdict = f"not requeued: it began at step {begun}, and is at step {step} when its time is up"
        elif attempts.requeued(attempts.read(paths.records), _job()) >= self.requeues:
            verdict = f"not requeued: it was {self.requeues} times (slurm.requeues), and is at step {step}"
        if verdict:
            _tell(paths, code=REFUSED, verdict=verdict)
            raise SystemExit(REFUSED)
        _tell(paths, verdict=f"its time is up at step {step}: requeued", step=step)
        return DelayedSubmission(self)

    def _planned(self, environ: Mapping[str, str]) -> Point:
        words = self.words
        point = self._plan(words, environ)
        if point.paths is not None and _has_begun(point.paths, environ.get("SLURM_JOB_ID", "")):
            # What it moved aside before is not moved aside again with all that it has trained since.
            words = tuple(word for word in words if key_of(word) != "init.overwrite")
            point = self._plan(words, environ)
        deadline = time.monotonic() + _LOCKED_S
        while point.action == "running" and time.monotonic() < deadline:
            print(f"waiting: {point.why}", file=sys.stderr, flush=True)
            time.sleep(5)
            point = self._plan(words, environ)
        return point

    def _plan(self, words: tuple[str, ...], environ: Mapping[str, str]) -> Point:
        return plan_point(words, environ, Path(self.cwd), self.config_dir)


_RUNNING: list[tuple[Running, int]] = []
"""What runs in this process, and the step that it began at: the job itself is pickled anew at the signal."""


def _until_ended(running: Running, deadline: float | None = None) -> bool:
    """Whether it has ended. Without Popen's own lock, which the code that was interrupted may hold."""
    options = os.WEXITED | os.WNOWAIT | (0 if deadline is None else os.WNOHANG)
    while True:
        try:
            if os.waitid(os.P_PID, running.process.pid, options) is not None:
                return True
        except ChildProcessError:
            return True
        if deadline is None or time.monotonic() >= deadline:
            return False
        time.sleep(0.1)


def _step(paths: Paths) -> int:
    last = newest(checkpoints(paths.checkpoints))
    return (last.global_step or 0) if last else 0


def _refuse_in_vain(paths: Paths, begun: int) -> None:
    """End a job that Slurm itself starts again and again, without a step in between."""
    if attempts.in_vain(attempts.read(paths.records), _job(), begun) >= attempts.MOST_IN_VAIN:
        verdict = f"not started again: {attempts.MOST_IN_VAIN} times it began at step {begun}, and got no further"
        _tell(paths, code=REFUSED, verdict=verdict)
        raise SystemExit(REFUSED)


def _has_begun(paths: Paths, job: str) -> bool:
    """Whether this job has launched the point before."""
    kept = (record.get("environment") for record in launches(paths.records))
    return any(isinstance(one, dict) and one.get("SLURM_JOB_ID") == job for one in kept)


def _tell(paths: Paths | None, **facts: Any) -> None:
    """In the job's log, and for `status`."""
    told = {"job": _job(), **facts, "at": now()}
    print("amt_hydra:", ", ".join(f"{name} {value}" for name, value in told.items()), file=sys.stderr, flush=True)
    if paths is not None:
        attempts.note(paths.records, **told)


def _job() -> str:
    """As squeue shows it: of an array, the task alone."""
    array, task = os.environ.get("SLURM_ARRAY_JOB_ID"), os.environ.get("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array else os.environ.get("SLURM_JOB_ID", "")
