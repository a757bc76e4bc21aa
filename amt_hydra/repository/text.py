"""Names in a source's text, found without a parse, and without a pattern for each: compiling those takes longer."""

from collections.abc import Iterator


def places(data: bytes, name: bytes) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of every occurrence of a name that is no part of a longer one."""
    start = data.find(name)
    while start >= 0:
        end = start + len(name)
        if not _is_word(data[start - 1 : start]) and not _is_word(data[end : end + 1]):
            yield start, end
        start = data.find(name, end)


def before(data: bytes, at: int) -> bytes:
    """Return what stands before a place in its line."""
    return data[data.rfind(b"\n", 0, at) + 1 : at]


def after(data: bytes, at: int) -> bytes:
    """Return what follows a place in its line."""
    end = data.find(b"\n", at)
    return data[at : end if end >= 0 else len(data)]


def is_set(rest: bytes) -> bool:
    """Whether what follows a name gives it a value: " = 1", not " == 1"."""
    rest = rest.lstrip()
    return rest.startswith(b"=") and not rest.startswith(b"==")


def _is_word(character: bytes) -> bool:
    return character.isalnum() or character == b"_"
