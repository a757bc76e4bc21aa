"""The state of the stack machine that reads a pickle, and what its opcodes do with it; none of it executes anything."""

from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING

from amt_hydra.checkpoint.inert import Global, Inert, Storage, call, storage
from amt_hydra.checkpoint.limits import MAX_GLOBALS, MAX_STRING, MAX_TEXT, UnreadableError
from amt_hydra.checkpoint.weights_only import ALLOWED_GLOBALS


class Machine:
    """One pass over one pickle. `globals` holds every name met, `opcodes` those that weights_only does not know."""

    __slots__ = ("at", "data", "globals", "marks", "memo", "opcodes", "stack", "storages", "text")

    def __init__(self, data: bytearray) -> None:
        self.data = data
        self.at = 0
        self.stack: list[object] = []
        self.marks: list[int] = []
        self.memo: dict[int, object] = {}
        self.storages: dict[str, Storage] = {}
        self.text = MAX_TEXT
        self.globals: dict[str, Global] = {}
        self.opcodes: set[str] = set()

    def since_mark(self) -> list[object]:
        """Take what lies above the last mark."""
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def take(self, size: int) -> bytearray:
        """Read `size` bytes."""
        at = self.at
        self.skip(size)
        return self.data[at : self.at]

    def skip(self, size: int) -> None:
        """Pass over `size` bytes."""
        self.at += size
        if self.at > len(self.data):
            raise EOFError

    def number(self, size: int) -> int:
        """Read an unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size), "little")

    def string(self, size: int) -> str:
        """Read `size` bytes of text, cut where it is too long to keep."""
        self.charge(min(size, MAX_STRING))
        if size <= MAX_STRING:
            return str(self.take(size), "utf-8", "surrogatepass")
        kept = str(self.take(MAX_STRING), "utf-8", "replace")
        self.skip(size - MAX_STRING)
        return f"{kept}… ({size} bytes)"

    def charge(self, size: int) -> None:
        """Count `size` bytes of text as kept, and refuse the file where they are too many."""
        self.text -= size
        if self.text < 0:
            raise UnreadableError(f"refused: its pickle holds more than {MAX_TEXT >> 20} MiB of text")

    def line(self, encoding: str = "utf-8") -> str:
        """Read one line of text (protocol 0, and the names of globals)."""
        at = self.at
        self.at = self.data.index(b"\n", at) + 1
        self.charge(self.at - at)
        return str(self.data[at : self.at - 1], encoding, "surrogatepass")

    def name(self, module: str, name: str, *, old: bool) -> Global:
        """Return the inert global, one per name; `old` names are mapped from Python 2's."""
        if old:
            module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
        self.charge(len(module) + len(name))  # a long name may be spelled once and used a million times
        path = f"{module}.{name}"
        found = self.globals.get(path)
        if found is None:
            if len(self.globals) >= MAX_GLOBALS:
                raise UnreadableError(f"refused: its pickle names more than {MAX_GLOBALS} classes and functions")
            found = self.globals[path] = Global(path)
        return found

    def refused(self) -> tuple[str, ...]:
        """Return the globals that weights_only refuses, sorted."""
        return tuple(sorted(self.globals.keys() - ALLOWED_GLOBALS))

    def put(self, pairs: list[object]) -> None:
        """Put key, value, key, value, … into the dict (or dict-like record) on top of the stack."""
        target = self.stack[-1]
        if isinstance(target, Inert):
            if target.items is None:
                target.items = {}
            target = target.items
        if not isinstance(target, dict) or len(pairs) % 2:
            raise TypeError
        for at in range(0, len(pairs), 2):
            key = pairs[at]
            target[key if type(key) is str else self.key(key)] = pairs[at + 1]

    def extend(self, values: list[object]) -> None:
        """Append to the list on top of the stack; what any other record holds is not kept."""
        target = self.stack[-1]
        if isinstance(target, list):
            target.extend(values)
        elif not isinstance(target, Inert):
            raise TypeError

    def build(self) -> None:
        """Note the state set on a record; on a dict (a state_dict's _metadata) it is of no interest."""
        state = self.stack.pop()
        target = self.stack[-1]
        if isinstance(target, Inert):
            target.state = state

    def persistent(self, pid: object) -> object:
        """Return the storage that a persistent id names, and keep account of it."""
        found = storage(pid)
        if isinstance(found, Storage):
            known = self.storages.get(found.key)
            if known is None or known.numel < found.numel:
                self.storages[found.key] = found
        return found

    def reduce(self, arguments: object) -> None:
        """Replace the callable on top of the stack by the record of its call."""
        self.stack[-1] = call(self.stack[-1], arguments)

    @staticmethod
    def key(value: object) -> object:
        """Return a dict key whose hash is cheap and not made to collide; any other value is wrapped."""
        if isinstance(value, str | float) or value is None or (isinstance(value, int) and abs(value) < 1 << 53):
            return value
        return Inert(None, value)
