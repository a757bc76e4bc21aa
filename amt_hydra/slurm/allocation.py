"""The Slurm job that a process is in, as its environment describes it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allocation:
    """What the job has. A description that is not there says nothing."""

    job: str
    nodes: int
    """Machines."""
    tasks: int | None
    """Tasks that it was asked for, on all machines."""
    cpus_per_task: int | None = None

    @staticmethod
    def of_environment(environ: Mapping[str, str]) -> "Allocation | None":
        """Return the job of a process with `environ`; None outside of one."""
        job = environ.get("SLURM_JOB_ID")
        if not job:
            return None
        nodes = _number(environ, "SLURM_JOB_NUM_NODES") or _number(environ, "SLURM_NNODES") or 1
        per_node = _number(environ, "SLURM_NTASKS_PER_NODE")
        tasks = per_node * nodes if per_node else _number(environ, "SLURM_NTASKS")
        return Allocation(job, nodes, tasks, _number(environ, "SLURM_CPUS_PER_TASK"))


def _number(environ: Mapping[str, str], name: str) -> int | None:
    value = environ.get(name, "")
    return int(value) if value.isdigit() else None
