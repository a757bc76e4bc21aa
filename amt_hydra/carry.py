"""How each setting gets to the repository: words of its command line, variables, values of its config.py. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from amt_hydra.bridged import Change
from amt_hydra.env_switches import DEBUGGING
from amt_hydra.errors import nearest
from amt_hydra.mapping import Channel, is_dead, why_dead
from amt_hydra.origins import Origin
from amt_hydra.repository.facts import Flag, Repository
from amt_hydra.settings import Settings
from amt_hydra.unkept import Unkept, flag_name, is_default, same, unreached
from amt_hydra.words import fit, render

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
    extra_words, unknown_flags = _extra_flags(settings, repository, channels)
    extra_changes, unknown_keys = _extra_config(settings, repository, channels)
    missing = [
        lost
        for key, value in values.items()
        if not (key in channels and channels[key].carrier)
        if (lost := unreached(key, value, origins.get(key), channels, repository))
    ]
    return Carried(
        words=(*words, *extra_words),
        env=_environment(values, settings, channels, repository),
        changes=(*changes, *extra_changes),
        unkept=(*missing, *unkept, *misfits, *unknown_flags, *unknown_keys),
    )


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
            changes += _change(key, carrier.name, value, repository)
        except ValueError as error:
            place = repository.config[carrier.name].place
            unkept.append(_misfit(key, value, origins, f"{carrier.name} at {place} {error}"))
        if key == "data.num_workers" and value == 0:
            changes += _without_workers(carrier.name.rpartition(".")[0], repository)
    return changes, unkept


def _without_workers(section: str, repository: Repository) -> list[Change]:
    """What the same dictionary must not say beside num_workers=0."""
    keys = {f"{section}.{name}": value for name, value in _WITHOUT_WORKERS.items()}
    there = [(key, value) for key, value in keys.items() if key in repository.config]
    return [change for key, value in there for change in _change("data.num_workers", key, value, repository)]


def _change(setting: str, key: str, value: object, repository: Repository) -> list[Change]:
    """The change of one value of config.py; none where it stands there already. Raises ValueError."""
    own = repository.config[key]
    wanted = fit(str(value) if hasattr(value, "__fspath__") else value, own.value)
    if same(wanted, own.value):
        return []
    return [Change(setting, key, own.place, wanted, own.value)]


def extra_dest(name: str) -> str:
    """The dest that a name below extra.flags means: it may be written as on train.py's own command line."""
    return name.lstrip("-").replace("-", "_")


def _extra_flags(
    settings: Settings, repository: Repository, channels: Mapping[str, Channel]
) -> tuple[list[tuple[Flag, list[str]]], list[Unkept]]:
    words: list[tuple[Flag, list[str]]] = []
    unknown: list[Unkept] = []
    owners = {c.flag.dest: key for key, c in channels.items() if c.flag}
    seen: dict[str, str] = {}
    for name, value in settings.extra.flags.items():
        key, dest = f"extra.flags.{name}", extra_dest(name)
        flag = repository.flag(dest)
        if value is None:
            continue  # as everywhere: the repository decides
        earlier = seen.setdefault(dest, name)
        if earlier != name:
            text = f"extra.flags.{earlier} is the same flag: argparse would take the last of the two"
            unknown.append(Unkept("flag", key, value, True, text, "leave one of them out"))
        elif flag is None:
            close = nearest(dest, [f.dest for f in repository.flags])
            hint = f"did you mean extra.flags.{close}?" if close else "python -m amt_hydra inspect lists the flags"
            unknown.append(Unkept("flag", key, value, True, f"{repository.train} has no such flag", hint))
        elif dest in owners:
            unknown.append(Unkept("flag", key, value, True, "a setting of its own carries it", f"use {owners[dest]}=…"))
        else:
            if is_dead(flag):
                text = f"{flag_name(flag)} at {flag.place} {why_dead(flag)}"
                unknown.append(Unkept("dead", key, value, True, text))
            try:
                words.append((flag, render(flag, value)))
            except ValueError as error:
                unknown.append(Unkept("misfit", key, value, True, f"{flag_name(flag)} {error}"))
    return words, unknown


def _extra_config(
    settings: Settings, repository: Repository, channels: Mapping[str, Channel]
) -> tuple[list[Change], list[Unkept]]:
    """The values below extra.config: keys that config.py has, and that no setting of its own carries."""
    changes: list[Change] = []
    unknown: list[Unkept] = []
    owners = {c.carrier.name: key for key, c in channels.items() if c.carrier and c.carrier.kind == "config"}
    for name, value in settings.extra.config.items():
        key = f"extra.config.{name}"
        if value is None:
            continue  # as everywhere: the repository decides; its own None is written None
        if not settings.repo.bridge:
            text = "only the bridge sets a value of config.py, and repo.bridge is false"
            unknown.append(Unkept("flag", key, value, True, text, "use repo.bridge=true"))
        elif name in owners:
            hint = f"use {owners[name]}=…"
            unknown.append(Unkept("flag", key, value, True, "a setting of its own carries it", hint))
        elif name not in repository.config:
            close = nearest(name, list(repository.config))
            hint = f"did you mean extra.config.{close}?" if close else "python -m amt_hydra inspect lists the keys"
            where = repository.config_file or repository.root
            unknown.append(Unkept("flag", key, value, True, f"{where} has no such key", hint))
        else:
            try:
                changes += _change(key, name, _read(value), repository)
            except ValueError as error:
                place = repository.config[name].place
                unknown.append(Unkept("misfit", key, value, True, f"{name} at {place} {error}"))
    return changes, unknown


def _read(value: object) -> object:
    """A value that kept its spelling on the command line, as YAML reads it; None as Python spells it in config.py."""
    from amt_hydra.documented import read_yaml

    if value == "None":
        return None
    return read_yaml(value) if isinstance(value, str) and value else value


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
