"""What looking at a file may cost at most, and the exception that says why a file was not read.

A checkpoint is an untrusted file, so every loop over its content is bounded by one of these. The worst that files made
to hurt were found to cost is 160 MiB and a few seconds (add MAX_PICKLE where they are padded with it); an ordinary
checkpoint stays far below each limit.
"""

MAX_PICKLE = 64 << 20
"""Bytes of `data.pkl`, unpacked. Tensors are not in it: 10 000 of them take 3 MiB."""

MAX_STEPS = 2_000_000
"""Opcodes run. A tensor takes 34 of them."""

MAX_STRING = 64 << 10
"""Bytes of one text that are kept; what is longer (an array pickled as text) is cut."""

MAX_TEXT = 16 << 20
"""Bytes of text kept in all."""

MAX_MEMBERS = 100_000
"""Members of the archive: one per storage, and six more."""

MAX_DIRECTORY = 16 << 20
"""Bytes of the archive's central directory."""

MAX_GLOBALS = 10_000
"""Different classes and functions named."""

MAX_NODES = 100_000
"""Plain values (numbers, texts, containers) handed out: one small list may be referred to a million times."""

MAX_SHOWN = 4 << 20
"""Characters of text among them."""

MAX_DEPTH = 24
"""Nesting of the plain values handed out."""

MAX_SCALARS = 1_000
"""One-element tensors whose value is read from the file."""


class UnreadableError(Exception):
    """Why a file is not a whole checkpoint, in words for a user."""
