"""Which checkpoint counts where both a last.ckpt and one that a flag names are there.

The statements that choose are followed as if both were given, and nothing else were known: a test of neither is taken
both ways, and where the ways end with different checkpoints, nothing can be said.
"""

import ast
from collections.abc import Sequence

from amt_hydra.repository.checkpoints import INIT, LAST, Labels, exists_tests
from amt_hydra.repository.flow import Flow
from amt_hydra.repository.trace import called
from amt_hydra.repository.units import Unit

Ends = frozenset[str]
"""What may count after some statements; "" for nothing so far."""
_NOTHING: Ends = frozenset({""})
_LEFT = "left"
"""Marks an end after which no further statement of the body runs: a return."""


class Precedence:
    """Follows the units that load a checkpoint or choose one."""

    def __init__(self, flow: Flow, labels: Labels) -> None:
        self.flow = flow
        self.labels = labels
        self._given: dict[str, Ends] = {}

    def find(self, units: Sequence[Unit]) -> str:
        """Return "last", "init" or "unknown"."""
        answers = set()
        for unit in units:
            self._given = {}
            body = unit.node.body
            if isinstance(body, list):
                answers |= {end.removeprefix(_LEFT) for end in self._body(body, _NOTHING, unit)} - {""}
        return answers.pop() if len(answers) == 1 and answers <= {LAST, INIT} else "unknown"

    def _body(self, body: Sequence[ast.stmt], ends: Ends, unit: Unit) -> Ends:
        for statement in body:
            left = frozenset(end for end in ends if end.startswith(_LEFT))
            going = ends - left
            if not going:
                break
            ends = left | self._statement(statement, going, unit)
        return ends

    def _statement(self, statement: ast.stmt, ends: Ends, unit: Unit) -> Ends:
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                return self._if(self.truth(test, unit), body, orelse, ends, unit)
            case ast.With(body=body):
                return self._body(body, ends, unit)
            case ast.Try(body=body, orelse=orelse, finalbody=final):
                return self._body([*body, *orelse, *final], ends, unit)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return ends
            case ast.For() | ast.While():
                return ends | self._body(statement.body, ends, unit)
            case ast.Return(value=value):
                picked = self.picks(value, unit) if value is not None else _NOTHING
                if value is not None and isinstance(value, ast.Call):
                    picked = self._calls(statement, ends, unit)
                return frozenset(_LEFT + (end or before) for end in picked for before in ends)
            case ast.Assign(targets=[target], value=value) if self._is_choice(value, unit):
                self._given[ast.unparse(target)] = self.picks(value, unit)
                return ends
        return self._calls(statement, ends, unit)

    def _if(
        self, truth: bool | None, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], ends: Ends, unit: Unit
    ) -> Ends:
        if truth is not None:
            return self._body(body if truth else orelse, ends, unit)
        before = dict(self._given)
        first = self._body(body, ends, unit)
        then, self._given = self._given, before
        second = self._body(orelse, ends, unit)
        for name in {*then, *self._given}:
            self._given[name] = then.get(name, _NOTHING) | self._given.get(name, _NOTHING)
        return first | second

    def _calls(self, statement: ast.stmt, ends: Ends, unit: Unit) -> Ends:
        """Follow the loads of a statement, in the order in which they are written."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                taken = self._taken(node, unit)
                named = taken - _NOTHING
                ends = (ends | named if taken & _NOTHING else named) or ends
        return ends

    def _taken(self, call: ast.Call, unit: Unit) -> Ends:
        if called(call) in ("load", "load_from_checkpoint") and (call.args or call.keywords):
            return self.picks(call.args[0] if call.args else call.keywords[0].value, unit)
        if called(call) == "fit":
            return next((self.picks(k.value, unit) for k in call.keywords if k.arg == "ckpt_path"), _NOTHING)
        return _NOTHING

    # Expressions, where both are given.

    def _is_choice(self, node: ast.expr, unit: Unit) -> bool:
        constant = isinstance(node, ast.Constant) and node.value is None
        return constant or bool(self.labels.of(node, unit) & {LAST, INIT})

    def picks(self, node: ast.expr, unit: Unit) -> Ends:
        """Return what an expression names: labels, or "" for anything else."""
        known = self._given.get(ast.unparse(node))
        if known is not None:
            return known
        match node:
            case ast.IfExp(test=test, body=body, orelse=orelse):
                truth = self.truth(test, unit)
                if truth is not None:
                    return self.picks(body if truth else orelse, unit)
                return self.picks(body, unit) | self.picks(orelse, unit)
            case ast.BoolOp(op=ast.Or(), values=[first, *_]):
                return self.picks(first, unit)
            case ast.BoolOp(values=[*_, end]):
                return self.picks(end, unit)
            case ast.Tuple(elts=parts):
                named = [self.picks(part, unit) - _NOTHING for part in parts]
                return next((n for n in named if n), _NOTHING)
        label = self.labels.of(node, unit) & {LAST, INIT}
        return label if len(label) == 1 else self._chosen(node, unit) if label else _NOTHING

    def _chosen(self, node: ast.expr, unit: Unit) -> Ends:
        """Return what the function that an expression calls chooses, or the places that give a name its value."""
        if isinstance(node, ast.Call):
            targets = self.flow.targets(node, unit)
            if len(targets) == 1 and isinstance(targets[0].node, ast.FunctionDef):
                before, self._given = self._given, {}
                ends = self._body(targets[0].node.body, _NOTHING, targets[0])
                self._given = before
                return frozenset(end.removeprefix(_LEFT) for end in ends)
        if isinstance(node, ast.Name):
            values = self.flow.named(node.id, unit) or []
            if len(values) == 1:
                return self.picks(*values[0])
        return frozenset({LAST, INIT})

    def truth(self, test: ast.expr, unit: Unit) -> bool | None:
        """Return what a test yields where both are there; None where it asks for something else."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.truth(operand, unit)
                return None if inner is None else not inner
            case ast.BoolOp(op=op, values=values):
                answers = [self.truth(value, unit) for value in values]
                stop = isinstance(op, ast.Or)
                if stop in answers:
                    return stop
                return None if None in answers else not stop
            case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=None | "")]):
                given = self._there(left, unit)
                return None if given is None else given is isinstance(op, ast.IsNot | ast.NotEq)
        asked = next(exists_tests(test), None)
        if asked is not None:
            return True if self._there(asked[0], unit) else None
        if isinstance(test, ast.Name):
            origins = self.flow.named(test.id, unit) or []
            if len(origins) == 1 and not self.labels.of(test, unit) & {LAST, INIT}:
                return self.truth(*origins[0])
        return self._there(test, unit)

    def _there(self, node: ast.expr, unit: Unit) -> bool | None:
        """Whether an expression is a checkpoint's path that is given."""
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call | ast.BinOp):
            return None
        known = self._given.get(ast.unparse(node))
        if known is not None:
            return None if len(known) > 1 else known != _NOTHING
        return True if self.labels.of(node, unit) & {LAST, INIT} and _is_path(node) else None


def _is_path(node: ast.expr) -> bool:
    """Whether a flag that is tested is a checkpoint's: args.resume or args.stage are none."""
    if isinstance(node, ast.Attribute):
        return any(word in node.attr.lower() for word in ("ckpt", "checkpoint", "init", "pretrain", "weights"))
    return True
