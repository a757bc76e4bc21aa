"""The lock of an experiment: no two runs write to one folder.

A file that names its holders. It appears with its whole text at once (a hard link to a finished file, which like O_EXCL
only one of many can make), so nobody reads half of it. It is stale only if all its holders are known to be gone.
"""

import contextlib
import os
import socket
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from amt_hydra.commands import quote
from amt_hydra.errors import REFUSED, AmtError
from amt_hydra.launch.lock_content import Holder, LockContent, read_lock
from amt_hydra.launch.processes import start_mark

_TAKE_TRIES = 200
_PAUSE_S = 0.02


class Lock:
    """The exclusive lock at `path`, from `__enter__` to `__exit__` and as long as a process it was handed to lives.

    Entering raises AmtError where another holds it, or where it cannot be written. A stale lock is taken over.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mine: LockContent | None = None

    def __enter__(self) -> "Lock":
        mine = LockContent.of_this_process()
        with _readable_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _take(self.path, mine)
        self._mine = mine
        return self

    def hand_over(self, pid: int) -> None:
        """Make the process `pid` a holder too: the lock stays as long as it lives, even if this process dies.

        Raises AmtError where the lock is no longer ours: somebody has removed it.
        """
        mine = self._still_mine()
        if mine is None:
            raise AmtError(f"The lock {self.path} was removed while this run held it.", fix=("start the run again",))
        mark = start_mark(pid)
        if mark is None:
            return  # it has ended already
        self._mine = replace(mine, holders=(*mine.holders, (pid, mark)))
        with _readable_errors(self.path), _finished_file(self.path, self._mine) as finished:
            finished.replace(self.path)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        mine = self._still_mine()
        self._mine = None
        if mine is None or any(start_mark(pid) == mark for pid, mark in mine.holders if pid != os.getpid()):
            return
        with contextlib.suppress(OSError):
            self.path.unlink()

    def _still_mine(self) -> "LockContent | None":
        if self._mine is None or self._mine.holders[0][0] != os.getpid():  # not ours, or we are a fork of its holder
            return None
        there = read_lock(self.path)
        return self._mine if there is not None and there.token == self._mine.token else None


def inspect(path: Path) -> Holder | None:
    """Return who holds the lock at `path`, or None where it is free or stale. Changes nothing."""
    there = read_lock(path)
    return None if there is None or there.is_stale() else there.holder()


def refusal(path: Path, holder: Holder) -> AmtError:
    """Return the error for an experiment that `holder` holds."""
    check = f"ps -p {','.join(str(pid) for pid in holder.pids)}" if holder.pids else "look for a train.py that runs"
    if holder.host and holder.host != socket.gethostname():
        check = f"ssh {holder.host} {check}"
    return AmtError(
        f"This experiment is locked by {holder}.",
        fix=(f"wait for it, or check that it is gone ({check}) and unlock: rm {quote(str(path))}",),
        code=REFUSED,
    )


def _take(path: Path, mine: LockContent) -> None:
    """Make `path` the lock `mine`, or raise AmtError.

    A stale lock may be replaced by whoever holds the claim on it, itself such a lock at a path made of the stale one's
    token: so one process at most replaces it, and a claimant that died is handled in the same way.
    """
    for _ in range(_TAKE_TRIES):
        if _create(path, mine):
            return
        there = read_lock(path)
        if there is None:
            continue
        if not there.is_stale():
            raise refusal(path, there.holder())
        claim = path.with_name(f"{path.name}.{there.token}")
        try:
            _take(claim, replace(mine, token=uuid.uuid4().hex[:12]))
        except AmtError:  # someone else is about to take it over; the next round sees the result
            time.sleep(_PAUSE_S)
            continue
        try:
            now = read_lock(path)
            if now is not None and now.token == there.token:
                with _finished_file(path, mine) as finished:
                    finished.replace(path)
                return
        finally:
            claim.unlink(missing_ok=True)
    raise AmtError(
        f"The lock {path} is stale, and another process seems stuck taking it over.",
        fix=(f"rm {quote(str(path))}*",),
    )


def _create(path: Path, content: LockContent) -> bool:
    """Create `path` with `content`; False where it is there."""
    with _finished_file(path, content) as finished:
        try:
            os.link(finished, path)
        except FileExistsError:
            return False
        except OSError:  # a filesystem without hard links
            return _create_in_place(path, content)
    return True


def _create_in_place(path: Path, content: LockContent) -> bool:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(content.text())
    except FileExistsError:
        return False
    return True


@contextlib.contextmanager
def _finished_file(path: Path, content: LockContent) -> Iterator[Path]:
    """Yield a file beside `path` that holds `content`; it is removed afterwards if it is still there."""
    file = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    try:
        file.write_text(content.text(), encoding="utf-8")
        yield file
    finally:
        file.unlink(missing_ok=True)


@contextlib.contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise AmtError(
            f"The lock {path} cannot be written: {error.strerror}.",
            fix=("make the folder writable, or set paths.outputs to another",),
        ) from error
