"""Where a model takes weights from a file: load_state_dict of what torch.load returned, and load_from_checkpoint."""

import ast
import re
from collections.abc import Iterator
from typing import Literal

from amt_hydra.repository.checkpoints import UNKNOWN, Labels
from amt_hydra.repository.facts import Load, Place
from amt_hydra.repository.flow import Flow, Origin
from amt_hydra.repository.syntax import children
from amt_hydra.repository.trace import called
from amt_hydra.repository.units import ModuleUnits, Unit

_LOADERS = ("load_state_dict", "load_from_checkpoint")
# Other things of a checkpoint that have a load_state_dict.
_NO_MODEL = re.compile(r"optim|sched|scaler|sampler|dataloader|callback")
_ORDER: tuple[Literal["last", "init", "unknown"], ...] = ("last", "init", "unknown")
_MOST = 200
"""Most expressions that one load is followed through."""
Context = dict[Unit, tuple[ast.Call, Unit]]
Read = tuple[ast.expr | None, Unit, ast.Call, Context]
"""The path that is read, where it is meant, the call that reads it, and the calls that lead there."""


class Loads:
    """Finds the loads of the training's files."""

    def __init__(self, flow: Flow, labels: Labels) -> None:
        self.flow = flow
        self.labels = labels

    def calls(self) -> Iterator[tuple[ast.Call, Unit, list[Load]]]:
        """Yield every call that loads a model's weights from a file."""
        seen: set[ModuleUnits] = set()
        for name in _LOADERS:
            for module in self.flow.modules(name):
                if module not in seen:
                    seen.add(module)
                    for unit in module.units:
                        for call in unit.calls:
                            loads = self.of(call, unit)
                            if loads:
                                yield call, unit, loads

    def of(self, call: ast.Call, unit: Unit) -> list[Load]:
        """Return what a call loads; nothing where it is none, or loads something else."""
        name = called(call)
        if name == "load_from_checkpoint":
            path = _given(call, 0, "checkpoint_path")
            return self._loads(call, unit, [(path, unit, call, {})]) if path is not None else []
        if name != "load_state_dict" or not isinstance(call.func, ast.Attribute) or not call.args:
            return []
        if _NO_MODEL.search(" ".join((ast.unparse(call.func), *_keys(call.args[0]))).lower()):
            return []
        read = self._read((call.args[0], unit), {}, set())
        return self._loads(call, unit, [(_given(c, 0, "f"), u, c, context) for c, u, context in read])

    def _loads(
        self, call: ast.Call, unit: Unit, read: list[tuple[ast.expr | None, Unit, ast.Call, Context]]
    ) -> list[Load]:
        found = []
        for path, where, reader, context in read:
            self.flow.context = context
            taken = self.labels.of(path, where) if path is not None else frozenset({UNKNOWN})
            self.flow.context = {}
            for takes in _ORDER:
                if takes in (taken or {UNKNOWN}):
                    place = Place(unit.module.source.path, call.lineno)
                    found.append(Load(place, takes, _strict(call), _constant(_keyword(reader, "weights_only"))))
        return found

    def _read(
        self, origin: Origin, context: Context, seen: set[tuple[int, Unit]]
    ) -> Iterator[tuple[ast.Call, Unit, Context]]:
        """Yield the calls of torch.load that an expression's value comes from, and by which calls one gets there."""
        node, unit = origin
        if (id(node), unit) in seen or len(seen) > _MOST:
            return
        seen.add((id(node), unit))
        if isinstance(node, ast.Call):
            if _is_torch_load(node, unit):
                yield node, unit, context
                return
            if called(node) in ("state_dict", "load_from_checkpoint"):
                return
            for value, target in self.flow.returned(node, unit):
                yield from self._read((value, target), {**context, target: (node, unit)}, seen)
        elif isinstance(node, ast.Name):
            for value, where in self.flow.named(node.id, unit) or ():
                yield from self._read((value, where), context, seen)
        for inner in children(node):
            for expression in (inner,) if isinstance(inner, ast.expr) else children(inner):
                if isinstance(expression, ast.expr):
                    yield from self._read((expression, unit), context, seen)


def _keys(node: ast.expr) -> Iterator[str]:
    """Yield the keys by which a part of a checkpoint is taken."""
    for inner in ast.walk(node):
        match inner:
            case ast.Subscript(slice=ast.Constant(value=str(key))) | ast.Call(args=[ast.Constant(value=str(key)), *_]):
                yield key


def _is_torch_load(call: ast.Call, unit: Unit) -> bool:
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in ("load", "load_file"):
        root = ast.unparse(func.value).split(".")[0]
        return unit.module.imports.get(root, (root, 0, None))[0].split(".")[0] in ("torch", "safetensors", "fabric")
    if isinstance(func, ast.Name) and func.id in unit.module.imports:
        module, _, attribute = unit.module.imports[func.id]
        wanted = module.split(".")[0] in ("torch", "safetensors", "pytorch_lightning", "lightning")
        return wanted and attribute in ("load", "pl_load", "load_file")
    return False


def _given(call: ast.Call, position: int, name: str) -> ast.expr | None:
    return call.args[position] if len(call.args) > position else _keyword(call, name)


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), None)


def _strict(call: ast.Call) -> bool | None:
    """Return what is said of strictness: True where nothing is, None where it cannot be decided."""
    node = _keyword(call, "strict")
    if node is None and called(call) == "load_state_dict" and len(call.args) > 1:
        node = call.args[1]
    if node is None:
        return None if any(k.arg is None for k in call.keywords) else True
    return _constant(node)


def _constant(node: ast.expr | None) -> bool | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None
