"""Follows argparse's parsers and the parsed arguments through a repository's own functions, without running any.

A value is followed by its kind: PARSER, ARGS (what parse_args returned), ADD (a bound add_argument), or a tuple of
kinds. Names, self.attributes, parameters and returned values carry kinds; the rounds end when nothing new is learnt.
"""

import ast
import contextlib
from pathlib import Path
from typing import TypeAlias, TypeVar

from amt_hydra.repository.callees import Callees, class_of
from amt_hydra.repository.facts import Place
from amt_hydra.repository.source import Sources
from amt_hydra.repository.units import ModuleUnits, Unit

PARSER, ARGS, ADD = "parser", "args", "add"
Kind: TypeAlias = str | tuple["Kind", ...] | None

MAKES_PARSER = ("ArgumentParser",)
GROUPS = frozenset({"add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser"})
PARSES: dict[str, Kind] = {
    "parse_args": ARGS,
    "parse_intermixed_args": ARGS,
    "parse_known_args": (ARGS, None),
    "parse_known_intermixed_args": (ARGS, None),
}
COPIES = frozenset({"copy", "deepcopy"})
# Foreign functions that show or store the arguments and do not act on one of them.
SHOWS = frozenset(
    {"print", "pprint", "str", "repr", "format", "dump", "dumps", "safe_dump", "write", "info", "debug", "log"}
) | frozenset({"update", "log_hyperparams", "init", "isinstance", "type", "hasattr", "setattr", "delattr"})
ROUNDS = 12
HOPS = 20
"""Most imports that a name is followed through: modules can import it from each other in a circle."""
K = TypeVar("K")


class Trace(Callees):
    """Everything that is known about parsers and arguments once `run` is through."""

    def __init__(self, sources: Sources, train: Path) -> None:
        self._kinds: dict[tuple[Unit, str], Kind] = {}
        self._attributes: dict[tuple[Path, str | None, str], Kind] = {}
        self._returns: dict[Unit, Kind] = {}
        super().__init__(sources, train)

    def run(self) -> None:
        """Follow everything until a round teaches nothing new."""
        for _ in range(ROUNDS):
            self.changed = False
            for unit in list(self.reached):
                self._round(unit)
            if not self.changed:
                return

    def place(self, unit: Unit, node: ast.expr) -> Place:
        """Return where a node of a unit stands."""
        return Place(unit.module.source.path, node.lineno)

    # What an expression is.

    def kind(self, node: ast.expr | None, unit: Unit) -> Kind:
        """Return the kind of an expression's value."""
        match node:
            case ast.Constant():
                return None
            case ast.Name(id=name):
                return self._name(name, unit)
            case ast.Attribute(value=value, attr=attr):
                return self._attribute(value, attr, unit)
            case ast.Call():
                return self._call(node, unit)
            case ast.Tuple(elts=elements):
                kinds = tuple(self.kind(e, unit) for e in elements)
                return kinds if any(kinds) else None
            case ast.Subscript(value=value, slice=ast.Constant(value=int(index))):
                kind = self.kind(value, unit)
                return kind[index] if isinstance(kind, tuple) and -len(kind) <= index < len(kind) else None
            case ast.IfExp(body=body, orelse=orelse):
                return self.kind(body, unit) or self.kind(orelse, unit)
            case ast.BoolOp(values=values):
                return next((k for k in (self.kind(v, unit) for v in values) if k), None)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return self.kind(value, unit)
        return None

    def _name(self, name: str, unit: Unit, hops: int = 0) -> Kind:
        for scope in unit.scopes(name):
            if (scope, name) in self._kinds:
                return self._kinds[scope, name]
            if scope is not scope.module.top and name not in scope.module.imports:
                return None  # a local name that hides the outer one
        if name in unit.outer:
            return self._kinds.get((unit.module.top, name))
        module, attribute = self.imported(unit.module, name)
        if module is None or attribute is None or hops > HOPS:
            return None
        return self._name(attribute, module.top, hops + 1)

    def _attribute(self, value: ast.expr, attr: str, unit: Unit) -> Kind:
        if attr == "add_argument" and self.kind(value, unit) == PARSER:
            return ADD
        if isinstance(value, ast.Name):
            if value.id in ("self", "cls"):
                return self._attributes.get((unit.module.source.path, class_of(unit), attr))
            module, attribute = self.imported(unit.module, value.id)
            if module is not None and attribute is None:
                return self._kinds.get((module.top, attr))
        return None

    def _call(self, call: ast.Call, unit: Unit) -> Kind:
        name = called(call)
        if name in MAKES_PARSER or self._is_parser_class(call.func, unit):
            return PARSER
        if isinstance(call.func, ast.Attribute):
            if name in GROUPS and self.kind(call.func.value, unit) == PARSER:
                return PARSER
            if name in PARSES:
                return PARSES[name]
        if name in COPIES and call.args:
            return self.kind(call.args[0], unit)
        for target in self.targets(call, unit):
            if self._returns.get(target):
                return self._returns[target]
        if isinstance(call.func, ast.Attribute):  # Options().parse(): a method known by what it returns
            return next((k for u, k in self._returns.items() if u.owner and getattr(u.node, "name", "") == name), None)
        return None

    def _is_parser_class(self, func: ast.expr, unit: Unit) -> bool:
        if not isinstance(func, ast.Name):
            return False
        found = unit.module.classes.get(func.id)
        if found is None and func.id in unit.module.imports:
            module, attribute = self.imported(unit.module, func.id)
            found = module.classes.get(attribute or "") if module is not None else None
        return found is not None and any(ast.unparse(base).endswith("ArgumentParser") for base in found.bases)

    # The rounds.

    def _round(self, unit: Unit) -> None:
        for target, value in unit.bindings:
            self._bind(target, self.kind(value, unit), unit)
        for call in unit.calls:
            self._follow(call, unit)
        for value in unit.returns:
            self._learn(self._returns, unit, self.kind(value, unit))

    def _bind(self, target: ast.expr, kind: Kind, unit: Unit) -> None:
        match target:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if isinstance(kind, tuple):
                for part, part_kind in zip(parts, kind, strict=False):
                    self._bind(part, part_kind, unit)
            case ast.Name(id=name):
                scope = unit.module.top if name in unit.outer else unit
                self._learn(self._kinds, (scope, name), kind)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attr):
                self._own(unit.module, class_of(unit), attr, kind)

    def _own(self, module: ModuleUnits, owner: str | None, attr: str, kind: Kind) -> None:
        """Note that instances of a class carry a value; its methods and those of its subclasses may use it."""
        if not kind or owner is None or self._attributes.get((module.source.path, owner, attr)):
            return
        self._learn(self._attributes, (module.source.path, owner, attr), kind)
        self.reach([unit for unit in module.units if unit.owner == owner])
        for source in self.sources.walk():
            if owner.encode() in source.data and f"self.{attr}".encode() in source.data:
                with contextlib.suppress(KeyError):
                    other = self.module(source.path)
                    for name, node in other.classes.items():
                        if any(ast.unparse(base).split(".")[-1] == owner for base in node.bases):
                            self._own(other, name, attr, kind)

    def _learn(self, table: dict[K, Kind], key: K, kind: Kind) -> None:
        if kind and not table.get(key):
            table[key] = kind
            self.changed = True

    def _follow(self, call: ast.Call, unit: Unit) -> None:
        positional, named = self.handed(call, unit)
        carrying = any(positional) or any(named.values())
        if called(call) == "save_hyperparameters" and positional[:1] == [ARGS]:
            self._own(unit.module, class_of(unit), "hparams", ARGS)  # Lightning's: they are read as self.hparams.x
        own = isinstance(call.func, ast.Name) and call.func.id in unit.module.imports  # from setup import update
        targets = self.targets(call, unit, carrying=carrying and (own or called(call) not in SHOWS))
        self.reach(targets)
        for target in targets if carrying else ():
            parameters = target.parameters
            if target.owner is not None and not _is_static(target):
                parameters = parameters[1:]
            for name, kind in [*zip(parameters, positional, strict=False), *named.items()]:
                self._learn(self._kinds, (target, name), kind)

    def handed(self, call: ast.Call, unit: Unit) -> tuple[list[Kind], dict[str, Kind]]:
        """Return the kinds of a call's positional and named arguments."""
        positional = [self.kind(a, unit) for a in call.args]
        named = {k.arg: self.kind(k.value, unit) for k in call.keywords if k.arg is not None}
        return positional, named


def called(call: ast.Call) -> str:
    """Return the last part of the name that is called, "" for anything else."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_static(unit: Unit) -> bool:
    return any(ast.unparse(d) == "staticmethod" for d in getattr(unit.node, "decorator_list", ()))
