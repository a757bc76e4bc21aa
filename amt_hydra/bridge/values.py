"""Values of config.py: set where its dictionaries are made, so that everything made of them has the new value."""

from __future__ import annotations

import ast
import os
from typing import Any

from .hooks import Finder
from .session import Session, named

SETTERS: list[_Setter] = []
"""One per changed file; its number stands in the calls that the changed source makes."""
_CALL = "__import__('sys').modules[%r].SETTERS[%d](globals(), %r)"
_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
_NOT_RUN_HERE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def hook(session: Session, finder: Finder) -> None:
    """Have every file of the plan's values loaded with them."""
    by_file: dict[str, list[Any]] = {}
    for entry in session.config:
        by_file.setdefault(os.path.realpath(entry["file"]), []).append(entry)
    for file, entries in by_file.items():
        SETTERS.append(_Setter(session, entries))
        finder.sources[file] = _compiler(len(SETTERS) - 1)


def _compiler(number: int) -> Any:
    def compiled(data: bytes, path: Any) -> Any:
        tree = ast.parse(data, path)
        head = 0  # nothing may come between the docstring and `from __future__`
        while head < len(tree.body) and _is_head(tree.body[head]):
            head += 1
        if tree.body:
            ends = _call(number, True, tree.body[-1])
            tree.body = [*tree.body[:head], *_with_calls(number, tree.body[head:]), ends]
        return compile(tree, path, "exec", dont_inherit=True)

    return compiled


def _with_calls(number: int, statements: Any) -> Any:
    """Return statements with a call after each, also of those within an `if`, a `try`, a `with` or a loop."""
    found: list[ast.stmt] = []
    for node in statements:
        if not isinstance(node, _NOT_RUN_HERE):
            _put_into(number, node)
        found += [node, _call(number, False, node)]
    return found


def _put_into(number: int, node: Any) -> None:
    for name in _BODIES:
        inner = getattr(node, name, None)
        if not isinstance(inner, list) or not inner:
            continue
        if isinstance(inner[0], ast.stmt):
            setattr(node, name, _with_calls(number, inner))
        else:  # except clauses, and the cases of a match
            for part in inner:
                _put_into(number, part)


def _is_head(node: Any) -> Any:
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _call(number: int, last: Any, after: Any) -> Any:
    """Return a statement that sets the values; a traceback shows the line of the one before."""
    node = ast.parse(_CALL % (__name__, number, last)).body[0]
    for inner in ast.walk(node):
        ast.copy_location(inner, after)
    return node


class _Setter:
    """Called after each statement that the module executes: whatever that has bound anew is set before it is used."""

    def __init__(self, session: Session, entries: Any) -> None:
        self.session = session
        self.entries = entries

    def __call__(self, names: Any, last: Any) -> None:
        for entry in self.entries:
            holder, missing = _holder(names, entry["key"])
            if missing is None:
                self._set(holder, entry)
            elif last:
                self._refuse(entry, missing, holder)

    def _set(self, holder: Any, entry: Any) -> None:
        name, key = entry["key"][-1], ".".join(entry["key"])
        own, value = holder[name], entry["value"]
        value = _like(own, value)
        if type(own) is type(value) and own == value:
            self.session.done(named(entry), what=key)
            return
        holder[name] = value
        self.session.done(named(entry), "%r (was %r)" % (value, own), what=key)

    def _refuse(self, entry: Any, missing: Any, holder: Any) -> None:
        there = ", ".join(sorted(str(n) for n in holder if not str(n).startswith("_")))
        self.session.refuse(
            "%s has no %s: no %r among %s" % (entry["file"], ".".join(entry["key"]), missing, there or "nothing")
        )


def _like(own: Any, value: Any) -> Any:
    """Return a value with tuples where the file's own has them: JSON has lists only."""
    if not isinstance(own, (tuple, list)) or not isinstance(value, list):
        return value
    if own:
        value = [_like(own[min(number, len(own) - 1)], part) for number, part in enumerate(value)]
    return tuple(value) if isinstance(own, tuple) else value


def _holder(names: Any, key: Any) -> Any:
    """Return the dictionary that holds a key's last part; where a part is missing, the last one there, and the part."""
    holder = names
    for part in key:
        if not isinstance(holder, dict):
            return {}, part
        if part not in holder:
            return holder, part
        inner, holder = holder, holder[part]
    return inner, None
