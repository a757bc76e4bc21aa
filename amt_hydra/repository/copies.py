"""Flags that set a copy of a configuration whose original is what is read."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from amt_hydra.repository.effects import Sink
from amt_hydra.repository.facts import Place
from amt_hydra.repository.flow import Flow
from amt_hydra.repository.source import Source
from amt_hydra.repository.text import after, before, is_set, places
from amt_hydra.repository.trace import called
from amt_hydra.repository.units import ModuleUnits, Unit

Original = tuple[Path, str]
"""A module's file, and the name of the dictionary in it."""
Copy = tuple[Original, Place]
"""What was copied, and where."""
Keys = tuple[str | None, ...]
Chain = tuple[ast.expr, Keys]
_OWNER = re.compile(rb"(?<![\w.])([A-Za-z_][\w.]*)(?:\[|\.get\()$")
_INNER = re.compile(rb"\](?:\[[\"']\w+[\"']\])*")
_KEY = re.compile(rb"\w+")


class Copies:
    """Finds deep copies, and who reads what of their originals."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._written: dict[Original, bool] = {}
        self._texts: dict[tuple[Source, bytes], list[tuple[bytes, Keys]]] = {}
        self._known: dict[tuple[str, Unit], Copy | None] = {}
        self._chains: dict[tuple[Source, str], list[tuple[ast.expr, Chain, Unit]]] = {}

    def why(self, sinks: tuple[Sink, ...]) -> str:
        """Say that all that a flag sets is a copy's, where the same keys are read of the original, or ""."""
        words = ""
        for sink in sinks:
            copy = self._copied(sink.root, sink.unit)
            if copy is None or sink.keys[0] is None:
                return ""
            original, place = copy
            if not self._may_read(sink, original) or self._is_written(original):
                return ""
            reads = list(self._reads(sink, original))
            if None in reads or not any(of_original for of_original, _ in filter(None, reads)):
                return ""
            if not words and all(of_original for of_original, _ in filter(None, reads)):
                read = next(at for of_original, at in filter(None, reads) if of_original)
                shown = self.flow.trace.sources.place
                words = (
                    f"sets {'.'.join(key or '*' for key in sink.keys)} of a copy made at "
                    f"{shown(place.file, place.line)}; {shown(read.file, read.line)} reads the original"
                )
        return words

    def _copied(self, root: ast.expr, unit: Unit) -> Copy | None:
        """Return the original that an expression is a deep copy of, and where; None where it may be something else."""
        key = (ast.unparse(root), unit)
        if key not in self._known:
            copies = set(self._found(root, unit, set()))
            self._known[key] = copies.pop() if len(copies) == 1 else None
        return self._known[key]

    def _found(self, node: ast.expr, unit: Unit, seen: set[tuple[int, Unit]]) -> Iterator[Copy | None]:
        if (id(node), unit) in seen:
            return
        seen.add((id(node), unit))
        origins = None
        match node:
            case ast.Call(args=[original]) if called(node) == "deepcopy":
                found = self._original(original, unit)
                yield (found, self.flow.trace.place(unit, node)) if found is not None else None
                return
            case ast.Name(id=name) if name not in unit.module.imports:
                origins = self.flow.named(name, unit)
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int(index))):
                origins = self.flow.item(call, index, unit)
            case ast.Call():
                origins = self.flow.returned(node, unit)
        for origin in origins or ():
            yield from self._found(*origin, seen)
        if not origins:
            yield None

    def _original(self, node: ast.expr, unit: Unit) -> Original | None:
        """Return the module and the name that an expression is imported as."""
        sources, path = self.flow.trace.sources, unit.module.source.path
        match node:
            case ast.Name(id=name) if name in unit.module.imports:
                module, level, attribute = unit.module.imports[name]
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in unit.module.imports:
                outer, level, inner = unit.module.imports[name]
                module = f"{outer}.{inner}" if inner else outer
            case _:
                return None
        found = sources.resolve(path, module, level)
        return (found, attribute) if found is not None and attribute is not None else None

    def _may_read(self, sink: Sink, original: Original) -> bool:
        """Whether a file's text imports the original and takes an item of a name by the first key: few are parsed."""
        name, key = original[1].encode(), str(sink.keys[0]).encode()
        return any(
            name in source.data
            and not all(owner.startswith(b"self.") for owner, _ in self._owned(source, key))
            and _imports(source.data, name)
            for source in self.flow.files
            if source.path not in (sink.place.file, original[0])
        )

    def _is_written(self, original: Original) -> bool:
        """Whether something puts a whole dictionary into the original, or in its place: the copy may be put back."""
        if original not in self._written:
            others = (source.data for source in self.flow.files if source.path != original[0])
            self._written[original] = any(_writes(data, original[1].encode()) for data in others)
        return self._written[original]

    def _owned(self, source: Source, key: bytes) -> list[tuple[bytes, Keys]]:
        if (source, key) not in self._texts:
            self._texts[source, key] = _owned(source.data, key) if key in source.data else []
        return self._texts[source, key]

    def _reads(self, sink: Sink, original: Original) -> Iterator[tuple[bool, Place] | None]:
        """Yield (whether of the original, where) for every read of a sink's key; None where the original is written."""
        for source in self.flow.files:
            if source.path == original[0]:
                continue
            owned = self._owned(source, str(sink.keys[0]).encode())
            if all(owner.startswith(b"self.") for owner, _ in owned):  # no name of a module: need not be parsed
                yield from ((False, Place(source.path, 0)) for _, keys in owned if _fits(keys, sink))
                continue
            for node, (base, keys), unit in self._in(source, str(sink.keys[0])):
                if not _fits(keys, sink):
                    continue
                of_original = self._original(base, unit) == original and not _is_hidden(base, unit)
                if isinstance(getattr(node, "ctx", None), ast.Load | None):
                    if not (of_original and source.path == sink.place.file):
                        yield of_original, self.flow.trace.place(unit, node)
                elif of_original:
                    yield None

    def _in(self, source: Source, first: str) -> list[tuple[ast.expr, Chain, Unit]]:
        """Return the longest chains of keys in a file that begin with a key."""
        if (source, first) not in self._chains:
            self._chains[source, first] = []
            if self._owned(source, first.encode()) and self.flow.trace.sources.parsed(source.path) is not None:
                module = self.flow.trace.module(source.path)
                found = [(node, chain) for node, chain in _chains(module) if chain[1][0] == first]
                self._chains[source, first] = [(n, chain, self.flow.unit_of(n, module)) for n, chain in found]
        return self._chains[source, first]


def _fits(keys: Keys, sink: Sink) -> bool:
    """Whether keys may lead to a sink's, or to a dictionary around it."""
    return not any(a is not None and b is not None and a != b for a, b in zip(keys, sink.keys, strict=False))


def _owned(data: bytes, key: bytes) -> list[tuple[bytes, Keys]]:
    """Return what a text takes by a key: (the expression before it, the keys, as far as they are plain)."""
    found: list[tuple[bytes, Keys]] = []
    for quote in (b'"', b"'"):
        quoted = quote + key + quote
        at = data.find(quoted)
        while at >= 0:
            before = data[max(at - 80, 0) : at]
            if before.endswith((b"[", b"get(")):
                owner = _OWNER.search(before)
                inner = _INNER.match(data, at + len(quoted))
                plain = _KEY.findall(inner[0]) if inner is not None else []
                found.append((owner[1] if owner is not None else b"", (key.decode(), *(k.decode() for k in plain))))
            at = data.find(quoted, at + 1)
    return found


def _writes(data: bytes, name: bytes) -> bool:
    """Whether a text changes a dictionary that it imports under a name, or binds the name anew in its module."""
    if name not in data:
        return False
    found = list(places(data, name))
    aliases = [after(data, end).split()[1].strip(b",()") for _, end in found if after(data, end).split()[:1] == [b"as"]]
    for alias in aliases or [name]:
        for start, end in places(data, alias):
            rest = after(data, end)
            changed = rest.startswith((b".update(", b".clear(", b".popitem(")) or rest.lstrip().startswith(b"|=")
            if changed and not before(data, start).endswith(b"self."):
                return True
    return any(
        (owner.endswith(b".") and not owner.endswith(b"self.") and is_set(after(data, end))) or b"setattr(" in owner
        for start, end in found
        for owner in (before(data, start),)
    )


def _imports(data: bytes, name: bytes) -> bool:
    """Whether a text may import a name, or take it of a module."""
    return any(
        owner.endswith(b".") or b"import" in owner or b"(" in data[max(start - 400, 0) : start].rpartition(b"import")[2]
        for start, _ in places(data, name)
        for owner in (before(data, start),)
    )


def _chains(module: ModuleUnits) -> Iterator[tuple[ast.expr, Chain]]:
    parents = module.source.parents
    gets = (c for c in module.source.nodes(ast.Call) if isinstance(c.func, ast.Attribute) and c.func.attr == "get")
    for node in (*module.source.nodes(ast.Subscript), *gets):
        base, keys = _chain(node)
        outer = parents.get(node)
        if isinstance(outer, ast.Attribute) and outer.attr == "get":
            outer = parents.get(outer)
        inner = isinstance(outer, ast.Subscript | ast.Call) and len(_chain(outer)[1]) > len(keys)
        if keys and not inner:
            yield node, (base, keys)


def _chain(node: ast.expr) -> Chain:
    keys: list[str | None] = []
    while True:
        match node:
            case ast.Subscript(value=inner, slice=index):
                key = index
            case ast.Call(func=ast.Attribute(attr="get", value=inner), args=[index, *_]):
                key = index
            case _:
                return node, tuple(keys)
        keys.insert(0, key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None)
        node = inner


def _is_hidden(base: ast.expr, unit: Unit) -> bool:
    """Whether a name that a module imports means something else within a function."""
    if not isinstance(base, ast.Name):
        return False
    scope = next(unit.scopes(base.id), unit.module.top)
    return scope is not unit.module.top and base.id not in _imported_in(unit)


def _imported_in(unit: Unit) -> set[str]:
    """Return the names that a function imports for itself."""
    return {
        alias.asname or alias.name
        for node in ast.walk(unit.node)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
