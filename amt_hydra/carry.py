"""How each setting gets to the repository: words of its command line, variables, values of its config.py. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amt_hydra.bridged import Change, can_bridge, change
from amt_hydra.env_switches import DEBUGGING
from amt_hydra.extras import extra_config, extra_flags
from amt_hydra.mapping import Channel, parse
from amt_hydra.origins import Origin
from amt_hydra.repository.facts import Flag, Repository
from amt_hydra.settings import Settings
from amt_hydra.unkept import Unkept, flag_name, is_default, unreached
from amt_hydra.words import render

_ON = ("1", "true", "True", "yes", "on")  # what people write into a variable, the usual first
# What a DataLoader refuses beside num_workers=0, and what it takes instead.
_WITHOUT_WORKERS: Mapping[str, object] = {"prefetch_factor": None, "persistent_workers": False}


@dataclass(frozen=True, slots=True)
class Carried:
    """What reaches the repository, and what does not."""

    words: tuple[tuple[Flag, list[str]], ...]
    env: Mapping[str, str]
    changes: tuple[Change, ...]
    unkept: tuple[Unkept, ...]


def carry(
    values: Mapping[str, Any],
    settings: Settings,
    origins: Mapping[str, Origin],
    channels: Mapping[str, Channel],
    repository: Repository,
) -> Carried:
    """Take every value where its channel leads."""
    words, unkept = _flags(values, origins, channels)
    changes, misfits = _changes(values, origins, channels, repository)
    more_changes, refused = _without_workers(values, settings, channels, repository)
    extra_words, unknown_flags = extra_flags(settings, repository, channels)
    extra_changes, unknown_keys = extra_config(settings, repository, channels)
    missing = [
        lost
        for key, value in values.items()
        if not (key in channels and channels[key].carrier)
        if (lost := unreached(key, value, origins.get(key), channels, repository, _tried(key, settings, origins)))
    ]
    return Carried(
        words=(*words, *extra_words),
        env=_environment(values, settings, channels, repository),
        changes=(*changes, *more_changes, *extra_changes),
        unkept=(*missing, *unkept, *misfits, *refused, *unknown_flags, *unknown_keys),
    )


def _tried(key: str, settings: Settings, origins: Mapping[str, Origin]) -> str:
    """The means that a mapping of the user's own lists for a setting, which may have a slip in it."""
    means, origin = settings.repo.means.get(key, ()), origins.get(f"repo.means.{key}")
    return f" ({origin.file} names {', '.join(means)})" if origin and origin.file else ""


def _flags(
    values: Mapping[str, Any], origins: Mapping[str, Origin], channels: Mapping[str, Channel]
) -> tuple[list[tuple[Flag, list[str]]], list[Unkept]]:
    """The words of each flag that carries a setting."""
    wanted: dict[str, tuple[Flag, dict[int | None, str]]] = {}
    for key, value in values.items():
        channel = channels.get(key)
        if channel and channel.carrier and channel.flag and value is not None:
            wanted.setdefault(channel.flag.dest, (channel.flag, {}))[1][channel.carrier.index] = key
    words: list[tuple[Flag, list[str]]] = []
    unkept: list[Unkept] = []
    for flag, keys in wanted.values():
        try:
            words.append((flag, render(flag, _flag_value(flag, keys, values, channels))))
        except ValueError as error:
            unkept += [_misfit(key, values[key], origins, f"{flag_name(flag)} {error}") for key in keys.values()]
    return words, unkept


def _misfit(key: str, value: object, origins: Mapping[str, Origin], message: str) -> Unkept:
    return Unkept("misfit", key, value, not is_default(origins.get(key)), message)


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


def _changes(
    values: Mapping[str, Any],
    origins: Mapping[str, Origin],
    channels: Mapping[str, Channel],
    repository: Repository,
) -> tuple[list[Change], list[Unkept]]:
    """The values of config.py that carry a setting, where they are not what is wanted already."""
    changes: list[Change] = []
    unkept: list[Unkept] = []
    for key, channel in channels.items():
        value, carrier = values.get(key), channel.carrier
        if carrier is None or carrier.kind != "config" or value is None:
            continue
        try:
            changes += change(key, carrier.name, value, repository)
        except ValueError as error:
            place = repository.config[carrier.name].place
            unkept.append(_misfit(key, value, origins, f"{carrier.name} at {place} {error}"))
    return changes, unkept


def _without_workers(
    values: Mapping[str, Any], settings: Settings, channels: Mapping[str, Channel], repository: Repository
) -> tuple[list[Change], list[Unkept]]:
    """What the dictionary of data.num_workers must not say beside 0, by whichever means the 0 gets there."""
    channel = channels.get("data.num_workers")
    if channel is None or channel.carrier is None or values.get(channel.key) != 0:
        return [], []
    means = [parse(text, channel.key) for text in settings.repo.means[channel.key]]
    sections = [m.name.rpartition(".") for m in means if m.kind == "config"]
    keys = {f"{section}{dot}{name}": value for section, dot, _ in sections for name, value in _WITHOUT_WORKERS.items()}
    text = f"a DataLoader refuses it beside {channel.key}=0"
    asked = [(f"extra.config.{key}", value) for key, value in settings.extra.config.items() if key in keys]
    given = [Unkept("flag", key, value, True, text, "leave it out") for key, value in asked]
    if given:
        return [], given
    changes = [c for key, value in keys.items() for c in _change_if_there(channel.key, key, value, repository)]
    if not changes or can_bridge(settings, repository):
        return changes, []
    first = changes[0]
    text = f"a DataLoader refuses it beside {first.key}={first.own} at {first.place}, and no bridge is used"
    return [], [Unkept("misfit", channel.key, 0, True, text, f"{channel.key}=1")]


def _change_if_there(setting: str, key: str, value: object, repository: Repository) -> list[Change]:
    return change(setting, key, value, repository) if key in repository.config else []


def _environment(
    values: Mapping[str, Any], settings: Settings, channels: Mapping[str, Channel], repository: Repository
) -> dict[str, str]:
    env = {"PYTHONUNBUFFERED": "1"}  # a log that lags behind by a buffer misleads whoever watches it
    for key, channel in channels.items():
        carrier, value = channel.carrier, values.get(key)
        if carrier is None or value is None or value is False:
            continue
        if carrier.kind == "env":
            env[carrier.name] = _on(carrier.name, repository) if value is True else str(value)
        elif carrier.kind == "bridge" and carrier.name in DEBUGGING:
            env[DEBUGGING[carrier.name]] = _ON[0]
    if settings.ddp.accelerator == "cpu":
        env["CUDA_VISIBLE_DEVICES"] = ""
    return env | dict(settings.extra.env)


def _on(name: str, repository: Repository) -> str:
    """What switches a variable on, by the repository's own expression."""
    from amt_hydra.repository import switched_on

    return next((text for text in _ON if switched_on(repository, name, text)[0]), _ON[0])


def line(words: Sequence[tuple[Flag, list[str]]], repository: Repository) -> list[str]:
    """Positionals first and in their own order: a flag that takes several values would swallow one that follows it."""
    order = {flag.dest: number for number, flag in enumerate(repository.flags)}
    ranked = sorted(words, key=lambda item: order[item[0].dest] if item[0].option is None else len(order))
    return [word for _, part in ranked for word in part]
