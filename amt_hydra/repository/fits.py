"""Calls of Trainer.fit that continue a run: those that pass a checkpoint to it."""

import ast
import re
from collections.abc import Iterator, Sequence

from amt_hydra.repository.facts import Place
from amt_hydra.repository.source import Source, Sources

_FIT = re.compile(rb"\.fit\s*\(")
_TRAINS = (b".fit", b"LightningCLI")
# fit(model, train_dataloaders, val_dataloaders, datamodule, ckpt_path), the same in every Lightning since 1.5.
_POSITION = 4


def find_resumes(sources: Sources, files: Sequence[Source]) -> tuple[Place, ...]:
    """Return the places of .fit(…) calls whose ckpt_path can be a checkpoint."""
    return tuple(
        Place(source.path, call.lineno)
        for source in files
        if _FIT.search(source.data) and sources.parsed(source.path)
        for call in source.nodes(ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "fit"
        if any(_can_be_one(value, call, source) for value in _given(call))
    )


def may_train(files: Sequence[Source]) -> bool:
    """Return whether anything in these files, comments and strings included, may start a training."""
    return any(word in source.data for source in files for word in _TRAINS)


def _given(call: ast.Call) -> list[ast.expr]:
    return [k.value for k in call.keywords if k.arg == "ckpt_path"] or call.args[_POSITION : _POSITION + 1]


def _can_be_one(value: ast.expr, call: ast.Call, source: Source) -> bool:
    """Whether a ckpt_path is anything but None: upstream passes one in the branch where it has found none."""
    return not _is_none(value) and ast.unparse(value) not in set(_absent_around(call, source))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _absent_around(node: ast.AST, source: Source) -> Iterator[str]:
    """Yield the expressions that are None where a node stands, by the choices around it."""
    while node in source.parents:
        inner, node = node, source.parents[node]
        if isinstance(node, ast.If | ast.IfExp) and inner is not node.test:
            where_true, where_false = _absent(node.test)
            body = node.body if isinstance(node.body, list) else [node.body]
            yield from where_true if inner in body else where_false


def _absent(test: ast.expr) -> tuple[list[str], list[str]]:
    """Return the expressions that are None where a test is true, and where it is false."""
    match test:
        case ast.Compare(left=left, ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=None)]):
            return [ast.unparse(left)], []
        case ast.Compare(left=left, ops=[ast.IsNot() | ast.NotEq()], comparators=[ast.Constant(value=None)]):
            return [], [ast.unparse(left)]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            where_true, where_false = _absent(operand)
            return where_false, where_true
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return [], [ast.unparse(test)]
    return [], []
