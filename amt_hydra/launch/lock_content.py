"""What a lock file says: who holds the lock, and whether all of them are known to be gone."""

import json
import os
import socket
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from amt_hydra.launch.processes import start_mark
from amt_hydra.launch.slurm_job import SlurmJob

_READ_TRIES = 20
_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lock."""

    host: str
    """Name of the machine; empty where the lock file cannot be read."""
    pids: tuple[int, ...]
    """The launcher, and the supervisor of train.py once that runs."""
    since: str
    """UTC, ISO 8601."""
    job: str | None
    """Slurm job id."""

    def __str__(self) -> str:
        if not self.host:
            return "someone unknown: the lock file cannot be read"
        pids = " and ".join(str(pid) for pid in self.pids)
        job = f", Slurm job {self.job}" if self.job else ""
        return f"pid {pids} on {self.host} since {self.since}{job}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockContent:
    """What a lock file says. `token` tells it from every other lock, at the same path too."""

    token: str
    host: str
    machine: str
    """Tells machines of one name apart: /etc/machine-id, empty where there is none."""
    boot: str
    """Changes when the machine starts anew."""
    pidns: str
    """Processes of another pid namespace (a container) are not seen from here."""
    holders: tuple[tuple[int, str], ...]
    """Pids and their start marks; the first is the launcher."""
    started: str
    job: SlurmJob | None

    @staticmethod
    def of_this_process() -> "LockContent":
        """Return the content of a new lock held by this process."""
        return LockContent(
            token=uuid.uuid4().hex[:12],
            **_here(),
            holders=((os.getpid(), start_mark(os.getpid()) or ""),),
            started=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            job=SlurmJob.of_environment(os.environ),
        )

    @staticmethod
    def unreadable() -> "LockContent":
        """Return what stands for a file that is no lock of ours: nothing tells that its holders are gone."""
        return LockContent(token="", host="", machine="", boot="", pidns="", holders=(), started="", job=None)

    def holder(self) -> Holder:
        """Return who holds the lock, for people."""
        job = self.job.id if self.job else None
        return Holder(self.host, tuple(pid for pid, _ in self.holders), self.started, job)

    def is_stale(self) -> bool:
        """Return whether all holders are known to be gone. Where that cannot be known, they are not."""
        here = _here()
        if (self.host, self.machine) == (here["host"], here["machine"]) and self.host:
            if self.boot != here["boot"]:
                return True
            if self.pidns == here["pidns"]:
                return not any(start_mark(pid) == mark for pid, mark in self.holders)
        return self.job is not None and self.job.has_ended(os.environ)

    def text(self) -> str:
        """Return the content of the file."""
        job = None if self.job is None else self.job.to_json()
        fields = {name: getattr(self, name) for name in ("token", "host", "machine", "boot", "pidns", "started")}
        holders = [{"pid": pid, "start": mark} for pid, mark in self.holders]
        return json.dumps({**fields, "holders": holders, "slurm": job}, indent=1) + "\n"

    @staticmethod
    def parse(text: str) -> "LockContent | None":
        """Return the content, or None where `text` is not that of a lock."""
        try:
            value: dict[str, Any] = json.loads(text)
            names = ("token", "host", "machine", "boot", "pidns", "started")
            return LockContent(
                **{name: str(value[name]) for name in names},
                holders=tuple((int(one["pid"]), str(one["start"])) for one in value["holders"]),
                job=SlurmJob.from_json(value["slurm"]) if value["slurm"] else None,
            )
        except (ValueError, KeyError, TypeError):
            return None


def read_lock(path: Path) -> LockContent | None:
    """Return what the lock at `path` says, or None where there is none.

    A file that makes no sense is read again for a while, since where hard links are missing it may be in the making.
    """
    for _ in range(_READ_TRIES):
        try:
            content = LockContent.parse(path.read_text(encoding="utf-8", errors="replace"))
        except FileNotFoundError:
            return None
        except OSError:
            break
        if content is not None:
            return content
        time.sleep(_PAUSE_S)
    return LockContent.unreadable()


def _here() -> dict[str, str]:
    try:
        pidns = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        pidns = ""
    return {
        "host": socket.gethostname(),
        "machine": _line("/etc/machine-id"),
        "boot": _line("/proc/sys/kernel/random/boot_id"),
        "pidns": pidns,
    }


def _line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
