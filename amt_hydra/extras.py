"""What no setting carries: extra.flags and extra.config, against what the repository has. Pure."""

from collections.abc import Mapping

from amt_hydra.bridged import Change, can_bridge, change
from amt_hydra.errors import nearest
from amt_hydra.mapping import Channel, is_dead, parse, why_dead
from amt_hydra.repository.facts import Flag, Repository
from amt_hydra.settings import Settings
from amt_hydra.unkept import Unkept, flag_name
from amt_hydra.words import render


def extra_dest(name: str) -> str:
    """The dest that a name below extra.flags means: it may be written as on train.py's own command line."""
    return name.lstrip("-").replace("-", "_")


def extra_flags(
    settings: Settings, repository: Repository, channels: Mapping[str, Channel]
) -> tuple[list[tuple[Flag, list[str]]], list[Unkept]]:
    """The words of the flags below extra.flags: those that train.py has, and that no setting of its own carries."""
    words: list[tuple[Flag, list[str]]] = []
    unknown: list[Unkept] = []
    owners = {c.flag.dest: key for key, c in channels.items() if c.flag}
    seen: dict[str, str] = {}
    for name, value in settings.extra.flags.items():
        key, dest = f"extra.flags.{name}", extra_dest(name)
        flag = repository.flag(dest)
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


def extra_config(
    settings: Settings, repository: Repository, channels: Mapping[str, Channel]
) -> tuple[list[Change], list[Unkept]]:
    """The values below extra.config: keys that config.py has, and that no setting of its own carries."""
    changes: list[Change] = []
    unknown: list[Unkept] = []
    owners = _owners(settings, channels)
    for name, value in settings.extra.config.items():
        key = f"extra.config.{name}"
        if not can_bridge(settings, repository):
            why = "nothing imports Lightning, which it patches" if settings.repo.bridge else "repo.bridge is false"
            hint = "leave it out" if settings.repo.bridge else "use repo.bridge=true"
            text = f"only the bridge sets a value of config.py, and {why}"
            unknown.append(Unkept("flag", key, value, True, text, hint))
        elif name in owners:
            hint = f"use {owners[name]}=…"
            unknown.append(Unkept("flag", key, value, True, "a setting of its own carries it", hint))
        elif name not in repository.config:
            unknown.append(Unkept("flag", key, value, True, *_no_key(name, repository)))
        else:
            try:
                changes += change(key, name, _read(value), repository)
            except ValueError as error:
                place = repository.config[name].place
                unknown.append(Unkept("misfit", key, value, True, f"{name} at {place} {error}"))
    return changes, unknown


def _owners(settings: Settings, channels: Mapping[str, Channel]) -> dict[str, str]:
    """The keys of config.py in the list of a setting that reaches the repository: what that setting says must count."""
    carried = [key for key, channel in channels.items() if channel.carrier]
    means = [(key, parse(text, key)) for key in carried for text in settings.repo.means[key]]
    return {one.name: key for key, one in means if one.kind == "config"}


def _no_key(name: str, repository: Repository) -> tuple[str, str]:
    """What is wrong with a key that config.py does not have, and what may be meant."""
    where = repository.config_file or repository.root
    inside = [key for key in repository.config if key.startswith(f"{name}.")]
    if inside:
        return f"it is a dictionary in {where}", f"name one of its keys: extra.config.{inside[0]}=…"
    close = nearest(name, list(repository.config))
    hint = f"did you mean extra.config.{close}?" if close else "python -m amt_hydra inspect lists the keys"
    return f"{where} has no such key", hint


def _read(value: object) -> object:
    """A value that kept its spelling on the command line, as YAML reads it; None as Python spells it in config.py."""
    from amt_hydra.documented import read_yaml

    if value == "None":
        return None
    return read_yaml(value) if isinstance(value, str) and value else value
