"""Which checkpoint an expression names: the last.ckpt of the experiment's folder, or the one that a flag gives."""

import ast
import re
from collections.abc import Iterable, Iterator

from amt_hydra.repository.flow import Flow, Origin
from amt_hydra.repository.trace import ARGS, called
from amt_hydra.repository.units import Unit

LAST, INIT, UNKNOWN = "last", "init", "unknown"
_LAST_NAME = re.compile(r"(?:^|[/\\])last[\w.=-]*\.ckpt$")
# What hands a path on: str(x), Path(x), os.path.abspath(x), x.resolve().
_SAME = frozenset({"str", "Path", "PurePath", "fspath", "abspath", "realpath", "expanduser", "expandvars", "normpath"})
_SAME_METHODS = frozenset({"resolve", "absolute", "expanduser", "as_posix", "strip"})
_JOINS = frozenset({"join", "joinpath"})
_HOPS = 25


class Labels:
    """Labels expressions. An empty set: it is None, or nothing at all."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._under_way: set[tuple[int, Unit]] = set()

    def of(self, node: ast.expr, unit: Unit) -> frozenset[str]:
        """Return which checkpoints an expression may name. One that may be the last.ckpt, or another of its folder
        that is asked for by name, is the last."""
        found = self._of(node, unit)
        return found - {UNKNOWN} if LAST in found else found

    def _of(self, node: ast.expr, unit: Unit) -> frozenset[str]:
        key = (id(node), unit)
        if key in self._under_way or len(self._under_way) > _HOPS:
            return frozenset()
        self._under_way.add(key)
        try:
            return self._label(node, unit)
        finally:
            self._under_way.discard(key)

    def _label(self, node: ast.expr, unit: Unit) -> frozenset[str]:
        match node:
            case ast.Constant(value=None):
                return frozenset()
            case ast.Constant(value=str(text)):
                return frozenset({LAST if _LAST_NAME.search(text) else UNKNOWN})
            case ast.JoinedStr(values=[*_, end]):
                return self._end(node, end, unit)
            case ast.FormattedValue(value=value) | ast.NamedExpr(value=value):
                return self._of(value, unit)
            case ast.BinOp(op=ast.Div() | ast.Add(), right=right):
                return self._of(right, unit)
            case ast.IfExp(body=body, orelse=orelse):
                return self._of(body, unit) | self._of(orelse, unit)
            case ast.BoolOp(op=ast.Or(), values=values):
                return self._all((value, unit) for value in values)
            case ast.BoolOp(values=[*_, value]):
                return self._of(value, unit)
            case ast.Name(id=name):
                return self._all(self.flow.named(name, unit))
            case ast.Attribute():
                return self._attribute(node, unit)
            case ast.Subscript():
                return self._subscript(node, unit)
            case ast.Call():
                return self._call(node, unit)
        return frozenset({UNKNOWN})

    def _all(self, origins: Iterable[Origin] | None) -> frozenset[str]:
        if origins is None:
            return frozenset({UNKNOWN})
        return frozenset().union(*(self._of(node, unit) for node, unit in origins))

    def _end(self, node: ast.JoinedStr, end: ast.expr, unit: Unit) -> frozenset[str]:
        """Label an f-string: its end says which file it is."""
        if isinstance(end, ast.Constant):
            before = "/" if len(node.values) > 1 and str(end.value).startswith("last") else ""
            return frozenset({LAST if _LAST_NAME.search(before + str(end.value)) else UNKNOWN})
        return self._of(end, unit)

    def _attribute(self, node: ast.Attribute, unit: Unit) -> frozenset[str]:
        if self.flow.trace.kind(node.value, unit) == ARGS:
            return frozenset({INIT})
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return self._all(self.flow.member(node.attr, unit))
        return frozenset({UNKNOWN})

    def _subscript(self, node: ast.Subscript, unit: Unit) -> frozenset[str]:
        match node.slice:
            case ast.Constant(value=str(key)):
                return self._all(self.flow.keyed(key) or None)
            case ast.Constant(value=int(index)) if isinstance(node.value, ast.Call):
                return self._all(self.flow.item(node.value, index, unit))
        return frozenset({UNKNOWN})

    def _call(self, call: ast.Call, unit: Unit) -> frozenset[str]:
        name = called(call)
        if name in _JOINS and call.args:
            return self._of(call.args[-1], unit)
        if name in _SAME and call.args:
            return self._of(call.args[-1], unit)
        if name in _SAME_METHODS and isinstance(call.func, ast.Attribute) and not call.args:
            return self._of(call.func.value, unit)
        if name == "getattr" and len(call.args) > 1 and self.flow.trace.kind(call.args[0], unit) == ARGS:
            return frozenset({INIT})
        if name == "get" and call.args and isinstance(call.args[0], ast.Constant):
            return self._all(self.flow.keyed(str(call.args[0].value)) or None)
        return self._all(self.flow.returned(call, unit) or None)


def names_checkpoint(node: ast.expr) -> bool:
    """Whether an expression says that it is a checkpoint's path."""
    return re.search(r"ckpt|checkpoint", ast.unparse(node), re.IGNORECASE) is not None


def exists_tests(node: ast.expr) -> Iterator[tuple[ast.expr, bool]]:
    """Yield (path, whether a true test means that it is there) for every test of a file's existence."""
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield from ((path, not there) for path, there in exists_tests(operand))
        case ast.BoolOp(values=values):
            for value in values:
                yield from exists_tests(value)
        case ast.Call(func=ast.Attribute(attr="exists" | "isfile" | "lexists"), args=[path]):
            yield path, True
        case ast.Call(func=ast.Name(id="exists" | "isfile"), args=[path]):
            yield path, True
        case ast.Call(func=ast.Attribute(attr="exists" | "is_file", value=path), args=[]):
            yield path, True
