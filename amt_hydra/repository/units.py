"""Modules cut into units: the module's own level and every function, each with what happens in it, in order."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from amt_hydra.repository.source import Source
from amt_hydra.repository.syntax import children

_NOTED = frozenset(
    {ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.With, ast.AugAssign, ast.Return, ast.Call, ast.Attribute, ast.Dict}
) | frozenset({ast.List, ast.Set, ast.Global, ast.Nonlocal})
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda})
"""The same as a set: to look a class up is several times as fast as isinstance, and it is done for every node."""
_SPECIAL = FUNCTIONS | {ast.ClassDef, ast.Import, ast.ImportFrom}


@dataclass(eq=False, slots=True)
class Unit:
    """A scope of names: a module's own level, or a function."""

    module: "ModuleUnits"
    node: ast.Module | Function
    owner: str | None
    """The class whose method this is."""
    parent: "Unit | None"
    bindings: list[tuple[ast.expr, ast.expr]] = field(default_factory=list)
    """(target, value) of every assignment."""
    calls: list[ast.Call] = field(default_factory=list)
    returns: list[ast.expr] = field(default_factory=list)
    uses: list[ast.expr] = field(default_factory=list)
    """Attributes, and displays that may hold a value."""
    names: set[str] = field(default_factory=set)
    """What is bound here, parameters included."""
    outer: set[str] = field(default_factory=set)
    """Names declared global or nonlocal."""

    @property
    def parameters(self) -> list[str]:
        """The positional parameters; none for a module."""
        if isinstance(self.node, ast.Module):
            return []
        return [a.arg for a in (*self.node.args.posonlyargs, *self.node.args.args)]

    def scopes(self, name: str) -> Iterator["Unit"]:
        """Yield the units in which a name used here may be bound, innermost first."""
        unit: Unit | None = self
        while unit is not None:
            if name in unit.names and name not in unit.outer:
                yield unit
            unit = unit.parent


class ModuleUnits:
    """One module: its units, functions, classes and imports."""

    def __init__(self, source: Source, *, script: bool) -> None:
        self.source = source
        self.functions: dict[tuple[str | None, str], Unit] = {}
        """By (class or None, name); for nested functions the last of a name."""
        self.classes: dict[str, ast.ClassDef] = {}
        self.imports: dict[str, tuple[str, int, str | None]] = {}
        """Local name to (module, level, attribute or None)."""
        self.stars: list[tuple[str, int]] = []
        """(module, level) of every `from … import *`."""
        self.units: list[Unit] = []
        tree = source.tree
        assert tree is not None
        self.top = self._unit(tree, None, None)
        for statement in tree.body:
            # What a module does when run as a script does not happen when train.py imports it.
            if script or not _is_main_guard(statement):
                self._visit(statement, self.top, None)

    def _unit(self, node: ast.Module | Function, owner: str | None, parent: Unit | None) -> Unit:
        unit = Unit(self, node, owner, parent)
        if not isinstance(node, ast.Module):
            arguments = node.args
            extra = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
            unit.names |= {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra)}
        self.units.append(unit)
        return unit

    def _visit(self, node: ast.AST, unit: Unit, owner: str | None) -> None:
        kind = node.__class__
        if kind not in _SPECIAL:  # most nodes; a chain of isinstance would take longer than all the rest
            if kind in _NOTED:
                self._note(node, unit)
            self._visit_all(children(node), unit, owner)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._visit_all(
                [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults)], unit, owner
            )
            unit.names.add(node.name)
            inner = self._unit(node, owner, unit)
            self.functions[owner, node.name] = inner
            self._visit_all(node.body, inner, None)
        elif isinstance(node, ast.Lambda):
            self._visit(node.body, self._unit(node, owner, unit), None)
        elif isinstance(node, ast.ClassDef):
            unit.names.add(node.name)
            self.classes[node.name] = node
            self._visit_all([*node.bases, *node.body], unit, node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node, unit)

    def _visit_all(self, nodes: Sequence[ast.AST], unit: Unit, owner: str | None) -> None:
        for node in nodes:
            kind = node.__class__
            if kind is ast.Name:  # every other node is a name or a constant
                if node.ctx.__class__ is not ast.Load:  # type: ignore[attr-defined] # a name has one
                    unit.names.add(node.id)  # type: ignore[attr-defined] # a name has one
            elif kind is not ast.Constant:
                self._visit(node, unit, owner)

    def _note(self, node: ast.AST, unit: Unit) -> None:
        match node:
            case ast.Attribute() | ast.Dict() | ast.List() | ast.Set():
                unit.uses.append(node)
            case ast.Call():
                unit.calls.append(node)
            case ast.Assign(targets=targets, value=value):
                unit.bindings.extend((target, value) for target in targets)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                unit.bindings.append((target, value))
            case ast.With(items=items):
                unit.bindings.extend((i.optional_vars, i.context_expr) for i in items if i.optional_vars is not None)
            case ast.AugAssign(target=ast.Attribute(value=value, attr=attr)):
                unit.uses.append(ast.copy_location(ast.Attribute(value, attr, ast.Load()), node.target))
            case ast.Return(value=ast.expr() as value):
                unit.returns.append(value)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                unit.outer |= set(names)

    def _import(self, node: ast.Import | ast.ImportFrom, unit: Unit) -> None:
        for alias in node.names:
            name = alias.asname or alias.name
            if name == "*" and isinstance(node, ast.ImportFrom):
                self.stars.append((node.module or "", node.level))
                continue
            unit.names.add(name)
            if isinstance(node, ast.Import):
                self.imports[name] = (alias.name, 0, None)
            else:
                self.imports[name] = (node.module or "", node.level, alias.name)


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) and "__main__" in ast.unparse(node.test)
