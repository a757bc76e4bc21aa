"""The plan of a launch: argv, environment and folder of train.py, and how each setting gets there. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from amt_hydra.documented import documented
from amt_hydra.errors import nearest
from amt_hydra.identity import Identity
from amt_hydra.mapping import Channel, render
from amt_hydra.origins import Origin
from amt_hydra.repository.facts import Flag, Repository
from amt_hydra.resolve import Resolved
from amt_hydra.runstate import Place
from amt_hydra.schema import leaves
from amt_hydra.settings import Settings

# Settings that we act on ourselves, so that nothing of them has to reach the repository.
_OURS = ("repo.", "init.", "ddp.accelerator", "launch.", "paths.", "checks.", "extra.")
# Values that say "nothing special": no means is needed for them.
_NEUTRAL: Mapping[str, object] = {"ddp.nodes": 1, "ddp.devices": 1}


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
class Unkept:
    """A setting that does not reach the repository as it stands."""

    kind: Literal["unreached", "misfit", "feature", "flag"]
    key: str
    value: object
    asked: bool
    """The user asked for it; otherwise it is a documented default."""
    message: str
    fix: str


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
    place = world.place
    values = _values(settings, identity, place, world.aside)
    words, unkept = _flags(values, resolved.origins, channels)
    extra, unknown = _extra_flags(settings, repository, channels)
    return Plan(
        argv=(str(world.python), repository.train.name, *words, *extra),
        env=_environment(settings, channels),
        cwd=repository.cwd,
        place=place,
        moved_to=world.aside if identity.aside else None,
        records=settings.paths.outputs / settings.project / settings.exp_id / "launches",
        decisions=tuple(_decisions(values, resolved.origins, channels)),
        unkept=(*unkept, *unknown),
    )


def _values(settings: Settings, identity: Identity, place: Place, aside: Path) -> dict[str, Any]:
    values = {key: _get(settings, key) for key in leaves(Settings)}
    ckpt = identity.checkpoint if identity.declared == "warmstart" else None
    if ckpt is not None and identity.aside and ckpt.is_relative_to(place.experiment):
        ckpt = aside / ckpt.relative_to(place.experiment)  # it moves along with the folder it lies in
    return {**values, "init.ckpt": ckpt}


def _get(settings: Settings, key: str) -> Any:
    value: Any = settings
    for name in key.split("."):
        value = getattr(value, name)
    return value


def _decisions(
    values: Mapping[str, Any], origins: Mapping[str, Origin], channels: Mapping[str, Channel]
) -> list[Decision]:
    found = []
    for key, value in values.items():
        channel = channels.get(key)
        origin = origins.get(key, Origin("default", "conf/config.yaml"))
        if value is None and channel and channel.stands:
            origin = Origin("repository", str(channel.place))
        means = channel.carrier if channel else None
        option = channel.flag.option or channel.flag.dest if channel and channel.flag else str(means) if means else ""
        found.append(Decision(key, value, channel.current if channel else None, origin, option))
    return found


def _flags(
    values: Mapping[str, Any], origins: Mapping[str, Origin], channels: Mapping[str, Channel]
) -> tuple[list[str], list[Unkept]]:
    """Words for train.py, positionals first: a flag that takes several values would swallow one that follows it."""
    unkept: list[Unkept] = []
    wanted: dict[str, tuple[Flag, dict[int | None, str]]] = {}
    for key, value in values.items():
        channel = channels.get(key)
        if channel and channel.carrier and channel.carrier.kind == "flag" and channel.flag:
            if value is not None:
                wanted.setdefault(channel.flag.dest, (channel.flag, {}))[1][channel.carrier.index] = key
        elif not (channel and channel.carrier) and (missing := _unreached(key, value, origins.get(key), channel)):
            unkept.append(missing)
    words: list[str] = []
    for flag, keys in sorted(wanted.values(), key=lambda item: item[0].option is not None):
        try:
            words += render(flag, _flag_value(flag, keys, values, channels))
        except ValueError as error:
            key = next(iter(keys.values()))
            origin = origins.get(key)
            unkept.append(
                Unkept("misfit", key, values[key], origin is not None and origin.asked, f"{_name(flag)} {error}", "")
            )
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


def _unreached(key: str, value: Any, origin: Origin | None, channel: Channel | None) -> Unkept | None:
    """What is wrong with a setting for which the repository has no means; None where nothing is."""
    if value is None or value is False or key.startswith(_OURS) or _NEUTRAL.get(key) == value or origin is None:
        return None
    if key.startswith("features."):
        return Unkept("feature", key, value, True, "the repository was not found to implement it", f"{key}=false")
    if channel and same(value, channel.current):
        return None
    if not (origin.asked or origin.who == "documented"):
        return None
    if channel and channel.stands:
        where = f"it has no flag there: {channel.current} stands at {channel.place}"
    else:
        where = "no flag or variable of the repository takes it"
    return Unkept("unreached", key, value, origin.asked, where, f"leave it to the repository: {key}=null")


def same(value: object, own: object) -> bool:
    """Whether the repository's own value is what is wanted; names are compared in lower case, as this family does."""
    return value == own or str(value).lower() == str(own).lower()


def _extra_flags(
    settings: Settings, repository: Repository, channels: Mapping[str, Channel]
) -> tuple[list[str], list[Unkept]]:
    words: list[str] = []
    unknown: list[Unkept] = []
    owners = {c.flag.dest: key for key, c in channels.items() if c.flag}
    for name, value in settings.extra.flags.items():
        key, dest = f"extra.flags.{name}", name.lstrip("-").replace("-", "_")
        flag = repository.flag(dest)
        if flag is None:
            close = nearest(dest, [f.dest for f in repository.flags])
            hint = f"did you mean extra.flags.{close}?" if close else "python -m amt_hydra inspect lists the flags"
            unknown.append(Unkept("flag", key, value, True, f"{repository.train} has no such flag", hint))
        elif dest in owners:
            unknown.append(Unkept("flag", key, value, True, "a setting of its own carries it", f"use {owners[dest]}=…"))
        else:
            try:
                words += render(flag, value)
            except ValueError as error:
                unknown.append(Unkept("misfit", key, value, True, f"{_name(flag)} {error}", ""))
    return words, unknown


def _environment(settings: Settings, channels: Mapping[str, Channel]) -> dict[str, str]:
    env = {"PYTHONUNBUFFERED": "1"}  # a log that lags behind by a buffer misleads whoever watches it
    for key, channel in channels.items():
        if channel.carrier and channel.carrier.kind == "env":
            value = _get(settings, key)
            if value is not None and value is not False:
                env[channel.carrier.name] = "1" if value is True else str(value)
    if settings.ddp.accelerator == "cpu":
        env["CUDA_VISIBLE_DEVICES"] = ""
    return env | dict(settings.extra.env)


def differs(decision: Decision) -> bool:
    """Whether a setting with a documented default has another value."""
    entry = documented().get(decision.key)
    value = decision.value if decision.value is not None else decision.own
    return entry is not None and value is not None and not same(entry.value, value)


def _name(flag: Flag) -> str:
    return flag.option or flag.dest
