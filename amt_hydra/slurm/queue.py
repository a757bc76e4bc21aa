"""What Slurm says, by its own commands; None wherever it is not here or does not answer."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_ANSWER_S = 20.0
"""Seconds that a Slurm command may take: a busy controller is slow, and no answer means that nothing is known."""
_FORMAT = "%i|%T|%j|%r|%N"
_FILTERS = ("SQUEUE_", "SCANCEL_", "SACCT_", "SLURM_CLUSTERS")
"""Variables by which a user's shell has these commands show less than there is."""
_ENDS = {
    "OUT_OF_MEMORY": "out of memory",
    "TIMEOUT": "its time limit",
    "NODE_FAIL": "its machine failed",
    "BOOT_FAIL": "its machine did not start",
    "CANCELLED": "cancelled",
    "PREEMPTED": "preempted, and not requeued",
    "DEADLINE": "its deadline",
    "FAILED": "failed",
    "COMPLETED": "completed",
}
"""Slurm's words for the ends of jobs (man sacct, JOB STATE CODES), and ours."""
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<hours>\d+):(?P<minutes>\d+):(?P<seconds>\d+)")


@dataclass(frozen=True, slots=True)
class Queued:
    """A job that Slurm still has to do with; of an array, one of its tasks."""

    id: str
    state: str
    """PENDING, RUNNING, COMPLETING, …"""
    name: str
    reason: str
    """Why it is pending."""
    node: str

    def __str__(self) -> str:
        where = f" on {self.node}" if self.node else ""
        why = f" ({self.reason})" if self.state == "PENDING" and self.reason not in ("", "None") else ""
        return f"Slurm job {self.id}: {self.state.lower()}{where}{why}"


def ask(environ: Mapping[str, str], command: str, *arguments: str) -> "subprocess.CompletedProcess[str] | None":
    """Run one of Slurm's commands."""
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
            env={**{name: text for name, text in environ.items() if not name.startswith(_FILTERS)}, "LC_ALL": "C"},
        )
    except (OSError, subprocess.SubprocessError):
        return None


def queue(environ: Mapping[str, str]) -> dict[str, Queued] | None:
    """This user's jobs by their ids, tasks of an array as ID_TASK."""
    answer = ask(environ, "squeue", "-h", "-r", "-u", str(os.getuid()), "-o", _FORMAT)
    if answer is None or answer.returncode != 0:
        return None
    rows = [line.split("|") for line in answer.stdout.splitlines() if line.count("|") == _FORMAT.count("|")]
    return {row[0]: Queued(*row) for row in rows}


def ends(environ: Mapping[str, str], jobs: Sequence[str]) -> dict[str, str]:
    """How jobs ended, by their ids: by Slurm's accounting, else by what its controller still remembers of them."""
    found = _accounted(environ, jobs) or _remembered(environ)
    # An array that was cancelled before any of it began is one job, whose tasks Slurm does not know.
    states = {job: found.get(job) or found.get(job.partition("_")[0], "") for job in jobs}
    words = {job: state.split()[0] for job, state in states.items() if state.strip()}
    return {job: _ENDS[word] for job, word in words.items() if word in _ENDS}


def _accounted(environ: Mapping[str, str], jobs: Sequence[str]) -> dict[str, str]:
    answer = ask(environ, "sacct", "-X", "-n", "-P", "-j", ",".join(jobs), "-o", "JobID,State")
    lines = answer.stdout.splitlines() if answer is not None and answer.returncode == 0 else ()
    rows = (line.partition("|") for line in lines)
    return {job.partition("_[")[0]: state for job, _, state in rows}  # 10_[0-3]: of an array, those that never began


def _remembered(environ: Mapping[str, str]) -> dict[str, str]:
    """For some minutes only (MinJobAge)."""
    answer = ask(environ, "scontrol", "-o", "show", "job")
    found = {}
    for line in answer.stdout.splitlines() if answer is not None and answer.returncode == 0 else ():
        fields = _fields(line)
        task, array = fields.get("ArrayTaskId", ""), fields.get("ArrayJobId", "")
        job = f"{array}_{task}" if task.isdigit() else array or fields.get("JobId", "")
        found[job] = fields.get("JobState", "")
    return found


def cancel(environ: Mapping[str, str], jobs: Sequence[str]) -> str:
    """Cancel jobs, by their ids or as --name=NAME; returns what is wrong, or ""."""
    answer = ask(environ, "scancel", *jobs)
    if answer is None:
        return "scancel does not answer"
    return answer.stderr.strip() if answer.returncode != 0 else ""


def partitions(environ: Mapping[str, str]) -> dict[str, int | None] | None:
    """The partitions with their time limits in minutes, None where there is no limit; the default one as "" too."""
    answer = ask(environ, "scontrol", "-a", "-o", "show", "partition")
    if answer is None or answer.returncode != 0:
        return None
    found: dict[str, int | None] = {}
    for line in answer.stdout.splitlines():
        fields = _fields(line)
        if "PartitionName" in fields:
            found[fields["PartitionName"]] = _minutes(fields.get("MaxTime", ""))
            if fields.get("Default") == "YES":
                found[""] = found[fields["PartitionName"]]
    return found


def configured(environ: Mapping[str, str], name: str) -> str | None:
    """A value of the configuration of the cluster here: ClusterName, MaxArraySize, …"""
    answer = ask(environ, "scontrol", "show", "config")
    rows = (line.partition("=") for line in (answer.stdout.splitlines() if answer else ()))
    return next((value.strip() for key, _, value in rows if key.strip() == name), None)


def _fields(line: str) -> dict[str, str]:
    """A line of scontrol -o."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


def _minutes(text: str) -> int | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None  # UNLIMITED
    days, hours, minutes = (int(found[name] or 0) for name in ("days", "hours", "minutes"))
    return (days * 24 + hours) * 60 + minutes
