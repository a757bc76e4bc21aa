"""What train.py surely runs: its own level, and the functions that are called there under no condition."""

import ast
import re
from collections.abc import Iterator

from amt_hydra.repository.flow import Flow, root_of
from amt_hydra.repository.source import Source
from amt_hydra.repository.syntax import children
from amt_hydra.repository.text import after, before, is_set, places
from amt_hydra.repository.trace import called
from amt_hydra.repository.units import FUNCTIONS, Unit

# Conditions that hold in one process of every run.
_RANK = re.compile(r"rank\s*==\s*0|is_global_zero|is_main_process|is_world_process_zero|__name__ == '__main__'")
_EXITS = frozenset({"exit", "_exit", "quit"})
_SETS_NONE = re.compile(rb"[ \t]*(?:self\.)?([A-Za-z_]\w*)[ \t]*=[ \t]*None[ \t]*(?:#.*)?\r?$")


class Surely:
    """The units that every run goes through, in the order in which they are reached."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._inside: dict[Unit, list[ast.AST]] = {}
        self._sets_none: dict[Source, bool] = {}
        self.units: list[Unit] = [flow.trace.train.top]
        for unit in self.units:  # it grows as it is gone through
            for call in unit.calls:
                targets = self.targets(call, unit)
                if (
                    len(targets) == 1
                    and targets[0] not in self.units
                    and self._is_plain(targets[0])
                    and self.runs(call, unit)
                ):
                    self.units.append(targets[0])

    def targets(self, call: ast.Call, unit: Unit) -> list[Unit]:
        """Return what a call runs, where that may matter: modules that set nothing to None are not opened."""
        root = root_of(call.func)
        if root in unit.module.imports:
            module, level, attribute = unit.module.imports[root]
            names = (f"{module}.{attribute}", module) if attribute else (module,)
            paths = (self.flow.trace.sources.resolve(unit.module.source.path, name, level) for name in names)
            path = next((p for p in paths if p is not None), None)
            source = self.flow.trace.sources.load(path) if path is not None else None
            if source is None or not self._may_matter(source):
                return []
        elif isinstance(call.func, ast.Attribute) and root not in ("self", "cls"):
            return []  # a method of something: which one it is, is not known
        return list(self.flow.targets(call, unit))

    def _may_matter(self, source: Source) -> bool:
        if source not in self._sets_none:
            self._sets_none[source] = _sets_none(source.data)
        return self._sets_none[source]

    def _is_plain(self, unit: Unit) -> bool:
        """Whether calling a function runs it: no generator, no coroutine, nothing wrapped."""
        node = unit.node
        if not isinstance(node, ast.FunctionDef) or node.decorator_list:
            return False
        return not any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in self.inside(unit))

    def inside(self, unit: Unit) -> list[ast.AST]:
        """Return the nodes of a unit, those of the functions within it left out."""
        if unit not in self._inside:
            nodes: list[ast.AST] = [unit.node]
            for node in nodes:  # it grows as it is gone through
                nodes += [n for n in children(node) if n.__class__ not in FUNCTIONS]
            self._inside[unit] = nodes
        return self._inside[unit]

    def runs(self, node: ast.AST, unit: Unit) -> bool:
        """Whether a node of a unit is run under no condition, and nothing may leave the unit before it."""
        line = getattr(node, "lineno", 0)
        if any(_is_exit(other) and getattr(other, "lineno", 0) < line for other in self.inside(unit)):
            return False
        parents = unit.module.source.parents
        while node is not unit.node:
            inner, node = node, parents.get(node, unit.node)
            if node is not unit.node and not _always(node, inner):
                return False
        return True


def _always(node: ast.AST, inner: ast.AST) -> bool:
    match node:
        case ast.If(test=test):
            return inner is test or (inner in node.body and _RANK.search(ast.unparse(test)) is not None)
        case ast.IfExp(test=first) | ast.BoolOp(values=[first, *_]) | ast.While(test=first) | ast.For(iter=first):
            return inner is first
        case ast.Try():
            return inner in node.body and not node.handlers
        case ast.Compare(left=left):
            return inner is left or len(node.ops) == 1
        case ast.ExceptHandler() | ast.Lambda() | ast.comprehension() | ast.match_case() | ast.ClassDef():
            return False
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return False
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return False
    return True


def _is_exit(node: ast.AST) -> bool:
    return isinstance(node, ast.Return) or (isinstance(node, ast.Call) and called(node) in _EXITS)


def _sets_none(data: bytes) -> bool:
    """Whether a file sets a name to None, never to anything else, and uses it."""
    names = {match[1] for match in map(_SETS_NONE.match, _lines(data, b"None")) if match is not None}
    return any(_is_only_none(name, data) and _is_used(name, data) for name in names)


def _lines(data: bytes, word: bytes) -> Iterator[bytes]:
    """Yield the lines that hold a word."""
    return (before(data, start) + after(data, start) for start, _ in places(data, word))


def _is_only_none(name: bytes, data: bytes) -> bool:
    for start, end in places(data, name):
        rest = after(data, end).lstrip()
        # An annotated one is a parameter, most of the time: what it is given is not seen here.
        given = is_set(rest) or (rest.startswith(b":") and b"=" in rest)
        if given and not rest[1:].lstrip().startswith(b"None") and not before(data, start).lstrip().startswith(b"#"):
            return False
    return True


def _is_used(name: bytes, data: bytes) -> bool:
    return any(
        data[end : end + 1] in (b".", b"[", b"(") or before(data, start).lstrip().startswith(b"return ")
        for start, end in places(data, name)
    )
