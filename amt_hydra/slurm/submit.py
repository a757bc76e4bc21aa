"""Points handed to Slurm, by submitit: an array for all that ask for the same."""

import contextlib
import io
import math
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from amt_hydra.checkpoint import checkpoints
from amt_hydra.commands import key_of, quote
from amt_hydra.errors import REFUSED, AmtError, Never, nearest
from amt_hydra.slurm import attempts
from amt_hydra.slurm.job import PointJob
from amt_hydra.slurm.place import Submitted
from amt_hydra.slurm.queue import cancel, configured, ends, partitions, queue
from amt_hydra.slurm.resources import Resources
from amt_hydra.sweep.local import Finished
from amt_hydra.sweep.points import Point, score

if TYPE_CHECKING:
    from submitit import SlurmExecutor

_OURS = (
    *("nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "gpus-per-node", "gpus", "gres", "time", "signal", "mem"),
    *("partition", "account", "qos", "constraint", "array", "output", "error", "open-mode", "requeue", "no-requeue"),
    *("job-name", "export", "clusters", "parsable", "wait", "test-only", "wrap", "chdir"),
)
"""Options of sbatch that follow from settings, or on which we rely."""
_DEFAULTS = {"SBATCH_PARTITION": "partition", "SBATCH_ACCOUNT": "account", "SBATCH_QOS": "qos"}
"""Variables of sbatch that stand where a setting is not given. Its others would win over what we ask for."""
_TASKS = 1000
"""Tasks of one array, where the cluster does not say how many it takes (MaxArraySize; Slurm's own default is 1001)."""
_LOOK_EVERY_S = 2.0


class StillQueuedError(AmtError):
    """Something was submitted, and could not be taken back."""


class Cluster:
    """The cluster that sbatch here submits to. Making one raises AmtError where there is none."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        found = partitions(environ)
        if found is None:
            raise AmtError(
                "hydra/launcher=slurm: no Slurm answers here (scontrol show partition)",
                new=["hydra/launcher=local"],
                drop=["hydra.launcher"],
            )
        self._limits = found
        most = configured(environ, "MaxArraySize") or ""
        self._tasks = int(most) if most.isdigit() and int(most) else _TASKS

    def numbered(self, points: Sequence[Point], mark: str) -> dict[str, Submitted]:
        """By exp_id, the name and place under which each will be submitted."""
        nonce = f"{time.time_ns() & 0xFFFFFFFF:08x}"
        found = {}
        for number, group in enumerate(self._groups(points)):
            for task, point in enumerate(group):
                found[point.exp_id] = Submitted(f"amt-{mark}-{nonce}-{number}", task if len(group) > 1 else None, None)
        return found

    def never(self, point: Point) -> Never | None:
        """Why a point can never run as it asks to, where something says so."""
        asks = point.asks
        assert asks is not None  # it was planned
        asked = asks.partition or self._environ.get("SBATCH_PARTITION") or ""
        named = f"slurm.partition={asked}" if asked else "the default partition"
        there = sorted(name for name in self._limits if name)
        lost = [name for name in asked.split(",") if name not in self._limits]  # Slurm takes the first that is free
        if lost:
            close = nearest(lost[0], there) or (there[0] if there else "null")
            why = f"{named}: there is no {lost[0] or 'default one'}; there are {', '.join(there)}"
            return Never(why, (f"slurm.partition={close}",))
        limits = [self._limits[name] for name in asked.split(",")]
        limit = None if None in limits else max(limit or 0 for limit in limits)
        if limit is not None and asks.minutes > limit:
            hours = f"{math.floor(limit / 60 * 1e4) / 1e4:g}"
            why = (
                f"slurm.hours={asks.minutes / 60:g} is beyond the limit of {named}, {hours} hours: a run that is not "
                "done by then is requeued and goes on"
            )
            return Never(why, (f"slurm.hours={hours}",))
        ours = [f"slurm.options.{name}" for name, _ in asks.options if name in _OURS]
        return Never(f"{ours[0]}: this follows from other settings (ddp.*, slurm.*)", (), tuple(ours)) if ours else None

    def submit(
        self, points: Sequence[Point], places: Mapping[str, Submitted], folder: Path, cwd: Path, config_dir: str | None
    ) -> dict[str, str]:
        """Submit all; returns their job ids by exp_id. Raises AmtError where one is refused, and then none is left.

        Raises StillQueuedError where that is not sure. The same holds for Ctrl-C.
        """
        if any(sign in str(folder) for sign in "%\n"):
            raise AmtError(f"paths.outputs: {str(folder)!r}: Slurm reads % and line breaks in the names of logs")
        found: dict[str, str] = {}
        before = _files(folder)
        try:
            for group in self._groups(points):
                asks = group[0].asks
                assert asks is not None  # it was planned
                executor = _executor(asks, folder, places[group[0].exp_id].name)
                with _quiet_sbatch(asks), executor.batch():
                    jobs = [executor.submit(_job(point, cwd, config_dir)) for point in group]
                found |= {point.exp_id: job.job_id for point, job in zip(group, jobs, strict=True)}
        except BaseException as error:
            self._take_back({places[point.exp_id].name for point in points}, error)
            for file in _files(folder) - before:
                file.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # others lie there
                folder.rmdir()
            if not isinstance(error, Exception):
                raise
            raise AmtError(
                f"sbatch refused: {_said(error)}; nothing was submitted. Asked for: {asks}",
                fix=["change what it asks for: ddp.*, slurm.*; see what there is: sinfo -o '%P %l %D %c %m %G %f'"],
                code=REFUSED,
            ) from error
        return found

    def _take_back(self, names: Iterable[str], error: BaseException) -> None:
        """Cancel by name: sbatch may have failed, or been interrupted, after Slurm had taken the job."""
        for name in names:
            wrong = cancel(self._environ, [f"--name={name}"])
            if wrong:
                raise StillQueuedError(
                    f"sbatch: {_said(error)}; and {wrong}: jobs named {name} may be queued, and the ledger has them",
                    fix=["see them: python -m amt_hydra status", f"take them back: scancel --name={name}"],
                ) from error

    def wait(self, points: Sequence[Point], jobs: Mapping[str, str]) -> Iterator[Finished]:
        """Yield how each ended; after a failure under sweep.fail_fast the others are cancelled.

        Ctrl-C ends the waiting, and not the jobs.
        """
        left = {point.exp_id: point for point in points}
        missed: dict[str, int] = defaultdict(int)
        while left:
            there = queue(self._environ)
            for exp_id, point in list(left.items()):
                missed[exp_id] += there is not None and jobs[exp_id] not in there
                if missed[exp_id] > 1:  # a requeue may be between two states
                    del left[exp_id]
                    end = _finished(point, jobs[exp_id], self._environ)
                    if end.ends_the_sweep and left:
                        cancel(self._environ, [jobs[other] for other in left])
                    yield end
            time.sleep(_LOOK_EVERY_S)

    def _groups(self, points: Sequence[Point]) -> list[list[Point]]:
        """Those that ask for the same, in the order of the sweep, no more at once than an array may have tasks."""
        found: dict[Resources | None, list[Point]] = defaultdict(list)
        for point in points:
            found[point.asks].append(point)
        size = self._tasks
        return [group[first : first + size] for group in found.values() for first in range(0, len(group), size)]


def _files(folder: Path) -> set[Path]:
    return {file for file in folder.iterdir() if file.is_file()} if folder.is_dir() else set()


@contextlib.contextmanager
def _quiet_sbatch(asks: Resources) -> Iterator[None]:
    """Without those of sbatch's variables that would win over what is asked for, and without a line of its own: what it
    says of a refusal is in the error as well."""
    kept = {name for name, field in _DEFAULTS.items() if getattr(asks, field) is None}
    away = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("SBATCH_") and name not in kept}
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        os.environ.update(away)


def _executor(asks: Resources, folder: Path, name: str) -> "SlurmExecutor":
    from submitit import SlurmExecutor

    # In the batch step itself, and with exec as its only process: the signal reaches it alone, and it passes that on.
    # How often it is requeued is counted in the job, which knows of all that ended it.
    executor = SlurmExecutor(folder=folder, max_num_timeout=sys.maxsize, python=f"exec {quote(sys.executable)}")
    optional = {
        "partition": asks.partition,
        "account": asks.account,
        "qos": asks.qos,
        "constraint": asks.constraint,
        "mem": None if asks.mem_gb is None else f"{asks.mem_gb}GB",
        "gpus_per_node": asks.gpus_per_node or None,
        "setup": list(asks.setup) or None,
    }
    executor.update_parameters(
        job_name=name,
        time=asks.minutes,
        nodes=asks.nodes,
        ntasks_per_node=asks.tasks_per_node,
        cpus_per_task=asks.cpus_per_task,
        use_srun=False,
        wckey=None,  # its own would be refused where they are enforced
        stderr_to_stdout=True,
        additional_parameters={"signal": f"B:USR2@{asks.signal_s}", "requeue": True, **dict(asks.options)},
        **{key: value for key, value in optional.items() if value is not None},
    )
    return executor


def _job(point: Point, cwd: Path, config_dir: str | None) -> PointJob:
    asks = point.asks
    assert asks is not None  # it was planned
    own = {key_of(word) for word in point.asked}
    more = [f"launch.grace={max(asks.signal_s - 20, 5)}"]
    if asks.nodes * asks.tasks_per_node > 1:
        more.append("launch.ranks=srun")
    words = (*point.asked, *(word for word in more if key_of(word) not in own))
    return PointJob(words, config_dir, str(cwd), asks.signal_s, asks.requeues)


def _said(error: BaseException) -> str:
    """What sbatch wrote, without submitit's and its own preface."""
    lines = [line.partition("sbatch: ")[2].removeprefix("error: ").strip() for line in str(error).splitlines()]
    told = dict.fromkeys(line for line in lines if line and not line.startswith("Try "))
    return "; ".join(told) or str(error) or type(error).__name__


def _finished(point: Point, job: str, environ: Mapping[str, str]) -> Finished:
    assert point.paths is not None  # it was submitted
    told = [one for one in attempts.read(point.paths.records) if one.get("job") == job and "code" in one]
    if not told:
        how = ends(environ, [job]).get(job, "ended without a word: cancelled, or never started")
        return Finished(point, 1, f"Slurm job {job}: {how}", None)
    best = score(checkpoints(point.paths.checkpoints), point.mode)
    return Finished(point, int(told[-1]["code"]), str(told[-1]["verdict"]), best)
