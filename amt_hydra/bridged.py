"""What the bridge brings to a run: what the repository lacks of what the run needs. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amt_hydra.checkpoint import Xray
from amt_hydra.env_switches import DEBUGGING, FORCE_SCRATCH
from amt_hydra.identity import Identity
from amt_hydra.mapping import Channel
from amt_hydra.refusals import Facts
from amt_hydra.repository.facts import Place, Repository
from amt_hydra.settings import Settings
from amt_hydra.words import fit

ENTRY = Path(__file__).with_name("bridge") / "run.py"
"""Started in place of train.py, by the repository's interpreter."""
PLAN_VARIABLE = "AMT_BRIDGE_PLAN"
"""Names the file that `document` goes into."""
PLAN_FILE = "bridge.json"
CSV = "csv"
_UNREAD = "the repository never reads it"
_LAST = "a real file, current after each validation and at the end, where ModelCheckpoint leaves it behind"
_WARMSTART = "weights by name and shape; the repository has no flag for an init checkpoint"


@dataclass(frozen=True, slots=True)
class Change:
    """One value of config.py that the bridge sets before anything reads it."""

    setting: str
    key: str
    """Dotted from the module-level name."""
    place: Place
    value: object
    own: object


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing that the repository does not do by itself."""

    name: str
    why: str
    """What is added and what is missing, for people."""
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Bridge:
    """All that is added to train.py in its own process."""

    changes: tuple[Change, ...]
    added: tuple[Capability, ...]

    @property
    def capabilities(self) -> Mapping[str, Mapping[str, Any]]:
        """By name, their arguments."""
        return {capability.name: capability.arguments for capability in self.added}


def change(setting: str, key: str, value: object, repository: Repository) -> list[Change]:
    """The change of one value of config.py; none where it stands there already. Raises ValueError where it is of
    another kind than the value there."""
    own = repository.config[key]
    wanted = fit(str(value) if hasattr(value, "__fspath__") else value, own.value)
    there = list(own.value) if isinstance(own.value, tuple) else own.value
    if type(wanted) is type(there) and wanted == there:
        return []
    return [Change(setting, key, own.place, wanted, own.value)]


def can_bridge(settings: Settings, repository: Repository) -> bool:
    """Whether the bridge may be used, and knows what it would patch: Lightning's Trainer."""
    return settings.repo.bridge and bool(repository.lightning)


def brought(
    facts: Facts,
    repository: Repository,
    channels: Mapping[str, Channel],
    identity: Identity,
    weights: Path | None,
    on: Collection[str],
) -> tuple[Capability, ...]:
    """The capabilities that this run takes.

    `weights` is where a warm-start's checkpoint lies when train.py starts; `on` are the AMT_* switches that are on in
    its environment, and CSV where W&B would find no credentials.
    """
    settings = facts.settings
    if not can_bridge(settings, repository):
        return ()
    found = [] if identity.refusal else _start(facts, repository, channels, weights)
    unread = [name for name in on if not any(switch.name == name for switch in repository.switches)]
    if FORCE_SCRATCH in unread:
        found.append(Capability("force_scratch", f"{FORCE_SCRATCH}: {_UNREAD}", {}))
    if _keeps_last(settings, channels) and not repository.saves:
        found.append(Capability("last", _LAST, {}))
    if (settings.logger.kind == "csv" or CSV in on) and _carries(channels, "logger.kind", "csv"):
        why = f"CSVLogger in place of WandbLogger ({repository.loggers['WandbLogger']})"
        found.append(Capability("csv", why, {}))
    if settings.seed is not None and _carries(channels, "seed", "seed"):
        found.append(
            Capability("seed", "seed_everything; the repository has no flag for a seed", {"seed": settings.seed})
        )
    for name, variable in DEBUGGING.items():
        if _carries(channels, f"debug.{name}", name) and (getattr(settings.debug, name) or variable in unread):
            found.append(Capability(name, f"{variable}: {_UNREAD}", {}))
    return tuple(found)


def _start(
    facts: Facts, repository: Repository, channels: Mapping[str, Channel], weights: Path | None
) -> list[Capability]:
    """What continues a run, or takes its weights, as the identity says."""
    settings, state = facts.settings, facts.state
    if settings.init.mode == "resume" and state.last is not None:
        if repository.resumes:
            return _unpickle(state.last, state.last.path)
        why = f"fit() gets ckpt_path; {_instead(repository)}"
        return [Capability("resume", why, _checkpoint(state.last, state.last.path))]
    if settings.init.mode == "warmstart" and weights is not None and state.init is not None:
        if not _carries(channels, "init.ckpt", "warmstart"):
            return [] if loads_openly(repository, "init") else _unpickle(state.init, weights)
        arguments = {**_checkpoint(state.init, weights), "min_coverage": settings.init.min_coverage}
        return [Capability("warmstart", _WARMSTART, arguments)]
    return []


def loads_openly(repository: Repository, takes: str) -> bool:
    """Whether the repository's own load of that checkpoint asks for the classes that it holds."""
    loads = repository.start.loads
    meant = [load for load in loads if load.takes == takes] or [load for load in loads if load.takes == "unknown"]
    return bool(meant) and all(load.weights_only is False for load in meant)


def _unpickle(ray: Xray, path: Path) -> list[Capability]:
    """The repository, or Lightning for it, loads the file, and torch would refuse it."""
    if ray.weights_only:
        return []
    why = f"{ray.path.name} holds {', '.join(ray.refused_globals[:2])}: loaded without torch's weights_only default"
    return [Capability("unpickle", why, {"ckpt": str(path)})]


def _instead(repository: Repository) -> str:
    """What the repository's own code does with a last.ckpt."""
    load = next((x for x in repository.start.loads if x.takes == "last"), None)
    if load is not None:
        return f"the repository loads weights only ({load.place})"
    return "the repository never passes one"


def _checkpoint(ray: Xray, path: Path) -> dict[str, Any]:
    return {"ckpt": str(path), "pickled": not ray.weights_only}


def _carries(channels: Mapping[str, Channel], key: str, name: str) -> bool:
    carrier = channels[key].carrier if key in channels else None
    return carrier is not None and carrier.kind == "bridge" and carrier.name == name


def _keeps_last(settings: Settings, channels: Mapping[str, Channel]) -> bool:
    own = channels["checkpoint.save_last"].current if "checkpoint.save_last" in channels else None
    wanted = settings.checkpoint.save_last if settings.checkpoint.save_last is not None else own
    return wanted is not None and wanted is not False


def document(bridge: Bridge, repository: Repository, checkpoints: Path) -> dict[str, Any]:
    """The plan that the bridge reads, as JSON takes it."""
    return {
        "schema": 1,
        "root": str(repository.root),
        "train": str(repository.train),
        "checkpoints": str(checkpoints),
        "config": [{"file": str(c.place.file), "key": c.key.split("."), "value": c.value} for c in bridge.changes],
        "capabilities": bridge.capabilities,
    }
