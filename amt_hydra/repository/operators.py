"""The operators, functions and methods that an expression may use, and the bound on what it may build."""

import ast
import operator
from collections.abc import Callable, Sized
from typing import Any

SIZE = 10_000
"""Longest string or sequence that an expression may build."""


def bounded(op: ast.operator, left: Any, right: Any) -> bool:
    """Whether the result stays small: the source of a stranger must not be able to fill our memory."""
    sized = [x for x in (left, right) if isinstance(x, Sized)]
    if isinstance(op, ast.Add) and sized:
        return sum(len(x) for x in sized) <= SIZE
    if isinstance(op, ast.Mult) and sized:
        times = right if sized[0] is left else left
        return isinstance(times, int) and len(sized[0]) * abs(times) <= SIZE
    if isinstance(op, ast.Pow | ast.LShift):
        return bool(abs(left) <= 1e9 and abs(right) <= 64)
    # "%" on a string formats it, and a width in there can be any size.
    return not (isinstance(op, ast.Mod) and isinstance(left, str | bytes))


def _isinstance(value: object, kinds: object) -> bool:
    return isinstance(value, kinds)  # type: ignore[arg-type] # checked at run time: a TypeError is Undecided


CONVERT: dict[int, Callable[[object], str]] = {ord("r"): repr, ord("a"): ascii}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
# dict(…), set(…) and the like copy what is there; range(…) and str.format could build anything and are left out.
BUILTINS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (bool, int, float, str, len, dict, list, tuple, set, frozenset, abs, min, max, round)
} | {"isinstance": _isinstance}
METHODS: dict[type, frozenset[str]] = {
    str: frozenset({"lower", "upper", "casefold", "capitalize", "title", "strip", "lstrip", "rstrip", "split"})
    | frozenset(
        {"removeprefix", "removesuffix", "startswith", "endswith", "isdigit", "isdecimal", "isnumeric", "isalpha"}
    ),
    dict: frozenset({"get", "copy"}),
}
