"""Flags that set a copy of a configuration whose original is what is read."""

import ast
from collections.abc import Iterator
from pathlib import Path

from amt_hydra.repository.effects import Sink
from amt_hydra.repository.facts import Place
from amt_hydra.repository.flow import Flow
from amt_hydra.repository.source import Source
from amt_hydra.repository.trace import called
from amt_hydra.repository.units import ModuleUnits, Unit

Original = tuple[Path, str]
"""A module's file, and the name of the dictionary in it."""
Chain = tuple[ast.expr, tuple[str | None, ...]]


class Copies:
    """Finds deep copies, and who reads what of their originals."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._chains: dict[tuple[Source, str], list[tuple[ast.expr, Chain, Unit]]] = {}

    def why(self, sinks: tuple[Sink, ...]) -> str:
        """Say that all that a flag sets is a copy's, where the same keys are read of the original, or ""."""
        words = ""
        for sink in sinks:
            copy = self._copied(sink.root, sink.unit, set())
            if copy is None or sink.keys[0] is None:
                return ""
            original, place = copy
            reads = list(self._reads(sink, original))
            if None in reads or not any(of_original for of_original, _ in filter(None, reads)):
                return ""
            if not words and all(of_original for of_original, _ in filter(None, reads)):
                read = next(at for of_original, at in filter(None, reads) if of_original)
                shown = self.flow.trace.sources.place
                words = (
                    f"sets {'.'.join(key or '*' for key in sink.keys)} of a copy made at {shown(place.file, place.line)}; "
                    f"{shown(read.file, read.line)} reads the original"
                )
        return words

    def _copied(self, node: ast.expr, unit: Unit, seen: set[tuple[int, Unit]]) -> tuple[Original, Place] | None:
        """Return the original that an expression is a deep copy of, and where it was made; None where it may be else."""
        if (id(node), unit) in seen:
            return None
        seen.add((id(node), unit))
        match node:
            case ast.Call(args=[original]) if called(node) == "deepcopy":
                found = self._original(original, unit)
                return (found, self.flow.trace.place(unit, node)) if found is not None else None
            case ast.Name(id=name):
                origins = self.flow.named(name, unit)
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int(index))):
                origins = self.flow.item(call, index, unit)
            case ast.Call():
                origins = self.flow.returned(node, unit)
            case _:
                return None
        open_origins = [(n, u) for n, u in origins or () if (id(n), u) not in seen]
        copies = {self._copied(n, u, seen) for n, u in open_origins}
        copies.discard(None) if origins and len(open_origins) < len(origins) else None
        return copies.pop() if len(copies) == 1 else None

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

    def _reads(self, sink: Sink, original: Original) -> Iterator[tuple[bool, Place] | None]:
        """Yield (whether of the original, where) for every read of a sink's key; None where the original is written."""
        for source in self.flow.files:
            if source.path == original[0]:
                continue
            for node, (base, keys), unit in self._in(source, str(sink.keys[0])):
                if any(a is not None and b is not None and a != b for a, b in zip(keys, sink.keys, strict=False)):
                    continue
                own = self._original(base, unit)
                hidden = isinstance(base, ast.Name) and next(unit.scopes(base.id), unit.module.top) is not unit.module.top
                of_original = own == original and (not hidden or base.id in _imported_in(unit))
                if isinstance(getattr(node, "ctx", None), ast.Load | None):
                    if not (of_original and source.path == sink.place.file):
                        yield of_original, self.flow.trace.place(unit, node)
                elif of_original:
                    yield None

    def _in(self, source: Source, first: str) -> list[tuple[ast.expr, Chain, Unit]]:
        """Return the longest chains of keys in a file that begin with a key."""
        if (source, first) not in self._chains:
            found = []
            if f'"{first}"'.encode() in source.data or f"'{first}'".encode() in source.data:
                if self.flow.trace.sources.parsed(source.path) is not None:
                    module = self.flow.trace.module(source.path)
                    found = [(n, c, self.flow.unit_of(n, module)) for n, c in _chains(module) if c[1][0] == first]
            self._chains[source, first] = found
        return self._chains[source, first]


def _chains(module: ModuleUnits) -> Iterator[tuple[ast.expr, Chain]]:
    parents = module.source.parents
    for node in (*module.source.nodes(ast.Subscript), *module.source.nodes(ast.Call)):
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


def _imported_in(unit: Unit) -> set[str]:
    """Return the names that a function imports for itself."""
    return {
        alias.asname or alias.name
        for node in ast.walk(unit.node)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
