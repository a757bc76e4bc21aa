"""The Slurm job that holds a lock, and whether it has ended."""

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_ANSWER_S = 20.0
"""Seconds that a Slurm command may take: a busy controller is slow, and no answer means that nothing is known."""


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
        if self.cluster and self._cluster_here(environ) != self.cluster:
            return False
        return self._is_unknown_to_squeue(environ)

    def _is_unknown_to_squeue(self, environ: Mapping[str, str]) -> bool:
        answer = _ask(environ, "squeue", "-h", "-j", self.id)
        if answer is None:
            return False
        if answer.returncode == 0:
            return not answer.stdout.strip()
        return "invalid job id" in answer.stderr.lower()  # it ended so long ago that Slurm forgot it

    def _cluster_here(self, environ: Mapping[str, str]) -> str | None:
        answer = _ask(environ, "scontrol", "show", "config")
        for line in answer.stdout.splitlines() if answer else ():
            name, _, value = line.partition("=")
            if name.strip() == "ClusterName":
                return value.strip()
        return None


def _ask(environ: Mapping[str, str], command: str, *arguments: str) -> "subprocess.CompletedProcess[str] | None":
    program = shutil.which(command, path=environ.get("PATH"))
    if program is None:
        return None
    try:
        return subprocess.run(
            [program, *arguments],
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_ANSWER_S,
            env={**environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
