"""The plan of a launch: argv, environment and folder of train.py, and how each setting gets there. Pure."""

from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amt_hydra.bridged import ENTRY, Bridge, Capability
from amt_hydra.carry import carry, line
from amt_hydra.documented import documented
from amt_hydra.identity import Identity
from amt_hydra.mapping import Channel
from amt_hydra.origins import Origin
from amt_hydra.repository.facts import Repository
from amt_hydra.resolve import Resolved
from amt_hydra.runstate import Place, records_of
from amt_hydra.schema import leaves
from amt_hydra.settings import Settings
from amt_hydra.unkept import Unkept, flag_name, same


@dataclass(frozen=True, slots=True)
class Decision:
    """One setting: its value, who decided it, and how it reaches the repository."""

    key: str
    value: object
    """None: the repository decides."""
    own: object
    """What the repository has where nobody says otherwise; None where that cannot be told."""
    origin: Origin
    reaches: str
    """The means, e.g. "--precision", or "" where it does not go to the repository."""


@dataclass(frozen=True, slots=True)
class Starter:
    """What starts the ranks of train.py."""

    words: tuple[str, ...] = ()
    """Before it on the command line."""
    ask: tuple[str, ...] = ()
    """The command that asks the ranks to end, where they would be killed by a SIGTERM to what starts them."""


@dataclass(frozen=True, slots=True)
class World:
    """What the plan takes from the file system."""

    place: Place
    aside: Path
    """The free name that the experiment's folder would be moved to."""
    python: Path
    """The interpreter that runs train.py."""
    starter: Starter = Starter()


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a launch does, before it does it."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    """Set in train.py's environment, on top of the caller's."""
    cwd: Path
    place: Place
    moved_to: Path | None
    """Where the experiment's folder is moved first; None where it stays."""
    records: Path
    """The folder in which this launch gets its record folder."""
    decisions: tuple[Decision, ...]
    unkept: tuple[Unkept, ...]
    bridge: Bridge | None
    """What is added to train.py in its own process; None: it is run as it is."""
    ask: tuple[str, ...]
    """The command that asks it to end; () where SIGTERM does."""


def lay_out(
    resolved: Resolved,
    repository: Repository,
    channels: Mapping[str, Channel],
    identity: Identity,
    world: World,
    added: tuple[Capability, ...] = (),
) -> Plan:
    """Lay out the launch; `added` is what the bridge brings besides values of config.py."""
    settings = resolved.settings
    values = {**{key: setting(settings, key) for key in leaves(Settings)}, "init.ckpt": weights(identity, world.aside)}
    carried = carry(values, settings, resolved.origins, channels, repository)
    bridge = Bridge(carried.changes, added) if carried.changes or added else None
    left = {lost.key for lost in carried.unkept if not lost.asked}
    script = str(ENTRY) if bridge else repository.train.name
    return Plan(
        argv=(*world.starter.words, str(world.python), script, *line(carried.words, repository)),
        env=carried.env,
        cwd=repository.cwd,
        place=world.place,
        moved_to=world.aside if identity.aside else None,
        records=records_of(settings),
        decisions=tuple(_decisions(values, resolved.origins, channels, left, {one.name for one in added})),
        unkept=carried.unkept,
        bridge=bridge,
        ask=world.starter.ask,
    )


def weights(identity: Identity, aside: Path) -> Path | None:
    """Where a warm-start's checkpoint lies once the experiment's folder was moved `aside`, if it is."""
    if identity.declared != "warmstart" or identity.checkpoint is None:
        return None
    return aside / identity.inside if identity.aside and identity.inside is not None else identity.checkpoint


def setting(settings: Settings, key: str) -> Any:
    """The value of a setting by its dotted key."""
    value: Any = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


def _decisions(
    values: Mapping[str, Any],
    origins: Mapping[str, Origin],
    channels: Mapping[str, Channel],
    left: Container[str],
    brought: Container[str],
) -> list[Decision]:
    """What each setting will be.

    The defaults in `left`, and what the machine decided and no means carries, do not reach the repository: its own
    values stay. Of the bridge's means, those reach it that are `brought`.
    """
    found = []
    for key, setting in values.items():
        channel = channels.get(key)
        means = channel.carrier if channel else None
        origin = _origin(key, origins)
        lost = key in left or (origin.who == "machine" and means is None)
        value = None if lost else setting
        if value is None and channel and channel.stands:
            origin = Origin("repository", str(channel.place))
        elif lost:
            origin = Origin("repository", "its own choice")
        option = flag_name(channel.flag) if channel and channel.flag else str(means) if means else ""
        if means and means.kind == "bridge" and means.name not in brought:
            option = ""
        found.append(Decision(key, value, channel.current if channel else None, origin, option))
    return found


def _origin(key: str, origins: Mapping[str, Origin]) -> Origin:
    """Who decided a setting; a map was decided by whoever put something into it."""
    inside = (origin for name, origin in origins.items() if name.startswith(f"{key}."))
    return origins.get(key) or next(inside, Origin("default", "conf/config.yaml"))


def differs(decision: Decision) -> bool:
    """Whether a setting with a documented default has another value."""
    entry = documented().get(decision.key)
    value = decision.value if decision.value is not None else decision.own
    return entry is not None and value is not None and not same(entry.value, value)
