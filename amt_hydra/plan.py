"""The plan of a launch: argv, environment and folder of train.py, and how each setting gets there. Pure."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amt_hydra.documented import documented
from amt_hydra.errors import nearest
from amt_hydra.identity import Identity
from amt_hydra.mapping import Channel, is_dead, render
from amt_hydra.origins import Origin
from amt_hydra.repository.facts import Flag, Repository
from amt_hydra.resolve import Resolved
from amt_hydra.runstate import Place, records_of
from amt_hydra.schema import leaves
from amt_hydra.settings import Settings
from amt_hydra.unkept import Unkept, flag_name, is_default, same, unreached

_ON = ("1", "true", "True", "yes", "on")  # what people write into a variable, the usual first


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
class World:
    """What the plan takes from the file system."""

    place: Place
    aside: Path
    """The free name that the experiment's folder would be moved to."""
    python: Path
    """The interpreter that runs train.py."""


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


def lay_out(
    resolved: Resolved,
    repository: Repository,
    channels: Mapping[str, Channel],
    identity: Identity,
    world: World,
) -> Plan:
    """Lay out the launch."""
    settings = resolved.settings
    values = _values(settings, identity, world.aside)
    flags, unkept = _flags(values, resolved.origins, channels, repository)
    extra, unknown = _extra_flags(settings, repository, channels)
    left = {lost.key for lost in unkept if not lost.asked}
    return Plan(
        argv=(str(world.python), repository.train.name, *_line(flags + extra, repository)),
        env=_environment(settings, channels, repository),
        cwd=repository.cwd,
        place=world.place,
        moved_to=world.aside if identity.aside else None,
        records=records_of(settings),
        decisions=tuple(_decisions(values, resolved.origins, channels, left)),
        unkept=(*unkept, *unknown),
    )


def _values(settings: Settings, identity: Identity, aside: Path) -> dict[str, Any]:
    values = {key: _get(settings, key) for key in leaves(Settings)}
    ckpt = identity.checkpoint if identity.declared == "warmstart" else None
    if ckpt is not None and identity.aside and identity.inside is not None:
        ckpt = aside / identity.inside
    return {**values, "init.ckpt": ckpt}


def _line(words: Sequence[tuple[Flag, list[str]]], repository: Repository) -> list[str]:
    """Positionals first and in their own order: a flag that takes several values would swallow one that follows it."""
    order = {flag.dest: number for number, flag in enumerate(repository.flags)}
    ranked = sorted(words, key=lambda item: order[item[0].dest] if item[0].option is None else len(order))
    return [word for _, part in ranked for word in part]


def _get(settings: Settings, key: str) -> Any:
    value: Any = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


def _decisions(
    values: Mapping[str, Any], origins: Mapping[str, Origin], channels: Mapping[str, Channel], left: Container[str]
) -> list[Decision]:
    """What each setting will be.

    The defaults in `left`, and what the machine decided and no means carries, do not reach the repository: its own
    values stay.
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
        found.append(Decision(key, value, channel.current if channel else None, origin, option))
    return found


def _origin(key: str, origins: Mapping[str, Origin]) -> Origin:
    """Who decided a setting; a map was decided by whoever put something into it."""
    inside = (origin for name, origin in origins.items() if name.startswith(f"{key}."))
    return origins.get(key) or next(inside, Origin("default", "conf/config.yaml"))


def _flags(
    values: Mapping[str, Any],
    origins: Mapping[str, Origin],
    channels: Mapping[str, Channel],
    repository: Repository,
) -> tuple[list[tuple[Flag, list[str]]], list[Unkept]]:
    """The words of each flag, and the settings that no flag or variable takes."""
    unkept: list[Unkept] = []
    wanted: dict[str, tuple[Flag, dict[int | None, str]]] = {}
    for key, value in values.items():
        channel = channels.get(key)
        if channel and channel.carrier and channel.carrier.kind == "flag" and channel.flag:
            if value is not None:
                wanted.setdefault(channel.flag.dest, (channel.flag, {}))[1][channel.carrier.index] = key
        elif not (channel and channel.carrier) and (
            missing := unreached(key, value, origins.get(key), channels, repository)
        ):
            unkept.append(missing)
    words: list[tuple[Flag, list[str]]] = []
    for flag, keys in wanted.values():
        try:
            words.append((flag, render(flag, _flag_value(flag, keys, values, channels))))
        except ValueError as error:
            unkept += [
                Unkept("misfit", key, values[key], not is_default(origins.get(key)), f"{flag_name(flag)} {error}")
                for key in keys.values()
            ]
    return words, unkept


def _flag_value(
    flag: Flag, keys: Mapping[int | None, str], values: Mapping[str, Any], channels: Mapping[str, Channel]
) -> object:
    """The value of one flag; where several settings share it, those not set keep the repository's own value."""
    if None in keys:
        return values[keys[None]]
    sharing = {c.carrier.index: c for c in channels.values() if c.carrier and c.flag is flag}
    count = flag.nargs if isinstance(flag.nargs, int) else len(sharing)
    parts: list[object] = []
    for index in range(count):
        if index in keys:
            parts.append(values[keys[index]])
        elif index in sharing and sharing[index].current is not None:
            parts.append(sharing[index].current)
        else:
            raise ValueError(f"takes {count} values, and value {index + 1} is not known")
    return parts


def extra_dest(name: str) -> str:
    """The dest that a name below extra.flags means: it may be written as on train.py's own command line."""
    return name.lstrip("-").replace("-", "_")


def _extra_flags(
    settings: Settings, repository: Repository, channels: Mapping[str, Channel]
) -> tuple[list[tuple[Flag, list[str]]], list[Unkept]]:
    words: list[tuple[Flag, list[str]]] = []
    unknown: list[Unkept] = []
    owners = {c.flag.dest: key for key, c in channels.items() if c.flag}
    for name, value in settings.extra.flags.items():
        key, dest = f"extra.flags.{name}", extra_dest(name)
        flag = repository.flag(dest)
        if value is None:
            continue  # as everywhere: the repository decides
        if flag is None:
            close = nearest(dest, [f.dest for f in repository.flags])
            hint = f"did you mean extra.flags.{close}?" if close else "python -m amt_hydra inspect lists the flags"
            unknown.append(Unkept("flag", key, value, True, f"{repository.train} has no such flag", hint))
        elif dest in owners:
            unknown.append(Unkept("flag", key, value, True, "a setting of its own carries it", f"use {owners[dest]}=…"))
        else:
            if is_dead(flag):
                unknown.append(Unkept("dead", key, value, True, f"{flag_name(flag)} at {flag.place} is read nowhere"))
            try:
                words.append((flag, render(flag, value)))
            except ValueError as error:
                unknown.append(Unkept("misfit", key, value, True, f"{flag_name(flag)} {error}"))
    return words, unknown


def _environment(settings: Settings, channels: Mapping[str, Channel], repository: Repository) -> dict[str, str]:
    env = {"PYTHONUNBUFFERED": "1"}  # a log that lags behind by a buffer misleads whoever watches it
    for key, channel in channels.items():
        if channel.carrier and channel.carrier.kind == "env":
            value = _get(settings, key)
            if value is not None and value is not False:
                env[channel.carrier.name] = _on(channel.carrier.name, repository) if value is True else str(value)
    if settings.ddp.accelerator == "cpu":
        env["CUDA_VISIBLE_DEVICES"] = ""
    return env | dict(settings.extra.env)


def _on(name: str, repository: Repository) -> str:
    """What switches a variable on, by the repository's own expression."""
    from amt_hydra.repository import switched_on

    return next((text for text in _ON if switched_on(repository, name, text)[0]), _ON[0])


def differs(decision: Decision) -> bool:
    """Whether a setting with a documented default has another value."""
    entry = documented().get(decision.key)
    value = decision.value if decision.value is not None else decision.own
    return entry is not None and value is not None and not same(entry.value, value)
