"""The command lines of sweeps: -m, status, cancel and retry."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amt_hydra.commands import Typed
from amt_hydra.errors import USAGE, AmtError
from amt_hydra.line import Line
from amt_hydra.preflight import request
from amt_hydra.report.data import plain
from amt_hydra.report.sweep import show_end, show_left_to_slurm
from amt_hydra.sweep.again import cancel, retry
from amt_hydra.sweep.run import Sweep, sweep
from amt_hydra.sweep.status import status


def run(line: Line, environ: Mapping[str, str], cwd: Path) -> int:
    """Run one; returns the exit code. Raises AmtError where nothing may be started."""
    return {"status": _status, "cancel": _cancel, "retry": _retry}.get(line.verb, _sweep)(line, environ, cwd)


def _status(line: Line, environ: Mapping[str, str], cwd: Path) -> int:
    chosen, outputs = _points(line, environ, cwd)
    if chosen:
        raise AmtError(f"status takes no {chosen[0]!r}", fix=["status paths.outputs=DIR"], code=USAGE)
    return status(outputs, environ, json=line.json, watch=line.watch)


def _cancel(line: Line, environ: Mapping[str, str], cwd: Path) -> int:
    chosen, outputs = _points(line, environ, cwd)
    return cancel(outputs, chosen, environ, json=line.json)


def _retry(line: Line, environ: Mapping[str, str], cwd: Path) -> int:
    chosen, outputs = _points(line, environ, cwd)
    tasks = retry(outputs, chosen, environ, json=line.json)
    for task in tasks if not line.json else ():
        _show_end(task)
    if line.json:
        _print_sweep_json(tasks, None)
    elif not tasks:
        print("nothing to do: none of these failed, stopped or is still to begin")
    return next((task.code for task in tasks if task.code), 0)


def _points(line: Line, environ: Mapping[str, str], cwd: Path) -> tuple[list[str], Path]:
    """The words that choose points, and the folder of the ledgers."""
    own = tuple(word for word in line.words if word.startswith("paths.outputs="))
    asked = request(Typed(line.verb, own, line.config_dir), environ, cwd)
    return [word for word in line.words if word not in own], asked.settings.paths.outputs


def _show_end(task: Sweep) -> None:
    if task.submitted and not task.finished:
        show_left_to_slurm(task.name, len(task.planned), len(task.submitted))
    else:
        show_end(task.planned, task.finished, task.config_dir)


def _sweep(line: Line, environ: Mapping[str, str], cwd: Path) -> int:
    task = Sweep(environ, cwd, line.config_dir, only_plan=line.verb == "plan", json=line.json)
    try:
        sweep(line.words, task)
    except AmtError as error:
        verb = "-m" if line.verb == "train" else f"{line.verb} -m"
        error.fix += Typed(verb, line.words, line.config_dir).mended(error.new, error.drop)
        if not line.json:
            raise
        _print_sweep_json([task], error)
        return error.code
    if line.json:
        _print_sweep_json([task], None)
    elif line.verb == "train":
        _show_end(task)
    return task.code


def _print_sweep_json(tasks: Sequence[Sweep], error: AmtError | None) -> None:
    """One document, whatever came of it."""
    found: dict[str, Any] = {
        "points": [plain(point) for task in tasks for point in task.planned],
        "finished": [plain(end) for task in tasks for end in task.finished],
        "submitted": {exp_id: job for task in tasks for exp_id, job in task.submitted.items()},
    }
    if error is not None:
        found["error"] = {"message": error.message, "fix": error.fix, "code": error.code}
    print(json.dumps(found, indent=2))
