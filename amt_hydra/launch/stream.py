"""The output of train.py on its way to the screen and the log. Standard library only: the supervisor runs on it."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from amt_hydra.launch.output import Log, Screen


class Stream:
    """A pipe or, so that progress bars live, a pseudo-terminal; what train.py writes there is copied."""

    def __init__(self, pty: bool) -> None:
        self._pty = pty
        ours, self.end = _terminal_pair() if pty else os.pipe()
        """`end` is what train.py gets for stdout and stderr."""
        self.fd: int | None = ours
        """What to wait for before `copy`; None once nobody can write any more."""
        self._screen = Screen(1)
        self._log: Log | None = None
        self.resize()

    def open(self, log: Path, warn: Callable[[str], None]) -> None:
        """Begin to copy, once train.py has its end; `warn` is told if `log` cannot be written."""
        self._log = Log(log, warn)

    def copy(self) -> None:
        """Pass on what has come."""
        assert self.fd is not None
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # EIO: nobody has the other end of the terminal open any more
            data = b""
        if not data:
            os.close(self.fd)
            self.fd = None
            return
        if self._log is not None:
            self._log.write(data)
        self._screen.write(data)

    def resize(self) -> None:
        """Give the pseudo-terminal the size of the real one."""
        if self._pty and self.fd is not None:
            import termios

            with contextlib.suppress(OSError, termios.error):
                termios.tcsetwinsize(self.fd, termios.tcgetwinsize(1))

    def note(self, text: str) -> None:
        """Put a line of ours into the log."""
        if self._log is not None:
            self._log.note(text)

    def close(self) -> None:
        """Write what is left, as far as that can be done in a while."""
        if self._log is not None:
            self._log.close()
        self._screen.drain()


def _terminal_pair() -> tuple[int, int]:
    """Return both ends of a pseudo-terminal that passes bytes on unchanged.

    It becomes nobody's controlling terminal: a program that asks for a password then fails instead of waiting for ever.
    """
    import termios

    master, slave = os.openpty()
    mode = termios.tcgetattr(slave)
    mode[1] &= ~termios.OPOST
    mode[3] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, mode)
    return master, slave
