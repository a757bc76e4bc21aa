"""What the kernel knows of processes: when one started, who descends from whom, and who dies with whom.

Standard library only (psutil is asked only where there is no /proc): the supervisor runs on it.
"""

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

_PROC = Path("/proc")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def start_mark(pid: int) -> str | None:
    """Return a text that tells `pid` from a later process of the same number, or None where no such process runs.

    A zombie does not run. On Linux it is the start in clock ticks since boot: unlike a time of day it does not move
    when the clock is set, which would make a living holder of a lock look like a recycled pid.
    """
    if pid <= 0:
        return None
    if not sys.platform.startswith("linux"):
        return _start_time(pid)
    fields = _stat(pid)
    return None if fields is None or fields[0] in "ZXx" else fields[19]


def descendants(root: int) -> list[int]:
    """Return the pids of the processes that descend from `root`, zombies left out; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    zombies = set()
    try:
        pids = [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208 - ten times cheaper
    except OSError:
        return []
    for pid in pids:
        fields = _stat(pid)
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(pid)
            if fields[0] in "ZXx":
                zombies.add(pid)
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        todo += below
        found += (pid for pid in below if pid not in zombies)
    return found


def become_subreaper() -> bool:
    """Make orphaned descendants children of this process instead of init's; False where the kernel cannot."""
    prctl = _prctl()
    return prctl is not None and prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0


def tie_to_parent(signum: int, parent: int) -> Callable[[], None]:
    """Return a function for a child of `parent` to call, after which the kernel sends it `signum` when `parent` dies.

    Where the kernel cannot, the function does nothing.
    """
    prctl = _prctl()

    def tie() -> None:
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signum)
            if os.getppid() != parent:  # it died before the call above
                os.kill(os.getpid(), signum)

    return tie


def _prctl() -> Callable[[int, int], int] | None:
    try:
        call = ctypes.CDLL(None).prctl
    except (AttributeError, OSError, TypeError):
        return None

    def prctl(option: int, value: int) -> int:
        return int(call(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)))

    return prctl


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on; the name before them may hold spaces and parentheses."""
    try:
        text = (_PROC / str(pid) / "stat").read_bytes().decode("ascii", "replace")
        return text[text.rindex(")") + 2 :].split()
    except (OSError, ValueError):
        return None


def _start_time(pid: int) -> str | None:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return f"{process.create_time():.2f}"
    except psutil.AccessDenied:
        return "unknown"
    except psutil.Error:
        return None
