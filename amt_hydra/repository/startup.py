"""How the repository's own code starts a run, and what of Lightning it makes."""

import ast
from collections.abc import Collection, Iterator, Sequence

from amt_hydra.repository.checkpoints import INIT, LAST, Labels
from amt_hydra.repository.facts import Place, Start
from amt_hydra.repository.flow import Flow
from amt_hydra.repository.loads import Loads
from amt_hydra.repository.missing import find_falls
from amt_hydra.repository.precedence import Precedence
from amt_hydra.repository.source import Source, Sources
from amt_hydra.repository.trace import called
from amt_hydra.repository.units import Unit

_CLASSES = ("WandbLogger", "CSVLogger", "TensorBoardLogger", "MLFlowLogger", "CometLogger", "NeptuneLogger")
_ROOTS = ("pytorch_lightning", "lightning")


def find_start(flow: Flow) -> Start:
    """Return the loads, the falls to scratch, and which checkpoint counts where there are two."""
    labels = Labels(flow)
    calls = list(Loads(flow, labels).calls())
    fits = list(_fits(flow))
    loads = tuple(dict.fromkeys(load for _, _, found in calls for load in found))
    taken = {load.takes for load in loads}
    for value, unit in fits:
        taken |= labels.of(value, unit)  # type: ignore[arg-type] # one of three
    precedence = "unknown"
    if {LAST, INIT} <= taken:
        precedence = Precedence(flow, labels).find(
            list(dict.fromkeys(u for u in (*(u for _, u, _ in calls), *(u for _, u in fits))))
        )
    return Start(loads, find_falls(flow, labels), precedence)  # type: ignore[arg-type] # one of three


def _fits(flow: Flow) -> Iterator[tuple[ast.expr, Unit]]:
    """Yield what .fit(…) is given as ckpt_path."""
    for module in flow.modules(".fit"):
        for unit in module.units:
            for call in unit.calls:
                if called(call) == "fit":
                    yield from ((k.value, unit) for k in call.keywords if k.arg == "ckpt_path")


def find_saves(sources: Sources, files: Sequence[Source]) -> tuple[Place, ...]:
    """Return the calls of .save_checkpoint(…)."""
    return tuple(
        Place(source.path, call.lineno)
        for source in files
        if b".save_checkpoint" in source.data and sources.parsed(source.path)
        for call in source.nodes(ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "save_checkpoint"
    )


def find_loggers(sources: Sources, files: Sequence[Source]) -> dict[str, Place]:
    """Return the logger classes of Lightning that are called, each with its first place."""
    found: dict[str, Place] = {}
    for source in files:
        if b"Logger" in source.data and sources.parsed(source.path):
            imported = _imported(sources, source)
            for call in sorted(source.nodes(ast.Call), key=lambda call: call.lineno):
                name = called(call)
                if isinstance(call.func, ast.Name):
                    name = imported.get(name, "")
                elif b"lightning" not in source.data:
                    continue
                if name in _CLASSES:
                    found.setdefault(name, Place(source.path, call.lineno))
    return found


def _imported(sources: Sources, source: Source) -> dict[str, str]:
    """Return the classes that are imported, from Lightning or through a file that does not define them itself."""
    found: dict[str, str] = {}
    for statement in source.nodes(ast.ImportFrom):
        module = statement.module or ""
        own = sources.resolve(source.path, module, statement.level)
        passed_on = sources.load(own) if own is not None else None
        for alias in statement.names:
            defined = passed_on is not None and f"class {alias.name}".encode() in passed_on.data
            if module.split(".")[0] in _ROOTS or (passed_on is not None and not defined):
                found[alias.asname or alias.name] = alias.name
    return found


def find_lightning(roots: Collection[str]) -> tuple[str, ...]:
    """Return the packages that Lightning is imported from."""
    return tuple(root for root in _ROOTS if root in roots)
