"""train.py and all that descends from it, as its supervisor sees them. Standard library only."""

import contextlib
import os

from amt_hydra.launch.processes import descendants


class Family:
    """The process group of train.py, and the processes that left the group but not the supervisor.

    The supervisor is their subreaper where the kernel has such a thing: an orphan of train.py becomes its child.
    """

    def __init__(self, pid: int, *, own_group: bool, subreaper: bool) -> None:
        self.pid = pid
        self.status: int | None = None
        """The wait status of train.py; None while it runs."""
        self.all_gone = False
        """Whether train.py and its descendants are known to have ended."""
        self._own_group = own_group
        self._subreaper = subreaper

    def reap(self) -> None:
        """Collect those that have ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.all_gone = True
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.status = status

    def signal_one(self, signum: int) -> None:
        """Send `signum` to train.py alone."""
        if self.status is None:  # not reaped yet, so its number is nobody else's
            os.kill(self.pid, signum)

    def signal_group(self, signum: int) -> None:
        """Send `signum` to the group of train.py; to it alone where it shares our group, attached to a terminal."""
        if not self._own_group:
            self.signal_one(signum)
        elif self.status is None or not self._subreaper:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signum)

    def signal_all(self, signum: int) -> None:
        """Send `signum` to every process of the family, in whatever session."""
        self.signal_group(signum)
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signum)
