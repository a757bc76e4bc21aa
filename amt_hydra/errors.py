"""Exit codes, and the one exception that carries a message for the user."""

import errno
from collections.abc import Sequence

# The codes follow sysexits(3); anything else is train.py's own (128 + n for a signal).
USAGE = 64
TRAINED_NOTHING = 65
BUG = 70
REFUSED = 78
INTERRUPTED = 130


class AmtError(Exception):
    """A refusal that the user can act on.

    `message` names the key, its value and what is valid; `fix` holds the ways out, each a command to paste or a
    short imperative. It is shown without a traceback and ends the process with `code`.
    """

    def __init__(self, message: str, *, fix: Sequence[str] = (), code: int = REFUSED) -> None:
        super().__init__(message)
        self.message = message
        self.fix = tuple(fix)
        self.code = code


def of_a_stream(error: BaseException) -> bool:
    """Whether stdout or stderr failed: its reader went away, its disk is full. A file's error names the file."""
    numbers = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return isinstance(error, OSError) and error.filename is None and error.errno in numbers


def nearest(name: str, known: Sequence[str], cutoff: float = 0.6) -> str | None:
    """Return the entry of `known` closest in spelling to `name`, or None where nothing is close."""
    from difflib import get_close_matches

    found = get_close_matches(name, known, n=1, cutoff=cutoff)
    return found[0] if found else None
