"""Whether an environment variable switches something on, by the repository's own expression."""

import ast
from collections.abc import Sequence
from typing import Any

from amt_hydra.repository.evaluate import Scope, Undecided, evaluate
from amt_hydra.repository.facts import Repository, Switch

# What people write into a variable to switch something on, or off.
_YES = frozenset({"1", "true", "yes", "on", "y", "t", "enable", "enabled"})
_NO = frozenset({"", "0", "false", "no", "off", "n", "f", "none", "null", "disable", "disabled"})


def yields(switch: Switch, value: str | None) -> object:
    """Return what the expression yields where the variable has a value (None: unset). Raises Undecided."""
    return evaluate(ast.parse(switch.expression, mode="eval").body, _scope(switch, value))


def is_on(switch: Switch, value: str | None) -> bool | None:
    """Return whether the variable is on with a value (None: unset); None where the expression cannot be decided.

    An expression that asks for the opposite (`!= "1"`, `is None`) is on where it yields something false.
    """
    if switch.text_only:
        return None
    try:
        return bool(yields(switch, value)) is not _is_negated(switch)
    except Undecided:
        return None


def says_yes(value: str) -> bool:
    """Whether a text switches something on where nobody's own expression says so: all but what people write for no."""
    return value.strip().lower() not in _NO


def reads_switch(repository: Repository, name: str) -> bool:
    """Return whether the repository reads the variable anywhere."""
    return any(switch.name == name for switch in repository.switches)


def switched_on(repository: Repository, name: str, value: str | None) -> tuple[bool, str]:
    """Return whether a variable with this value (None: unset) is on for the repository, and why.

    On is what the repository's own expression makes of it; where none can be decided, any value that is not empty.
    """
    found = [switch for switch in repository.switches if switch.name == name]
    shown = "unset" if value is None else repr(value)
    if not found:
        return False, f"{name} is read nowhere in {repository.root}: it has no effect"
    answers = [(is_on(switch, value), switch) for switch in found]
    for answer in (True, False):
        decided = [switch for a, switch in answers if a is answer]
        if decided and (answer or len(decided) == len(found)):
            word = "on" if answer else "off"
            return answer, f"{name} ({shown}) is {word}: {decided[0].expression} at {decided[0].place}"
    undecided = next(switch for a, switch in answers if a is None)
    word = "on: it is not empty" if value else "off: it is empty"
    return bool(
        value
    ), f"{name} ({shown}) counts as {word}, and {undecided.expression} at {undecided.place} is not plain"


def _is_negated(switch: Switch) -> bool:
    """Whether the expression is true where the variable is off."""
    literals = _literals(switch)
    yes = [text for text in literals if text.strip().lower() in _YES]
    if yes:
        return not any(_truth(switch, text) for text in yes)
    no = [None, *(text for text in literals if text.strip().lower() in _NO)]
    return _truth(switch, "1") is False and any(_truth(switch, text) for text in no)


def _truth(switch: Switch, value: str | None) -> bool | None:
    try:
        return bool(yields(switch, value))
    except Undecided:
        return None


def _literals(switch: Switch) -> list[str]:
    texts = (switch.expression, *switch.definitions)
    nodes = (node for text in texts for node in ast.walk(ast.parse(text)))
    return list(dict.fromkeys(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)))


def _scope(switch: Switch, value: str | None) -> Scope:
    """Return what the expression may refer to: the variable, and the constants and functions kept with it."""
    functions: dict[str, ast.FunctionDef] = {}
    constants: dict[str, ast.expr] = {}
    for text in switch.definitions:
        match ast.parse(text).body:
            case [ast.FunctionDef() as function]:
                functions[function.name] = function
            case [ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=expression)]:
                constants[ast.unparse(target)] = expression

    def look_up(node: ast.expr, scope: Scope) -> object:
        if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) not in scope.names:
            value_of = constants.get(ast.unparse(node))
            if value_of is not None:
                return evaluate(value_of, scope)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in functions:
            named = ast.Name(node.func.attr, ast.Load())  # module.helper(…)
            return evaluate(ast.Call(named, node.args, node.keywords), scope)
        return _environment(node, switch.name, value, scope)

    return Scope(functions=functions, hook=look_up)


def _environment(node: ast.expr, name: str, value: str | None, scope: Scope) -> Any:
    """Return what a read of the environment yields where `name` has a value and nothing else is known."""
    match node:
        case ast.Call(func=func, args=[key, *rest]) if _is_getter(func) and len(rest) < 2 and not node.keywords:
            return _get(key, rest, name, value, scope)
        case ast.Call(func=func, args=[key], keywords=[ast.keyword(arg="default", value=rest)]) if _is_getter(func):
            return _get(key, [rest], name, value, scope)
        case ast.Subscript(value=owner, slice=key) if _is_environ(owner):
            if value is None or evaluate(key, scope) != name:
                raise Undecided
            return value
        case ast.Compare(left=key, ops=[ast.In() | ast.NotIn()], comparators=[owner]) if _is_environ(owner):
            if evaluate(key, scope) != name:
                raise Undecided
            return (value is not None) is isinstance(node.ops[0], ast.In)
    raise Undecided


def _get(key: ast.expr, rest: Sequence[ast.expr], name: str, value: str | None, scope: Scope) -> Any:
    if evaluate(key, scope) != name:
        raise Undecided
    if value is not None:
        return value
    return evaluate(rest[0], scope) if rest else None


def _is_getter(func: ast.expr) -> bool:
    text = ast.unparse(func)
    return text.endswith("environ.get") or text.split(".")[-1] == "getenv"


def _is_environ(node: ast.expr) -> bool:
    return ast.unparse(node).split(".")[-1] == "environ"
