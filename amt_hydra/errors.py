"""Exit codes, and the one exception that carries a message for the user."""

import errno
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# The codes follow sysexits(3); anything else is train.py's own (128 + n for a signal).
USAGE = 64
TRAINED_NOTHING = 65
BUG = 70
REFUSED = 78
INTERRUPTED = 130


# What writing to a pipe, socket, terminal or file that was opened long ago can end with.
_OF_STREAMS = (
    *(errno.EPIPE, errno.ECONNRESET, errno.EIO, errno.ENXIO, errno.EBADF, errno.EAGAIN),
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ESTALE),
)


class AmtError(Exception):
    """A refusal that the user can act on.

    `message` names the key, its value and what is valid; `fix` holds the ways out, each a command to paste or a
    short imperative. It is shown without a traceback and ends the process with `code`. Where other overrides would
    do, `new` holds them and `drop` the keys to leave out: whoever knows the command line makes a command of it.
    """

    def __init__(
        self,
        message: str,
        *,
        fix: Sequence[str] = (),
        code: int = REFUSED,
        new: Sequence[str] = (),
        drop: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.fix = tuple(fix)
        self.code = code
        self.new = tuple(new)
        self.drop = tuple(drop)


@dataclass(frozen=True, slots=True)
class Never:
    """Why something can never run as it was asked for, and the overrides under which it could."""

    why: str
    new: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


def of_a_stream(error: BaseException) -> bool:
    """Whether stdout or stderr failed: reader gone, terminal closed, disk full. A file's error names the file."""
    return isinstance(error, OSError) and error.filename is None and error.errno in _OF_STREAMS


def nearest(name: str, known: Sequence[str], cutoff: float = 0.6) -> str | None:
    """Return the entry of `known` closest in spelling to `name`, case aside, or None where nothing is close."""
    from difflib import get_close_matches

    spelt = {entry.lower(): entry for entry in reversed(known)}  # of two that differ in case alone, the first
    found = get_close_matches(name.lower(), spelt, n=1, cutoff=cutoff)
    return spelt[found[0]] if found else None


def unwritable(what: str, where: Path, error: OSError | ValueError) -> AmtError:
    """`what` of ours cannot be written to `where`, a file or folder below paths.outputs."""
    number = error.errno if isinstance(error, OSError) else None
    reason = error.strerror if isinstance(error, OSError) else error
    way = "make room" if number in (errno.ENOSPC, errno.EDQUOT) else "make it writable"
    return AmtError(
        f"{what} cannot be written to {where}: {reason}",
        fix=[f"{way}, or name another folder: paths.outputs=… or AMT_OUTPUTS"],
    )
