"""Where the output of train.py goes: the screen, which may be slow or gone, and the log, whose disk may be full.

Neither may hold up or end the training. Standard library only: the supervisor runs on it.
"""

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

_AHEAD = 64 * 2**20
"""Bytes that may wait for a slow reader of the screen."""
_PATIENCE_S = 2.0
"""Seconds that train.py may be held back in all, while that much waits, before output is left out on the screen."""
_LINE_MAX = 2**20
"""Bytes of one line that are kept back to see whether a progress bar overwrites them."""
_BAR_EVERY_S = 60.0
"""A bar that is redrawn for longer leaves one line in the log per this many seconds, so a killed run shows how far it
came."""


class Screen:
    """An open file descriptor that a thread writes to, so that its reader never holds up the caller for long.

    Where the reader is gone, or so slow that `_AHEAD` bytes wait for it, output is left out here.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._lost = 0
        self._gone = False
        self._patience = _PATIENCE_S
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None  # from the first write on: whoever forks before has one thread

    def write(self, data: bytes) -> None:
        """Take `data` for writing. Never raises."""
        with self._changed:
            if self._size >= _AHEAD and not self._gone:
                began = time.monotonic()
                self._changed.wait_for(lambda: self._gone or self._size < _AHEAD, self._patience)
                self._patience = max(0.0, self._patience - (time.monotonic() - began))
            if self._gone:
                return
            if self._size >= _AHEAD:
                self._lost += len(data)
                return
            if self._lost:
                self._put(b"\n[amt_hydra: %d bytes are not shown here: too slow]\n" % self._lost)
                self._lost = 0
            self._put(data)

    def drain(self, quiet_s: float = 3.0, most_s: float = 30.0) -> None:
        """Wait until all is written, at most `most_s`, and no longer than `quiet_s` without progress."""
        end = time.monotonic() + most_s
        with self._changed:
            while self._size and not self._gone and time.monotonic() < end:
                before = self._size
                if not self._changed.wait_for(lambda size=before: self._gone or self._size != size, quiet_s):  # type: ignore[misc]
                    return

    def _put(self, data: bytes) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, daemon=True)
            self._thread.start()
        self._waiting.append(data)
        self._size += len(data)
        self._changed.notify_all()

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                data = memoryview(self._waiting.popleft())
            while data:
                try:
                    written = os.write(self._fd, data)
                except BlockingIOError:  # whoever made it set it so; it is shared, so we leave that alone
                    select.select([], [self._fd], [])
                    continue
                except OSError:  # `| head` has seen enough, or the terminal was closed
                    with self._changed:
                        self._gone = True
                        self._waiting.clear()
                        self._changed.notify_all()
                    return
                data = data[written:]
                with self._changed:
                    self._size -= written
                    if not self._size:
                        self._patience = _PATIENCE_S
                    self._changed.notify_all()


class Collapse:
    """Keeps of each line only what a terminal would show last: text before a carriage return is overwritten."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._overwritten = b""
        self._bar_since: float | None = None

    def feed(self, data: bytes, now: float) -> bytes:
        """Return what is settled once `data` has come at `now` (seconds of a monotonic clock)."""
        settled = bytearray()
        if b"\r" not in data and not self._overwritten:  # the common case, and the one that comes in megabytes
            ends = data.rfind(b"\n") + 1
            if ends:
                settled += self.rest() + data[:ends]
            data = data[ends:]
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._add(line, now)
            settled += self.rest() + b"\n"
        self._add(rest, now)
        bar_is_old = self._bar_since is not None and now - self._bar_since >= _BAR_EVERY_S
        if bar_is_old or len(self._line) > _LINE_MAX:
            settled += self.rest() + (b"\n" if bar_is_old else b"")
        return bytes(settled)

    def rest(self) -> bytes:
        """Return, and forget, the line that has not ended yet."""
        shown = bytes(self._line) or self._overwritten
        self._line.clear()
        self._overwritten = b""
        self._bar_since = None
        return shown

    def _add(self, data: bytes, now: float) -> None:
        *overwritten, last = data.split(b"\r")
        if overwritten:
            # "state\r" leaves the state on show, and so does the "\r" of a line that ends in "\r\n".
            overwritten[0] = bytes(self._line) + overwritten[0]
            self._overwritten = next((state for state in reversed(overwritten) if state), self._overwritten)
            self._line.clear()
            self._bar_since = now if self._bar_since is None else self._bar_since
        self._line += last


class Log:
    """A log file, appended to. Where it cannot be written, that is said once and the run goes on."""

    def __init__(self, path: Path, warn: Callable[[str], None]) -> None:
        self._path = path
        self._warn = warn
        self._warned = False
        self._lost = 0
        self._collapse = Collapse()
        self._fd: int | None = None
        try:
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            self._say(error)

    def write(self, data: bytes) -> None:
        """Append `data`, with overwritten states of progress bars left out. Never raises."""
        self._append(self._collapse.feed(data, time.monotonic()))

    def note(self, text: str) -> None:
        """Append a line of ours. Never raises."""
        rest = self._collapse.rest()
        self._append((rest + b"\n" if rest else b"") + f"amt_hydra: {text}\n".encode())

    def close(self) -> None:
        """Append what is left, and close. Never raises."""
        self._append(self._collapse.rest())
        if self._fd is not None:
            fd, self._fd = self._fd, None
            try:
                os.close(fd)
            except OSError as error:  # a quota may be noticed only now, over NFS
                self._say(error)

    def _append(self, data: bytes) -> None:
        if self._fd is None or not data:
            return
        gap = b"\n[amt_hydra: %d bytes could not be written here]\n" % self._lost if self._lost else b""
        view = memoryview(gap + data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
            self._lost = 0
        except OSError as error:
            self._lost += min(len(view), len(data))
            self._say(error)

    def _say(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            self._warn(f"{self._path} cannot be written ({error.strerror}); the training goes on without it")
