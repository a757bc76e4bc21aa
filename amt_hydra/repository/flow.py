"""Where the value of an expression comes from: assignments, returned values, arguments of the calls that are seen."""

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress

from amt_hydra.repository.source import Source
from amt_hydra.repository.trace import Trace, called
from amt_hydra.repository.units import ModuleUnits, Unit

_OF_BUILTINS = frozenset(name for kind in (str, bytes, dict, list, set) for name in dir(kind))
Origin = tuple[ast.expr, Unit]
"""An expression, and the unit in which its names are meant."""


class Flow:
    """Looks values up backwards through the files that run in a training."""

    def __init__(self, trace: Trace, files: Sequence[Source]) -> None:
        self.trace = trace
        self.files = files
        self.context: dict[Unit, tuple[ast.Call, Unit]] = {}
        """By which call, where, a function is looked at: its parameters then are this call's alone."""
        self._holding: dict[tuple[str, ...], list[ModuleUnits]] = {}
        self._units: dict[ModuleUnits, dict[ast.AST, Unit]] = {}

    def modules(self, *texts: str) -> list[ModuleUnits]:
        """Return the modules whose source holds one of some texts."""
        if texts not in self._holding:
            wanted = [text.encode() for text in texts]
            paths = [source.path for source in self.files if any(text in source.data for text in wanted)]
            self._holding[texts] = []
            for path in paths:
                with suppress(KeyError):
                    self._holding[texts].append(self.trace.module(path))
        return self._holding[texts]

    def unit_of(self, node: ast.AST, module: ModuleUnits) -> Unit:
        """Return the function that a node stands in, or the module's own level."""
        if module not in self._units:
            self._units[module] = {unit.node: unit for unit in module.units}
        units, parents = self._units[module], module.source.parents
        while node in parents:
            node = parents[node]
            if node in units:
                return units[node]
        return module.top

    def named(self, name: str, unit: Unit) -> list[Origin] | None:
        """Return the values that a name may have; None where it may have one that is not seen."""
        for scope in unit.scopes(name):
            found = [origin for target, value in scope.bindings for origin in _assigned(target, value, name, scope)]
            if name in scope.parameters or name in _keyword_only(scope):
                passed = self.passed(name, scope)
                return None if passed is None else [*passed, *found]
            if found or scope is not scope.module.top:
                return found or None
        module, attribute = self.trace.imported(unit.module, name, carrying=True)
        return self.named(attribute, module.top) if module is not None and attribute is not None else None

    def passed(self, name: str, unit: Unit) -> list[Origin] | None:
        """Return what the calls that are seen hand to a parameter; None where there is none, or one is not plain."""
        default = _default(unit, name)
        if unit in self.context:
            only, where = self.context[unit]
            value = _argument(only, name, unit)
            return [(value, where)] if value is not None else [(default, unit)] if default is not None else None
        own = getattr(unit.node, "name", "")
        shown = own if own != "__init__" else unit.owner or ""
        found: list[Origin] = []
        for module in self.modules(f"{shown}(") if shown else ():
            for caller in module.units:
                for call in caller.calls:
                    if called(call) == shown and unit in self.targets(call, caller):
                        value = _argument(call, name, unit) or default
                        if value is None:
                            return None
                        found.append((value, unit if value is default else caller))
        return found or None

    def member(self, attr: str, unit: Unit) -> list[Origin] | None:
        """Return what the class around a unit gives self.<attr>."""
        owners = {scope.owner for scope in _around(unit) if scope.owner is not None}
        found = [
            (value, other)
            for other in unit.module.units
            if any(scope.owner in owners for scope in _around(other))
            for target, value in other.bindings
            if isinstance(target, ast.Attribute) and target.attr == attr and ast.unparse(target.value) == "self"
        ]
        return found or None

    def keyed(self, key: str) -> list[Origin]:
        """Return what is put under a key anywhere: in a display, by dict(key=…), by [key] = …."""
        found: list[Origin] = []
        for module in self.modules(key):
            for unit in module.units:
                found += [(value, unit) for use in unit.uses if isinstance(use, ast.Dict) for value in under(use, key)]
                for call in unit.calls:
                    if called(call) in ("dict", "update", "Namespace", "SimpleNamespace"):
                        found += [(value, unit) for value in under(call, key)]
                for target, value in unit.bindings:
                    if isinstance(target, ast.Subscript) and _is_text(target.slice, key):
                        found.append((value, unit))
        return found

    def targets(self, call: ast.Call, unit: Unit) -> Sequence[Unit]:
        """Return the repository's own functions that a call may run; a foreign module's are not looked for."""
        if isinstance(call.func, ast.Attribute):
            root = root_of(call.func)
            foreign = root in unit.module.imports and self.trace.imported(unit.module, root, carrying=True)[0] is None
            if foreign or call.func.attr in _OF_BUILTINS:
                return []
        return self.trace.targets(call, unit, carrying=True)

    def returned(self, call: ast.Call, unit: Unit) -> list[Origin]:
        """Return what the repository's own function that is called returns."""
        return [(value, target) for target in self.targets(call, unit) for value in target.returns]

    def item(self, call: ast.Call, index: int, unit: Unit) -> list[Origin] | None:
        """Return one member of the tuple that a call returns."""
        found: list[Origin] = []
        for value, target in self.returned(call, unit):
            if not isinstance(value, ast.Tuple) or index >= len(value.elts):
                return None
            found.append((value.elts[index], target))
        return found or None


def _assigned(target: ast.expr, value: ast.expr, name: str, unit: Unit) -> Iterator[Origin]:
    """Yield what an assignment gives a name; the member of a tuple that a call returns is spelt call[index]."""
    if isinstance(target, ast.Name):
        if target.id == name:
            yield value, unit
    elif isinstance(target, ast.Tuple | ast.List):
        for index, part in enumerate(target.elts):
            if isinstance(part, ast.Name) and part.id == name:
                if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                    yield value.elts[index], unit
                else:
                    yield ast.copy_location(ast.Subscript(value, ast.Constant(index), ast.Load()), value), unit


def _keyword_only(unit: Unit) -> list[str]:
    return [] if isinstance(unit.node, ast.Module) else [a.arg for a in unit.node.args.kwonlyargs]


def _default(unit: Unit, name: str) -> ast.expr | None:
    if isinstance(unit.node, ast.Module):
        return None
    arguments = unit.node.args
    positional = zip(reversed(unit.parameters), reversed(arguments.defaults), strict=False)
    named = zip(_keyword_only(unit), arguments.kw_defaults, strict=True)
    return next((value for parameter, value in (*positional, *named) if parameter == name), None)


def _argument(call: ast.Call, name: str, unit: Unit) -> ast.expr | None:
    parameters = unit.parameters
    if unit.owner is not None and parameters[:1] in (["self"], ["cls"]):
        parameters = parameters[1:]
    if name in parameters and parameters.index(name) < len(call.args):
        return call.args[parameters.index(name)]
    return next((k.value for k in call.keywords if k.arg == name), None)


def _around(unit: Unit) -> Iterator[Unit]:
    here: Unit | None = unit
    while here is not None:
        yield here
        here = here.parent


def root_of(node: ast.expr) -> str:
    """Return the name that an expression begins with: "a" of a.b["c"](); "" where it begins with something else."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def under(node: ast.Dict | ast.Call, key: str) -> Iterator[ast.expr]:
    """Yield what a display of a dictionary, or dict(…), holds under a key."""
    if isinstance(node, ast.Call):
        yield from (k.value for k in node.keywords if k.arg == key)
    else:
        pairs = zip(node.keys, node.values, strict=True)
        yield from (value for k, value in pairs if k is not None and _is_text(k, key))


def _is_text(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text
