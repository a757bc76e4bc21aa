"""The Slurm job that holds a lock, and whether it has ended."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from amt_hydra.slurm.queue import ask, configured


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job, as its processes know it from the environment."""

    id: str
    restarts: int
    """How often it was requeued: a requeue keeps the id."""
    cluster: str
    """Job ids count per cluster; empty where the environment does not say which."""

    @staticmethod
    def of_environment(environ: Mapping[str, str]) -> "SlurmJob | None":
        """Return the job that a process with `environ` belongs to, or None outside of one."""
        job_id = environ.get("SLURM_JOB_ID")
        if not job_id:
            return None
        restarts = environ.get("SLURM_RESTART_COUNT", "")
        return SlurmJob(job_id, int(restarts) if restarts.isdigit() else 0, environ.get("SLURM_CLUSTER_NAME", ""))

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "SlurmJob":
        """Return what `to_json` was made of. Raises KeyError, TypeError or ValueError for anything else."""
        return SlurmJob(str(value["id"]), int(value["restarts"]), str(value["cluster"]))

    def to_json(self) -> dict[str, Any]:
        """Return this as plain values."""
        return {"id": self.id, "restarts": self.restarts, "cluster": self.cluster}

    def has_ended(self, environ: Mapping[str, str]) -> bool:
        """Return whether the job is known to have ended; False where Slurm is not here or does not answer."""
        ours = SlurmJob.of_environment(environ)
        if ours is not None and (ours.id, ours.cluster) == (self.id, self.cluster):
            return self.restarts < ours.restarts
        if self.cluster and configured(environ, "ClusterName") != self.cluster:
            return False
        return self._is_unknown_to_squeue(environ)

    def _is_unknown_to_squeue(self, environ: Mapping[str, str]) -> bool:
        answer = ask(environ, "squeue", "-h", "-j", self.id)
        if answer is None:
            return False
        if answer.returncode == 0:
            return not answer.stdout.strip()
        return "invalid job id" in answer.stderr.lower()  # it ended so long ago that Slurm forgot it
