"""Names that are None in so many words where train.py surely uses them as if they were not.

A wrong alarm is worse than a miss: one other value, one test of the name, one way around the use, and it is left out.
"""

import ast
import re
from collections.abc import Iterator

from amt_hydra.repository.facts import Broken, Place
from amt_hydra.repository.flow import Flow, Origin, under
from amt_hydra.repository.surely import Surely
from amt_hydra.repository.units import ModuleUnits, Unit

_PLAIN_BASES = frozenset({"object", "ABC", "abc.ABC", "Module", "nn.Module", "torch.nn.Module"})
_TESTS = (ast.If, ast.IfExp, ast.While, ast.Assert)


def find_broken(flow: Flow) -> tuple[Broken, ...]:
    """Return every use that dies, one for each way in which it is written."""
    surely = Surely(flow)
    nothing = _Nothing(flow, surely)
    found: dict[str, Broken] = {}
    for unit in surely.units:
        for use, owner in _uses(surely.inside(unit)):
            none = nothing.place(owner, unit)
            if none is not None:
                text = ast.unparse(use.func if isinstance(use, ast.Call) else use)
                if text not in found and surely.runs(use, unit) and not _is_tested(ast.unparse(owner), unit):
                    found[text] = Broken(text, none, Place(unit.module.source.path, use.lineno))
    return tuple(found.values())


def _uses(nodes: list[ast.AST]) -> Iterator[tuple[ast.Attribute | ast.Subscript | ast.Call, ast.expr]]:
    """Yield (use, what is used) for every attribute, item and call of a name, of self.<x> and of <name>["key"]."""
    for node in nodes:
        match node:
            case ast.Attribute(value=owner, ctx=ast.Load()) | ast.Subscript(value=owner, ctx=ast.Load()):
                pass
            case ast.Call(func=ast.Name() | ast.Attribute() | ast.Subscript() as owner):
                pass
            case _:
                continue
        match owner:
            case ast.Name() | ast.Attribute(value=ast.Name(id="self")):
                yield node, owner
            case ast.Subscript(value=ast.Name(), slice=ast.Constant(value=str())):
                yield node, owner


def _is_tested(text: str, unit: Unit) -> bool:
    """Whether the file asks anywhere whether there is something under a name."""
    word = re.compile(rf"(?<![\w.]){re.escape(text)}(?!\w)")
    tests: list[ast.expr] = [*unit.module.source.nodes(ast.BoolOp)]
    tests += [node.test for kind in _TESTS for node in unit.module.source.nodes(kind)]  # type: ignore[attr-defined] # each has a test
    return any(word.search(ast.unparse(test)) for test in tests)


class _Nothing:
    """Finds the None that is the only value of something."""

    def __init__(self, flow: Flow, surely: Surely) -> None:
        self.flow = flow
        self.surely = surely
        self._known: dict[tuple[str, Unit], Place | None] = {}

    def place(self, owner: ast.expr, unit: Unit) -> Place | None:
        """Return where the None stands; None where there is, or may be, another value."""
        match owner:
            case ast.Name(id=name):
                scope = next(unit.scopes(name), None)
                return self._name(name, scope) if scope is not None and self._may(name, scope) else None
            case ast.Attribute(attr=attr):
                return self._attribute(attr, unit)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))):
                return self._item(name, key, unit)
        return None

    def _may(self, name: str, scope: Unit) -> bool:
        """Whether a name is bound by assignments, and by nothing else."""
        module = scope.module
        return not (
            name in scope.parameters
            or name in module.imports
            or name in module.classes
            or (None, name) in module.functions
            or any(name in unit.outer for unit in module.units)
        )

    def _name(self, name: str, scope: Unit) -> Place | None:
        key = (name, scope)
        if key not in self._known:
            self._known[key] = None  # for a circle
            self._known[key] = self._bound(name, scope)
        return self._known[key]

    def _bound(self, name: str, scope: Unit) -> Place | None:
        origins = self.flow.named(name, scope)
        if origins is None or not self._may(name, scope):
            return None
        places = [self._value(node, unit) for node, unit in origins]
        if not all(places):
            return None
        names = (n for n in self.surely.inside(scope) if isinstance(n, ast.Name) and n.id == name)
        stored = sum(not isinstance(n.ctx, ast.Load) for n in names)
        return places[0] if stored == len(origins) and not _is_set_elsewhere(name, scope, self.flow) else None

    def _value(self, node: ast.expr, unit: Unit) -> Place | None:
        """Return the None that an expression is."""
        match node:
            case ast.Constant(value=None):
                return Place(unit.module.source.path, node.lineno)
            case ast.Name(id=name) if name in unit.names:
                return self._name(name, unit)
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int(index))):
                origins = self.flow.item(call, index, unit) if self.surely.targets(call, unit) else None
            case ast.Call():
                origins = self.flow.returned(node, unit) if self.surely.targets(node, unit) else None
            case _:
                return None
        places = [self._value(*origin) for origin in origins or ()]
        return places[0] if places and all(places) else None

    def _attribute(self, attr: str, unit: Unit) -> Place | None:
        """Return the None that is all that self.<attr> is ever given, in a class that inherits nothing of it."""
        owner = unit.module.classes.get(unit.owner or "")
        if owner is None or owner.decorator_list or not {ast.unparse(b) for b in owner.bases} <= _PLAIN_BASES:
            return None
        origins = self.flow.member(attr, unit) or []
        places = [self._value(node, where) for node, where in origins]
        named = re.compile(rb"\b" + attr.encode() + rb"\b[ \t]*(?::[^=\n]*)?=(?!=)|def " + attr.encode() + rb"\b")
        written = sum(len(named.findall(source.data)) for source in self.flow.files)
        if not places or not all(places) or written != len(places):
            return None
        return None if any(b"setattr(self" in source.data for source in self.flow.files) else places[0]

    def _item(self, name: str, key: str, unit: Unit) -> Place | None:
        """Return the None under a key of a dictionary that a name holds, where no other value is put under this key."""
        value = self._under(key, ast.Name(name, ast.Load()), unit)
        if value is None or self._value(*value) is None or f"{name}.update(".encode() in unit.module.source.data:
            return None
        places = [self._value(*other) for other in self.flow.keyed(key)]
        return places[0] if places and all(places) else None

    def _under(self, key: str, node: ast.expr, unit: Unit) -> Origin | None:
        """Follow names and returned values to a dictionary's display, and return what stands there under a key."""
        for _ in range(5):
            origins: list[Origin] | None = None
            match node:
                case ast.Name(id=name):
                    scope = next(unit.scopes(name), None)
                    origins = self.flow.named(name, scope) if scope is not None and self._may(name, scope) else None
                case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int(index))):
                    origins = self.flow.item(call, index, unit) if self.surely.targets(call, unit) else None
                case ast.Dict() | ast.Call(func=ast.Name(id="dict"), args=[]):
                    found = list(under(node, key))
                    return (found[-1], unit) if found else None
                case ast.Call():
                    origins = self.flow.returned(node, unit) if self.surely.targets(node, unit) else None
            if origins is None or len(origins) != 1:
                return None
            node, unit = origins[0]
        return None


def _is_set_elsewhere(name: str, scope: Unit, flow: Flow) -> bool:
    """Whether another module may set a module's name: train.logger = …"""
    if scope is not scope.module.top:
        return False
    module: ModuleUnits = scope.module
    written = re.compile(
        rb"\b" + module.source.path.stem.encode() + rb"\." + name.encode() + rb"[ \t]*=(?!=)|globals\(\)"
    )
    return any(written.search(source.data) for source in flow.files)
