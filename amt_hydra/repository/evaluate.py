"""A small evaluator for expressions of a repository's source: it computes what is plainly decidable and runs nothing.

It knows literals, operators, a few builtins and string methods, and functions whose whole body it can follow. Whatever
else it meets, and whatever would raise, is `Undecided`.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from amt_hydra.repository.operators import BINARY, BUILTINS, COMPARE, CONVERT, METHODS, SIZE, UNARY, bounded

DEPTH = 20
"""Most nested calls of the repository's own functions."""

Hook = Callable[[ast.expr, "Scope"], object]


class Undecided(Exception):  # noqa: N818 # not an error: an answer
    """The value cannot be known from the source alone."""


def undecided(_: ast.expr, __: "Scope") -> object:
    """Look up nothing: the hook of an expression that has no special sub-expressions."""
    raise Undecided


class Scope:
    """What an expression may refer to: values by name, functions by name, and a hook for anything special.

    The hook sees names, attributes, subscripts, calls and comparisons first; it raises Undecided to pass.
    """

    def __init__(
        self,
        names: Mapping[str, object] | None = None,
        functions: Mapping[str, ast.FunctionDef] | None = None,
        hook: Hook = undecided,
        depth: int = 0,
    ) -> None:
        self.names = names if names is not None else {}
        self.functions = functions if functions is not None else {}
        self.hook = hook
        self.depth = depth


def evaluate(node: ast.expr, scope: Scope) -> Any:
    """Return the value of an expression, or raise Undecided."""
    try:
        return _value(node, scope)
    except Undecided:
        raise
    except Exception as error:  # what raises here would raise there: int("x"), {}["k"], 1 / 0, too deep a recursion
        raise Undecided from error


def _value(node: ast.expr, scope: Scope) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, _HOOKED):
        try:
            return scope.hook(node, scope)
        except Undecided:
            pass
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise Undecided
    return handler(node, scope)


def _name(node: ast.Name, scope: Scope) -> Any:
    if node.id in scope.names:
        return scope.names[node.id]
    kind = BUILTINS.get(node.id)
    if not isinstance(kind, type):  # isinstance(value, bool) names a type; no other builtin is a value here
        raise Undecided
    return kind


def _items(nodes: Sequence[ast.expr], scope: Scope) -> list[Any]:
    found: list[Any] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            found.extend(_value(node.value, scope))
        else:
            found.append(_value(node, scope))
    return found


def _dict(node: ast.Dict, scope: Scope) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            found.update(_value(value, scope))
        else:
            found[_value(key, scope)] = _value(value, scope)
    return found


def _unary(node: ast.UnaryOp, scope: Scope) -> Any:
    return UNARY[type(node.op)](_value(node.operand, scope))


def _binary(node: ast.BinOp, scope: Scope) -> Any:
    left, right = _value(node.left, scope), _value(node.right, scope)
    operation = BINARY.get(type(node.op))
    if operation is None or not bounded(node.op, left, right):
        raise Undecided
    return operation(left, right)


def _boolean(node: ast.BoolOp, scope: Scope) -> Any:
    stop_at = isinstance(node.op, ast.Or)
    value: Any = None
    for operand in node.values:
        value = _value(operand, scope)
        if bool(value) is stop_at:
            break
    return value


def _compare(node: ast.Compare, scope: Scope) -> bool:
    left = _value(node.left, scope)
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        right = _value(comparator, scope)
        if not COMPARE[type(op)](left, right):
            return False
        left = right
    return True


def _choice(node: ast.IfExp, scope: Scope) -> Any:
    return _value(node.body if _value(node.test, scope) else node.orelse, scope)


def _joined(node: ast.JoinedStr, scope: Scope) -> str:
    parts: list[str] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            if part.format_spec is not None:
                raise Undecided
            parts.append(CONVERT.get(part.conversion, str)(_value(part.value, scope)))
        else:
            parts.append(str(_value(part, scope)))
    if sum(map(len, parts)) > SIZE:
        raise Undecided
    return "".join(parts)


def _subscript(node: ast.Subscript, scope: Scope) -> Any:
    return _value(node.value, scope)[_value(node.slice, scope)]


def _slice(node: ast.Slice, scope: Scope) -> slice:
    return slice(*(_value(part, scope) if part else None for part in (node.lower, node.upper, node.step)))


def _call(node: ast.Call, scope: Scope) -> Any:
    function: Any
    if isinstance(node.func, ast.Attribute):
        function = _method(node.func, scope)
    elif isinstance(node.func, ast.Name) and node.func.id in scope.functions:
        return _follow(scope.functions[node.func.id], node, scope)
    elif isinstance(node.func, ast.Name) and node.func.id in BUILTINS and node.func.id not in scope.names:
        function = BUILTINS[node.func.id]
    else:
        raise Undecided
    return function(*_items(node.args, scope), **_keywords(node, scope))


def _keywords(node: ast.Call, scope: Scope) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for keyword in node.keywords:
        value = _value(keyword.value, scope)
        found.update(value if keyword.arg is None else {keyword.arg: value})
    return found


def _method(node: ast.Attribute, scope: Scope) -> Callable[..., Any]:
    owner = _value(node.value, scope)
    allowed = next((names for kind, names in METHODS.items() if isinstance(owner, kind)), frozenset())
    if node.attr not in allowed:
        raise Undecided
    method: Callable[..., Any] = getattr(owner, node.attr)
    return method


def _follow(function: ast.FunctionDef, call: ast.Call, scope: Scope) -> Any:
    """Run a function of the repository by following its statements, as far as all of them are understood."""
    if scope.depth >= DEPTH or function.decorator_list:
        raise Undecided
    names = dict(scope.names) | _bind(function.args, _items(call.args, scope), _keywords(call, scope), scope)
    done, value = _statements(function.body, names, Scope(names, scope.functions, scope.hook, scope.depth + 1))
    return value if done else None


def _bind(args: ast.arguments, given: list[Any], named: dict[str, Any], scope: Scope) -> dict[str, Any]:
    parameters = [a.arg for a in (*args.posonlyargs, *args.args)]
    if args.vararg or args.kwarg or len(given) > len(parameters):
        raise Undecided
    bound = dict(zip(parameters, given, strict=False)) | named
    defaults: list[tuple[str, ast.expr | None]] = [
        *zip(reversed(parameters), reversed(args.defaults), strict=False),
        *zip([a.arg for a in args.kwonlyargs], args.kw_defaults, strict=True),
    ]
    for name, default in defaults:
        if name not in bound and default is not None:
            bound[name] = _value(default, scope)
    if set(bound) != {*parameters, *(a.arg for a in args.kwonlyargs)}:
        raise Undecided
    return bound


def _statements(body: Sequence[ast.stmt], names: dict[str, Any], scope: Scope) -> tuple[bool, Any]:
    """Follow statements; (True, value) once one of them returns."""
    for statement in body:
        match statement:
            case ast.Return(value=None):
                return True, None
            case ast.Return(value=ast.expr() as expression):
                return True, _value(expression, scope)
            case ast.If():
                branch = statement.body if _value(statement.test, scope) else statement.orelse
                done, value = _statements(branch, names, scope)
                if done:
                    return True, value
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if statement.value is not None:
                    names[name] = _value(statement.value, scope)
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Import() | ast.ImportFrom():
                pass
            case _:
                raise Undecided
    return False, None


_HOOKED = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Compare)
_HANDLERS: dict[type[ast.expr], Callable[[Any, Scope], Any]] = {
    ast.Name: _name,
    ast.Tuple: lambda node, scope: tuple(_items(node.elts, scope)),
    ast.List: lambda node, scope: _items(node.elts, scope),
    ast.Set: lambda node, scope: set(_items(node.elts, scope)),
    ast.Dict: _dict,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _choice,
    ast.JoinedStr: _joined,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Call: _call,
}
