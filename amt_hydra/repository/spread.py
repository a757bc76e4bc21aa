"""Whether a dictionary that holds a key goes where its keys are read out of sight: as keywords, or to foreign code."""

import ast
import re

from amt_hydra.repository.effects import Sink
from amt_hydra.repository.flow import Flow
from amt_hydra.repository.trace import called
from amt_hydra.repository.units import Unit

_SPREAD = re.compile(rb"\*\*[ \t]*([A-Za-z_][\w.]*(?:\[[^\]\n]*\])*)(?![\w\[.(])")
_LOOKS = frozenset({"get", "keys", "pop", "setdefault", "update"})
_SAYS = frozenset({"print", "warn", "warning", "info", "debug", "error", "len", "isinstance"})


def goes_out(sink: Sink, flow: Flow) -> bool:
    """Follow the dictionaries around a sink's key from wherever the training takes them out of their own."""
    first = sink.keys[0]
    if len(sink.keys) == 1 or first is None:
        computed = re.compile(re.escape(ast.unparse(sink.root)).encode() + rb"(?:\[|\.get\()(?![\"'])")
        return len(sink.keys) > 1 or any(computed.search(source.data) for source in flow.files)
    follower = _Follower(sink, flow)
    return any(
        follower.goes(node, 1, flow.unit_of(node, module))
        for module in flow.modules(f'"{first}"', f"'{first}'")
        for node in module.source.nodes(ast.Subscript)
        if isinstance(node.slice, ast.Constant) and node.slice.value == first
    )


class Spreads:
    """What is written as **keywords in a training, found as text: **cfg, **self.cfg["encoder"]."""

    def __init__(self, flow: Flow) -> None:
        found = {text.decode("utf-8", "replace") for source in flow.files for text in _SPREAD.findall(source.data)}
        self.chains = [(text.partition("[")[0], re.findall(r"\[([^\]]*)\]", text)) for text in found]

    def hold(self, sink: Sink) -> bool:
        """Whether a dictionary around a sink's key is among them, by its name or by its last key."""
        root, key = ast.unparse(sink.root), sink.keys[-2] if len(sink.keys) > 1 else None
        return any(
            keys[-1].strip("\"'") == key if keys else base.rpartition(".")[2].endswith(root)
            for base, keys in self.chains
        )


class _Follower:
    def __init__(self, sink: Sink, flow: Flow) -> None:
        self.sink = sink
        self.flow = flow
        self._seen: set[tuple[str, Unit, int]] = set()

    def goes(self, node: ast.expr, depth: int, unit: Unit) -> bool:
        """Whether the dictionary under the first `depth` keys goes out at a node that yields it."""
        parents = unit.module.source.parents
        parent = parents.get(node)
        match parent:
            case ast.Subscript(value=value, slice=index) if value is node:
                wanted = self.sink.keys[depth]
                if isinstance(index, ast.Constant) and wanted is not None and index.value != wanted:
                    return False
                if depth + 1 < len(self.sink.keys):
                    return self.goes(parent, depth + 1, unit)
                return not isinstance(index, ast.Constant) and isinstance(parent.ctx, ast.Load)
            case ast.keyword(arg=name):
                call = parents.get(parent)
                return name is None or (isinstance(call, ast.Call) and self._handed(call, name, unit))
            case ast.Call() if node in parent.args:
                return self._handed(parent, parent.args.index(node), unit)
            case ast.Attribute(attr=attr):
                return attr not in _LOOKS
            case ast.Assign(value=value, targets=targets) if value is node:
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                return len(names) < len(targets) or any(self._named(name, depth, unit) for name in names)
            case ast.Compare() | ast.Expr() | ast.If() | ast.FormattedValue() | ast.Assert() | ast.Delete():
                return False
        return True

    def _named(self, name: str, depth: int, unit: Unit) -> bool:
        if (name, unit, depth) in self._seen:
            return False
        self._seen.add((name, unit, depth))
        uses = (n for n in unit.module.source.nodes(ast.Name) if n.id == name and isinstance(n.ctx, ast.Load))
        return any(
            self.goes(use, depth, where)
            for use in uses
            for where in (self.flow.unit_of(use, unit.module),)
            if next(where.scopes(name), None) is unit
        )

    def _handed(self, call: ast.Call, parameter: str | int, unit: Unit) -> bool:
        """Whether a call may read any key of what it is handed: foreign code may, our own is searched for the key."""
        if called(call) in _SAYS:
            return False
        if called(call) == "update" and isinstance(call.func, ast.Attribute):
            return not self._is_own_object(call.func.value, unit)
        targets = self.flow.targets(call, unit)
        for target in targets:
            names = target.parameters[target.owner is not None :]
            if isinstance(parameter, int) and parameter >= len(names):
                return True
            name = names[parameter] if isinstance(parameter, int) else parameter
            if re.search(rb"\*\*[ \t]*" + name.encode() + rb"\b", target.module.source.data):
                return True
        return not targets

    def _is_own_object(self, node: ast.expr, unit: Unit) -> bool:
        """Whether an object is one of the repository's own classes."""
        origins = self.flow.named(node.id, unit) if isinstance(node, ast.Name) else None
        return bool(origins) and all(
            isinstance(value, ast.Call) and self._is_own_class(value.func, where) for value, where in origins or ()
        )

    def _is_own_class(self, func: ast.expr, unit: Unit) -> bool:
        if not isinstance(func, ast.Name):
            return False
        if func.id in unit.module.imports:
            dotted, level, _ = unit.module.imports[func.id]
            path = self.flow.trace.sources.resolve(unit.module.source.path, dotted, level)
            source = self.flow.trace.sources.load(path) if path is not None else None
            return source is not None and f"class {func.id}".encode() in source.data
        return func.id in unit.module.classes
