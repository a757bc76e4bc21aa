"""Where the parsed arguments are read, and where they go out of sight."""

import ast
from dataclasses import dataclass, field

from amt_hydra.repository.facts import Place
from amt_hydra.repository.trace import ARGS, COPIES, SHOWS, Kind, Trace, called
from amt_hydra.repository.units import Unit

# Attributes of argparse.Namespace itself.
_OF_NAMESPACE = frozenset({"_get_kwargs", "_get_args", "__dict__", "__class__"})


@dataclass(slots=True)
class Reads:
    """What happens to the parsed arguments. Places are in the order of their discovery."""

    places: dict[str, list[Place]] = field(default_factory=dict)
    """By name: where args.<name> is read."""
    defined: set[str] = field(default_factory=set)
    """Names that the code gives the arguments itself (args.x = …) or asks for first (hasattr)."""
    opaque: bool = False
    """The arguments go where reads cannot be followed: vars(args), a foreign function, a container."""

    def read(self, name: str, place: Place) -> None:
        """Note one read, once per place."""
        places = self.places.setdefault(name, [])
        if place not in places:
            places.append(place)


def find_reads(trace: Trace) -> Reads:
    """Collect the reads in every function that was reached."""
    found = Reads()
    for unit in list(trace.reached):  # resolving a call may open one more module
        shown = {id(a) for call in unit.calls if called(call) in SHOWS for a in _arguments(call)}
        for use in unit.uses:
            _use(found, trace, unit, use, shown)
        for call in unit.calls:
            _called(found, trace, unit, call, shown)
        for target, value in unit.bindings:
            if isinstance(target, ast.Subscript) or (isinstance(target, ast.Attribute) and not _on_self(target)):
                found.opaque |= _holds(trace.kind(value, unit))
    return found


def _use(found: Reads, trace: Trace, unit: Unit, use: ast.expr, shown: set[int]) -> None:
    if isinstance(use, ast.Attribute):
        if trace.kind(use.value, unit) != ARGS:
            return
        if use.attr in _OF_NAMESPACE:
            found.opaque |= id(use) not in shown
        elif isinstance(use.ctx, ast.Load):
            found.read(use.attr, trace.place(unit, use))
        else:
            found.defined.add(use.attr)
    else:
        values = use.values if isinstance(use, ast.Dict) else getattr(use, "elts", [])
        found.opaque |= any(_holds(trace.kind(value, unit)) for value in values)


def _called(found: Reads, trace: Trace, unit: Unit, call: ast.Call, shown: set[int]) -> None:
    name = called(call)
    kinds = [trace.kind(a, unit) for a in _arguments(call)]
    if name == "save_hyperparameters" and not kinds:
        # Lightning's: it keeps the parameters of the function around it, to be read as self.hparams.<parameter>.<x>.
        kinds = [trace.kind(ast.Name(parameter, ast.Load()), unit) for parameter in unit.parameters]
        found.opaque |= any(_holds(kind) for kind in kinds)
        return
    if not any(_holds(kind) for kind in kinds):
        return
    if name in ("getattr", "hasattr") and len(call.args) > 1:
        match call.args[1]:
            case ast.Constant(value=str(attribute)):
                if name == "getattr":
                    found.read(attribute, trace.place(unit, call))
                found.defined.add(attribute)
            case _:
                found.opaque = True
    elif name == "save_hyperparameters" or name in SHOWS or name in COPIES or id(call) in shown:
        return
    else:
        found.opaque |= not trace.targets(call, unit, carrying=True)


def _arguments(call: ast.Call) -> list[ast.expr]:
    positional = [a.value if isinstance(a, ast.Starred) else a for a in call.args]
    return [*positional, *(keyword.value for keyword in call.keywords)]


def _holds(kind: Kind) -> bool:
    return kind == ARGS or (isinstance(kind, tuple) and any(_holds(part) for part in kind))


def _on_self(target: ast.Attribute) -> bool:
    return isinstance(target.value, ast.Name) and target.value.id in ("self", "cls")
