"""Where a checkpoint that is not there becomes a run from scratch, without an error."""

import ast
from collections.abc import Iterator, Sequence

from amt_hydra.repository.checkpoints import INIT, LAST, Labels, exists_tests, names_checkpoint
from amt_hydra.repository.facts import Place
from amt_hydra.repository.flow import Flow
from amt_hydra.repository.source import Source
from amt_hydra.repository.trace import called
from amt_hydra.repository.units import ModuleUnits

_ASKS = (b"exists(", b"isfile(", b"is_file(")
_CHECKPOINT = (b"ckpt", b"checkpoint", b"CKPT", b"CHECKPOINT", b"Checkpoint")
_SAYS = frozenset({"print", "warn", "warning", "info", "debug", "error", "rank_zero_info", "rank_zero_warn", "log"})
_USES = frozenset({"load_state_dict", "load_from_checkpoint", "load"})


def find_falls(flow: Flow, labels: Labels) -> tuple[Place, ...]:
    """Return the places, in the order of the files."""
    found = []
    for source in flow.files:
        if _asks(source.data) and flow.trace.sources.parsed(source.path):
            module = flow.trace.module(source.path)
            lines = [line for node in _choices(source) for line in _falls(node, module, flow, labels)]
            found += [Place(source.path, line) for line in sorted(set(lines))]
    return tuple(found)


def _asks(data: bytes) -> bool:
    return any(word in data for word in _ASKS) and any(word in data for word in _CHECKPOINT)


def _choices(source: Source) -> Iterator[ast.If | ast.IfExp]:
    yield from source.nodes(ast.If)
    yield from source.nodes(ast.IfExp)


def _falls(node: ast.If | ast.IfExp, module: ModuleUnits, flow: Flow, labels: Labels) -> Iterator[int]:
    for path, there in _tests(node.test, node, module, flow):
        unit = flow.unit_of(node, module)
        if not (names_checkpoint(path) or labels.of(path, unit) & {LAST, INIT}):
            continue
        if isinstance(node, ast.IfExp):
            if _is_none(node.orelse if there else node.body):
                yield node.lineno
            continue
        missing, found = (node.orelse, node.body) if there else (node.body, node.orelse)
        after = _after(node, module) if not there and not found else []
        line = _line(missing, uses=_uses([*found, *after]), at=node.lineno)
        if line is not None:
            yield line


def _tests(test: ast.expr, node: ast.AST, module: ModuleUnits, flow: Flow) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the tests of a choice, also those that a name stands for."""
    yield from exists_tests(test)
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    name = test.operand if isinstance(test, ast.UnaryOp) else test
    if isinstance(name, ast.Name):
        values = flow.named(name.id, flow.unit_of(node, module)) or []
        if len(values) == 1:
            yield from ((path, there is not negated) for path, there in exists_tests(values[0][0]))


def _line(body: Sequence[ast.stmt], *, uses: bool, at: int) -> int | None:
    """Return where a branch gives up the checkpoint and goes on; None where it raises, or does anything else."""
    if not body:
        return at if uses else None
    said = False
    for statement in body:
        match statement:
            case ast.Raise() | ast.Assert():
                return None
            case ast.Assign(value=value) if _is_none(value):
                return statement.lineno
            case ast.Return(value=value) if value is None or _is_none(value):
                return statement.lineno
            case ast.If(body=inner, orelse=orelse):
                lines = [_line(part, uses=uses, at=at) for part in (inner, orelse) if part]
                return next((line for line in lines if line is not None), None)
            case ast.Expr(value=ast.Call() as call) if called(call) in _SAYS:
                said = True
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                said = True
            case _:
                return None
    return at if said else None


def _uses(body: Sequence[ast.stmt]) -> bool:
    """Whether a branch takes the checkpoint: loads it, or sets the name that says which."""
    for statement in body:
        for node in ast.walk(statement):
            match node:
                case ast.Assign(targets=[target, *_]) if names_checkpoint(target):
                    return True
                case ast.Call() if called(node) in _USES:
                    return True
                case ast.Return(value=ast.expr() as value) if names_checkpoint(value):
                    return True
                case ast.keyword(arg="ckpt_path"):
                    return True
    return False


def _after(node: ast.AST, module: ModuleUnits) -> list[ast.stmt]:
    """Return the statements that follow one in its body."""
    around = module.source.parents.get(node)
    for name in ("body", "orelse", "finalbody"):
        body = getattr(around, name, [])
        if isinstance(body, list) and node in body:
            return body[body.index(node) + 1 :]
    return []


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
