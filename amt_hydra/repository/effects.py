"""What the value of a flag does: whether all of it goes under keys of dictionaries, and under which."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from amt_hydra.repository.facts import Place
from amt_hydra.repository.flow import Flow
from amt_hydra.repository.trace import ARGS, called
from amt_hydra.repository.units import Unit

_PURE = frozenset(
    {
        "int",
        "float",
        "str",
        "bool",
        "list",
        "tuple",
        "set",
        "dict",
        "len",
        "abs",
        "round",
        "min",
        "max",
        "sum",
        "any",
        "all",
    }
) | frozenset({"isinstance", "repr", "format", "range", "sorted", "zip", "enumerate", "map"})
_SAYS = frozenset({"print", "warn", "warning", "info", "debug", "error"})
_OF_VALUES = frozenset(name for kind in (str, list, tuple, dict) for name in dir(kind))
_INNER = (
    ast.BinOp | ast.UnaryOp | ast.BoolOp | ast.Compare | ast.IfExp | ast.Tuple | ast.List | ast.Set | ast.JoinedStr
) | (ast.FormattedValue | ast.Starred | ast.Subscript | ast.keyword)


class OtherEffectError(Exception):
    """The value does something else, or what it does cannot be told."""


@dataclass(frozen=True, slots=True)
class Sink:
    """A key that a value is put under: root[keys[0]][keys[1]] = …"""

    root: ast.expr
    keys: tuple[str | None, ...]
    """None for one that is computed; never the last."""
    unit: Unit
    place: Place


class Effects:
    """Follows one value forwards. Raises OtherEffectError as soon as it does more than stand under keys."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._followed: set[tuple[str, Unit]] = set()
        self._guards: set[ast.stmt] = set()
        self.sinks: dict[Sink, None] = {}

    def read(self, node: ast.expr, unit: Unit) -> None:
        """Follow one expression that has the value up to its statement."""
        parents = unit.module.source.parents
        inner: ast.AST = node
        while True:
            outer = parents.get(inner)
            match outer:
                case ast.Call():
                    if called(outer) in _SAYS or isinstance(parents.get(outer), ast.Raise):
                        return
                    if not self._is_pure(outer, inner):
                        raise OtherEffectError
                case ast.Attribute(attr=attr) if attr in _OF_VALUES and isinstance(parents.get(outer), ast.Call):
                    pass
                case ast.stmt():
                    self._statement(outer, inner, unit)
                    return
                case _ if not isinstance(outer, _INNER):
                    raise OtherEffectError
            assert outer is not None
            inner = outer

    def _is_pure(self, call: ast.Call, inner: ast.AST) -> bool:
        if isinstance(call.func, ast.Attribute):  # args.x.lower()
            return inner is call.func
        return inner is not call.func and called(call) in _PURE

    def _statement(self, statement: ast.stmt, inner: ast.AST, unit: Unit) -> None:
        match statement:
            case ast.Assign(value=value) if inner is value:
                self._assign(statement, unit)
            case ast.If(test=test) if inner is test:
                self._guard([*statement.body, *statement.orelse], unit)
            case ast.Raise() | ast.Assert() | ast.Expr():
                pass
            case _:
                raise OtherEffectError

    def _assign(self, statement: ast.Assign, unit: Unit) -> None:
        for target in statement.targets:
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            for part in parts:
                if isinstance(part, ast.Name):
                    self._name(part.id, unit)
                else:
                    self.sinks[self._sink(part, unit)] = None

    def _name(self, name: str, unit: Unit) -> None:
        """Follow every use of a local name."""
        if unit is unit.module.top or name in unit.outer:
            raise OtherEffectError  # another function, or another module, may use it
        if (name, unit) not in self._followed:
            self._followed.add((name, unit))
            for node in unit.module.source.nodes(ast.Name):
                if node.id == name and isinstance(node.ctx, ast.Load):
                    where = self.flow.unit_of(node, unit.module)
                    if next(where.scopes(name), None) is unit:
                        self.read(node, where)

    def _guard(self, body: Sequence[ast.stmt], unit: Unit) -> None:
        """Follow what a test of the value lets happen."""
        for statement in body:
            if statement in self._guards:
                continue
            self._guards.add(statement)
            match statement:
                case ast.Assign(value=value):
                    calls = (node for node in ast.walk(value) if isinstance(node, ast.Call))
                    if any(isinstance(call.func, ast.Name) and called(call) not in _PURE for call in calls):
                        raise OtherEffectError
                    self._assign(statement, unit)
                case ast.If(body=inner, orelse=orelse):
                    self._guard([*inner, *orelse], unit)
                case ast.Expr(value=ast.Call() as call) if called(call) in _SAYS:
                    pass
                case ast.Raise() | ast.Assert() | ast.Pass() | ast.Expr(value=ast.Constant()):
                    pass
                case _:
                    raise OtherEffectError

    def _sink(self, target: ast.expr, unit: Unit) -> Sink:
        keys: list[str | None] = []
        node = target
        while isinstance(node, ast.Subscript):
            key = node.slice
            keys.insert(0, key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None)
            node = node.value
        if not keys or keys[-1] is None or not isinstance(node, ast.Name):
            raise OtherEffectError
        return Sink(node, tuple(keys), unit, self.flow.trace.place(unit, target))


def reads_of(flow: Flow) -> dict[str, list[tuple[ast.expr, Unit]]]:
    """Return every args.<name> that is read, by name."""
    found: dict[str, list[tuple[ast.expr, Unit]]] = {}
    for unit in list(flow.trace.reached):
        for use in unit.uses:
            if not isinstance(use, ast.Attribute) or not isinstance(use.ctx, ast.Load):
                continue
            if flow.trace.kind(use.value, unit) == ARGS:
                found.setdefault(use.attr, []).append((use, unit))
    return found
