"""Points handed to Slurm, by submitit: an array for all that ask for the same."""

import contextlib
import io
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from amt_hydra.checkpoint import checkpoints
from amt_hydra.commands import key_of, quote
from amt_hydra.errors import REFUSED, AmtError, nearest
from amt_hydra.slurm import attempts
from amt_hydra.slurm.job import PointJob
from amt_hydra.slurm.place import Submitted
from amt_hydra.slurm.queue import cancel, ends, partitions, queue
from amt_hydra.slurm.resources import Resources
from amt_hydra.sweep.local import Finished
from amt_hydra.sweep.points import Point, score

if TYPE_CHECKING:
    from submitit import SlurmExecutor

_OURS = (
    *("nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "gpus-per-node", "gpus", "gres", "time", "signal"),
    *("array", "output", "error", "open-mode", "requeue", "no-requeue", "job-name", "export"),
)
"""Options of sbatch that follow from settings, or on which a requeue relies."""
_LOOK_EVERY_S = 2.0


def numbered(points: Sequence[Point], mark: str) -> dict[str, Submitted]:
    """By exp_id, the name and place under which each will be submitted."""
    nonce = f"{time.time_ns() & 0xFFFFFFFF:08x}"
    found = {}
    for number, group in enumerate(_groups(points)):
        for task, point in enumerate(group):
            found[point.exp_id] = Submitted(f"amt-{mark}-{nonce}-{number}", task if len(group) > 1 else None, None)
    return found


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

    def never(self, point: Point) -> str:
        """Why a point can never run as it asks to; "" where nothing says so."""
        asks = point.asks
        assert asks is not None  # it was planned
        named = f"slurm.partition={asks.partition}" if asks.partition else "the default partition"
        if (asks.partition or "") not in self._limits:
            there = sorted(name for name in self._limits if name)
            close = nearest(asks.partition or "", there) or (there[0] if there else "")
            return f"{named}: there is none of that name; there are {', '.join(there)} (slurm.partition={close})"
        limit = self._limits[asks.partition or ""]
        if limit is not None and asks.minutes > limit:
            return (
                f"slurm.hours={asks.minutes / 60:g} is beyond the limit of {named}, {limit / 60:g} hours: a run that "
                f"is not done by then is requeued and goes on, so give slurm.hours={limit / 60:g}"
            )
        ours = [name for name, _ in asks.options if name in _OURS]
        return f"slurm.options.{ours[0]}: this follows from other settings (ddp.*, slurm.*)" if ours else ""

    def submit(
        self, points: Sequence[Point], places: Mapping[str, Submitted], folder: Path, cwd: Path, config_dir: str | None
    ) -> dict[str, str]:
        """Submit all; returns their job ids by exp_id. Raises AmtError where one is refused, and then none is left."""
        found: dict[str, str] = {}
        try:
            for group in _groups(points):
                executor = _executor(group[0].asks, folder, places[group[0].exp_id].name)
                # What sbatch says of a refusal is in the error as well.
                with contextlib.redirect_stderr(io.StringIO()), executor.batch():
                    jobs = [executor.submit(_job(point, cwd, config_dir)) for point in group]
                found |= {point.exp_id: job.job_id for point, job in zip(group, jobs, strict=True)}
        except Exception as error:  # submitit has several of its own; what sbatch said is in all of them
            if found:
                cancel(self._environ, list(found.values()))
            raise AmtError(
                f"sbatch refused: {_said(error)}; nothing was submitted",
                fix=["ask for less: ddp.*, slurm.hours, slurm.cpus_per_task, slurm.mem_gb; or name slurm.partition"],
                code=REFUSED,
            ) from error
        return found

    def wait(self, points: Sequence[Point], jobs: Mapping[str, str]) -> Iterator[Finished]:
        """Yield how each ended. Ctrl-C ends the waiting, and not the jobs."""
        left = {point.exp_id: point for point in points}
        missed: dict[str, int] = defaultdict(int)
        while left:
            there = queue(self._environ)
            for exp_id, point in list(left.items()):
                missed[exp_id] += there is not None and jobs[exp_id] not in there
                if missed[exp_id] > 1:  # a requeue may be between two states
                    del left[exp_id]
                    yield _finished(point, jobs[exp_id], self._environ)
            time.sleep(_LOOK_EVERY_S)


def _groups(points: Sequence[Point]) -> list[list[Point]]:
    """Those that ask for the same, in the order of the sweep."""
    found: dict[Resources | None, list[Point]] = defaultdict(list)
    for point in points:
        found[point.asks].append(point)
    return list(found.values())


def _executor(asks: Resources | None, folder: Path, name: str) -> "SlurmExecutor":
    from submitit import SlurmExecutor

    assert asks is not None  # it was planned
    # In the batch step itself, and with exec as its only process: the signal reaches it alone, and it passes that on.
    executor = SlurmExecutor(folder=folder, max_num_timeout=asks.requeues, python=f"exec {quote(sys.executable)}")
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
    return PointJob(words, config_dir, str(cwd), asks.signal_s)


def _said(error: Exception) -> str:
    """What sbatch wrote, without submitit's and its own preface."""
    lines = [line.partition("error: ")[2] or line for line in str(error).splitlines() if "sbatch" in line]
    return "; ".join(dict.fromkeys(line.strip() for line in lines if line.strip())) or str(error)


def _finished(point: Point, job: str, environ: Mapping[str, str]) -> Finished:
    assert point.paths is not None  # it was submitted
    told = [one for one in attempts.read(point.paths.records) if one.get("job") == job and "code" in one]
    if not told:
        how = ends(environ, [job]).get(job, "ended without a word: cancelled, or never started")
        return Finished(point, 1, f"Slurm job {job}: {how}", None)
    best = score(checkpoints(point.paths.checkpoints), point.mode)
    return Finished(point, int(told[-1]["code"]), str(told[-1]["verdict"]), best)
