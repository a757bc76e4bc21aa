"""Plain values out of inert records: numbers, texts, lists and dicts; anything else as "<module.Class>"."""

import struct
from collections.abc import Iterator, Mapping
from itertools import islice

from amt_hydra.checkpoint.archive import Archive
from amt_hydra.checkpoint.inert import Global, Inert, Storage, Tensor
from amt_hydra.checkpoint.limits import MAX_DEPTH, MAX_NODES, MAX_SCALARS, MAX_SHOWN

# dtype -> (bytes per element, struct format where a number can be read)
ELEMENTS: dict[str, tuple[int, str | None]] = {
    "float64": (8, "d"),
    "float32": (4, "f"),
    "float16": (2, "e"),
    "bfloat16": (2, "bfloat16"),
    "int64": (8, "q"),
    "int32": (4, "i"),
    "int16": (2, "h"),
    "int8": (1, "b"),
    "uint64": (8, "Q"),
    "uint32": (4, "I"),
    "uint16": (2, "H"),
    "uint8": (1, "B"),
    "bool": (1, "?"),
    "complex128": (16, None),
    "complex64": (8, None),
    "quint8": (1, None),
    "qint8": (1, None),
    "qint32": (4, None),
}

CUT = "…"
"""Stands for what lies beyond the limits on depth and number."""

_TEXT_SHOWN = 200  # characters of a class name in a placeholder


class Values:
    """Turns inert objects into plain values, and reads the one number of a one-element tensor from the archive."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._nodes = MAX_NODES
        self._scalars = MAX_SCALARS
        self._shown = MAX_SHOWN
        order = archive.read("byteorder", 0, 3)
        self._order = ">" if order == b"big" else "<"

    def plain(self, value: object, depth: int = 0) -> object:
        """Return `value` as numbers, texts, lists, tuples and dicts; what is neither becomes a placeholder text."""
        self._nodes -= 1
        if self._nodes < 0 or depth > MAX_DEPTH:
            return CUT
        if value is None or isinstance(value, int | float):
            return value
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list | tuple):
            items = [self.plain(item, depth + 1) for item in islice(value, max(0, self._nodes))]
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, dict):
            return self.mapping(value, depth)
        if isinstance(value, Tensor):
            number = self.number(value)
            return f"<tensor {value.dtype} {value.shape}>" if number is None else number
        return self._record(value, depth)

    def mapping(self, value: Mapping[object, object], depth: int = 0, without: str | None = None) -> dict[str, object]:
        """Return the plain entries of a dict by their keys as text, one key left out."""
        shown = islice(value.items(), max(0, self._nodes))
        kept = (entry for entry in shown if without is None or entry[0] != without)
        return {self._text(_key(key)): self.plain(item, depth + 1) for key, item in kept}

    def each(self, value: object) -> Iterator[object]:
        """Yield the items of a list, as far as the limit on plain values goes; nothing of anything else."""
        for item in value if isinstance(value, list) else ():
            self._nodes -= 1
            if self._nodes < 0:
                return
            yield item

    def number(self, value: object) -> float | int | None:
        """Return a number, or the only element of a tensor where the file holds it; None for anything else."""
        if isinstance(value, int | float):
            return value
        if not isinstance(value, Tensor) or value.storage is None or any(n != 1 for n in value.shape):
            return None
        size, form = ELEMENTS.get(value.dtype, (0, None))
        self._scalars -= 1
        if form is None or self._scalars < 0:
            return None
        data = self._archive.read(f"data/{value.storage.key}", value.offset * size, size)
        return None if data is None or len(data) != size else self._unpack(form, data)

    def _text(self, text: str) -> str:
        self._shown -= len(text)
        return text if self._shown >= 0 else CUT

    def _unpack(self, form: str, data: bytes) -> float | int:
        if form != "bfloat16":
            number: float | int = struct.unpack(self._order + form, data)[0]
            return number
        # The upper half of a float32.
        whole = data + b"\0\0" if self._order == ">" else b"\0\0" + data
        return float(struct.unpack(f"{self._order}f", whole)[0])

    def _record(self, value: object, depth: int) -> object:
        if isinstance(value, Inert):
            if value.items is not None:  # a subclass of dict
                return self.mapping(value.items, depth)
            if isinstance(value.state, dict):
                return self._with_state(value, value.state, depth)
        return f"<{_name(value)[:_TEXT_SHOWN]}>"

    def _with_state(self, value: Inert, state: dict[object, object], depth: int) -> object:
        """Look into the two kinds of record that hold hyper-parameters: a Namespace and OmegaConf's nodes."""
        name = _name(value)
        if name == "argparse.Namespace":
            return self.mapping(state, depth)
        for key in ("_content", "_val") if name.startswith("omegaconf.") else ():
            if key in state:
                return self.plain(state[key], depth + 1)
        return f"<{name[:_TEXT_SHOWN]}>"


def _key(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Inert) and isinstance(value.args, tuple) and len(value.args) <= 8:  # a tuple as key
        return f"({', '.join(_key(item)[:_TEXT_SHOWN] for item in value.args if not isinstance(item, Inert))})"
    return str(value) if value is None or isinstance(value, int | float) else f"<{_name(value)[:_TEXT_SHOWN]}>"


def _name(value: object) -> str:
    """Return the global that made a record; an instance restored by copyreg is named by its class."""
    if isinstance(value, Global):
        return value.path
    if not isinstance(value, Inert):
        return "storage" if isinstance(value, Storage) else "object"
    if (
        isinstance(value.args, tuple)
        and value.args
        and _is_rebuilder(value.maker)
        and isinstance(value.args[0], Global)
    ):
        return value.args[0].path
    return value.maker.path if isinstance(value.maker, Global) else "object"


def _is_rebuilder(maker: object) -> bool:
    return isinstance(maker, Global) and maker.path in ("copyreg._reconstructor", "copyreg.__newobj__")
