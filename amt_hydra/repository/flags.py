"""The flags of train.py: every argparse argument that its parser is given, as argparse itself would understand it."""

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from amt_hydra.repository.evaluate import Scope, Undecided, evaluate
from amt_hydra.repository.facts import Computed, Flag, Place
from amt_hydra.repository.namespace import Namespace
from amt_hydra.repository.nodes import plain
from amt_hydra.repository.reads import Reads, find_reads
from amt_hydra.repository.source import Source
from amt_hydra.repository.trace import ADD, PARSER, SHOWS, Trace, called
from amt_hydra.repository.units import Unit

Namespaces = Callable[[Source], Namespace]

# argparse's named constants for nargs.
_NARGS = {"OPTIONAL": "?", "ZERO_OR_MORE": "*", "ONE_OR_MORE": "+", "REMAINDER": "...", "PARSER": "A..."}
_BOOLEAN = {"store_true": False, "store_false": True, "BooleanOptionalAction": None}
# Keywords whose value is a callable or a class, known by its name.
_AS_WRITTEN = frozenset({"type", "action"})


class FlagReader:
    """Collects flags in the order in which the parser would be given them."""

    def __init__(self, trace: Trace, namespaces: Namespaces) -> None:
        self.trace = trace
        self.namespaces = namespaces
        self.flags: list[Flag] = []
        self.defaults: dict[str, object] = {}
        """What set_defaults gives."""
        self.commands: set[str] = set()
        """The dest of add_subparsers: an attribute that no add_argument makes."""
        self.whole = True
        """False once there may be flags that nobody can name."""
        self.undefined: dict[str, Place] = {}
        """What is read of the parsed arguments and defined nowhere, with the first place."""
        self.opaque = False
        """The parsed arguments go where not every read is seen."""
        self._done: set[Unit] = set()

    def read(self) -> tuple[Flag, ...]:
        """Return the flags, with where each is read; note what cannot be decided as a problem."""
        self.trace.run()
        for unit in (self.trace.train.top, *self.trace.reached):
            self._unit(unit)
        reads = find_reads(self.trace)
        self.undefined = self._undefined(reads)
        self.opaque = reads.opaque
        return tuple(replace(flag, reads=_reads_of(flag, reads)) for flag in self.flags)

    def _unit(self, unit: Unit) -> None:
        if unit in self._done:
            return
        self._done.add(unit)
        for call in unit.calls:
            if self.trace.kind(call.func, unit) == ADD:
                self._add(call, unit)
            elif called(call) == "set_defaults" and self._on_parser(call, unit):
                self._set_defaults(call, unit)
            elif called(call) == "ArgumentParser":
                self._parser(call, unit)
            elif called(call) == "add_subparsers":
                self.commands |= {
                    k.value.value
                    for k in call.keywords
                    if k.arg == "dest" and isinstance(k.value, ast.Constant) and isinstance(k.value.value, str)
                }
            else:
                self._elsewhere(call, unit)

    def _elsewhere(self, call: ast.Call, unit: Unit) -> None:
        """Go where a call leads; a parser that is handed to a foreign function may come back with more flags."""
        targets = self.trace.targets(call, unit, carrying=PARSER in self._handed(call, unit))
        for target in targets:
            if target in self.trace.reached:
                self._unit(target)
        if not targets and PARSER in self._handed(call, unit) and called(call) not in (*SHOWS, "autocomplete"):
            self._unknown(call, unit, f"{ast.unparse(call.func)}(…) may add flags that cannot be listed")

    def _handed(self, call: ast.Call, unit: Unit) -> list[object]:
        positional, named = self.trace.handed(call, unit)
        return [*positional, *named.values()]

    def _on_parser(self, call: ast.Call, unit: Unit) -> bool:
        return isinstance(call.func, ast.Attribute) and self.trace.kind(call.func.value, unit) == PARSER

    def _unknown(self, node: ast.expr, unit: Unit, words: str) -> None:
        self.whole = False
        self.trace.sources.problem(unit.module.source, node, words)

    def _parser(self, call: ast.Call, unit: Unit) -> None:
        for keyword in call.keywords:
            if keyword.arg in ("prefix_chars", "fromfile_prefix_chars", "argument_default"):
                text = f"ArgumentParser({keyword.arg}=…) changes how flags are written, which is not followed"
                self.trace.sources.problem(unit.module.source, call, text)

    def _set_defaults(self, call: ast.Call, unit: Unit) -> None:
        try:
            given = self._keywords(call, unit)
        except Undecided:
            self._unknown(call, unit, f"{unit.module.source.text(call)}: what it sets cannot be decided")
            return
        self.defaults |= given
        self.flags = [replace(f, default=given[f.dest]) if f.dest in given else f for f in self.flags]

    # One add_argument.

    def _add(self, call: ast.Call, unit: Unit) -> None:
        try:
            names = [evaluate(a, self._scope(unit)) for a in _starred(call.args, self._scope(unit))]
        except Undecided:
            names = [None]
        if not all(isinstance(name, str) and name for name in names):
            self._unknown(call, unit, "a flag whose name is computed cannot be listed")
            return
        try:
            given = self._keywords(call, unit)
        except Undecided:
            self.trace.sources.problem(unit.module.source, call, f"{' '.join(names)}: its **keywords cannot be decided")
            given = {k.arg: self._value(k.value, unit) for k in call.keywords if k.arg is not None}
        self.flags.append(self._flag(names, given, Place(unit.module.source.path, call.lineno)))

    def _keywords(self, call: ast.Call, unit: Unit) -> dict[str, Any]:
        """Return the keywords of a call, each a value or Computed. Raises Undecided on a ** that is not literal."""
        found: dict[str, Any] = {}
        for keyword in call.keywords:
            if keyword.arg in _AS_WRITTEN and not isinstance(keyword.value, ast.Constant):
                found[keyword.arg] = Computed(unit.module.source.text(keyword.value))
            elif keyword.arg is not None:
                found[keyword.arg] = self._value(keyword.value, unit)
            else:
                found.update(evaluate(keyword.value, self._scope(unit)))
        return found

    def _flag(self, names: list[str], given: dict[str, Any], place: Place) -> Flag:
        positional = not names or (len(names) == 1 and not names[0].startswith("-"))
        dest = given.get("dest")
        if not isinstance(dest, str):
            dest = names[0] if positional and names else _dest(names) if names else ""
        action = _word(given.get("action", "store"))
        nargs = given.get("nargs")
        if isinstance(nargs, Computed):
            self.trace.sources.problems.append(f"{place}: nargs of {dest} cannot be decided ({nargs.text})")
        return Flag(
            dest=dest,
            options=() if positional else tuple(names),
            type=_type(given, action),
            action=action,
            nargs=nargs if isinstance(nargs, int | str) else None,
            default=given["default"] if "default" in given else self.defaults.get(dest, _BOOLEAN.get(action)),
            choices=_choices(given.get("choices")),
            required=nargs not in ("?", "*", "...") if positional else given.get("required") is True,
            place=place,
            reads=(),
        )

    def _value(self, node: ast.expr, unit: Unit) -> object:
        if isinstance(node, ast.Attribute) and node.attr in _NARGS:
            return _NARGS[node.attr]
        try:
            return evaluate(node, self._scope(unit))
        except Undecided:
            namespace = self.namespaces(unit.module.source)
            return namespace.value(node) if unit is unit.module.top else Computed(unit.module.source.text(node))

    def _scope(self, unit: Unit) -> Scope:
        """Return what names mean within a unit: a local that is bound once, else a constant of the module."""

        def look_up(node: ast.expr, _: Scope) -> object:
            name = next((n.id for n in ast.walk(node) if isinstance(n, ast.Name)), "")
            local = next((scope for scope in unit.scopes(name) if scope is not unit.module.top), None)
            if local is None:
                return plain_of(self.namespaces(unit.module.source), node)
            values = [v for target, v in local.bindings if isinstance(target, ast.Name) and target.id == name]
            stored = [n for n in ast.walk(local.node) if isinstance(n, ast.Name) and n.id == name and _stores(n)]
            if not isinstance(node, ast.Name) or len(values) != 1 or len(stored) != 1 or name in local.parameters:
                raise Undecided
            return evaluate(values[0], self._scope(local))

        return Scope(hook=look_up)

    def _undefined(self, reads: Reads) -> dict[str, Place]:
        """Return reads of args.x that no flag defines: train.py dies there. None where flags may be missing here."""
        if not self.whole:
            return {}
        known = {flag.dest for flag in self.flags} | set(self.defaults) | self.commands | reads.defined
        return {name: places[0] for name, places in reads.places.items() if name not in known}


def plain_of(namespace: Namespace, node: ast.expr) -> object:
    """Return the value that a module's names give an expression. Raises Undecided."""
    found = namespace.lookup(node)
    if found is None:
        raise Undecided
    return plain(found)


def _stores(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _starred(nodes: list[ast.expr], scope: Scope) -> list[ast.expr]:
    """Spread *names where they are literal."""
    found: list[ast.expr] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            found.extend(ast.Constant(value) for value in evaluate(node.value, scope))
        else:
            found.append(node)
    return found


def _dest(options: list[str]) -> str:
    """Name the attribute as argparse does."""
    long = [o for o in options if len(o) > 1 and o[1] == "-"]
    return (long or options)[0].lstrip("-").replace("-", "_")


def _word(value: object) -> str:
    """Return a callable or an action by its last name, as in argparse.BooleanOptionalAction."""
    text = value.text if isinstance(value, Computed) else value.__name__ if isinstance(value, type) else str(value)
    return text.rpartition(".")[2] if text.replace(".", "").replace("_", "").isalnum() else text


def _type(given: dict[str, Any], action: str) -> str:
    if action in _BOOLEAN:
        return "bool"
    if action == "count":
        return "int"
    return _word(given["type"]) if given.get("type") is not None else "str"


def _choices(value: object) -> tuple[object, ...] | Computed | None:
    if value is None or isinstance(value, Computed):
        return value
    return tuple(value) if isinstance(value, list | tuple | set | frozenset | dict | str) else Computed(repr(value))


def _reads_of(flag: Flag, reads: Reads) -> tuple[Place, ...] | None:
    places = tuple(reads.places.get(flag.dest, ()))
    return places if places or not reads.opaque else None
