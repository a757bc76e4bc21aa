"""From overrides to a plain tree of values, by Hydra; and for each value, who decided it."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amt_hydra.commands import quote
from amt_hydra.conf_path import groups, shipped
from amt_hydra.documented import documented
from amt_hydra.errors import USAGE, AmtError, nearest, of_a_stream
from amt_hydra.layers import layers
from amt_hydra.origins import Origin, origins
from amt_hydra.overrides import prepare, refuse_secret
from amt_hydra.schema import flatten

_OVERRIDE_OF_NOTHING = re.compile(r"In '(?P<config>[^']+)': Could not override '(?P<group>[^']+)'")


@dataclass(frozen=True, slots=True)
class Composed:
    """What Hydra made of the configs and the overrides."""

    tree: Mapping[str, Any]
    """Resolved plain values."""
    origins: Mapping[str, Origin]
    """Per dotted key, who decided its value."""
    choices: Mapping[str, str | None]
    """Per config group, the chosen option."""


def register(dirs: Sequence[Path]) -> None:
    """Tell Hydra where to look besides the shipped configs, and of the resolvers and the presets' source."""
    from hydra.core.config_search_path import ConfigSearchPath
    from hydra.core.plugins import Plugins
    from hydra.plugins.search_path_plugin import SearchPathPlugin
    from omegaconf import OmegaConf

    from amt_hydra.preset_source import PresetSource

    class UserConfigs(SearchPathPlugin):
        def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
            for folder in dirs[1:]:
                search_path.append("amt_hydra", f"file://{folder}")
            search_path.append("amt_hydra", f"{PresetSource.scheme()}://")

    plugins = Plugins.instance()
    plugins.plugin_type_to_subclass_list[SearchPathPlugin] = [
        p for p in plugins.plugin_type_to_subclass_list[SearchPathPlugin] if p.__name__ != UserConfigs.__name__
    ]
    plugins.register(UserConfigs)
    plugins.register(PresetSource)
    OmegaConf.register_new_resolver("documented", lambda key: documented()[key].value, replace=True)
    OmegaConf.register_new_resolver("environment", lambda name, other: os.environ.get(name) or other, replace=True)


def compose(words: Sequence[str], dirs: Sequence[Path]) -> Composed:
    """Compose conf/config.yaml with the overrides `words`. Raises AmtError with code 64 on any fault in them."""
    import hydra
    from hydra.core.global_hydra import GlobalHydra
    from omegaconf import OmegaConf

    prepared = prepare(words, groups(list(dirs)))
    register(dirs)
    with explained(words, dirs), hydra.initialize_config_dir(str(shipped()), version_base="1.3"):
        config = hydra.compose("config", prepared, return_hydra_config=True)
        choices = dict(config.hydra.runtime.choices)
        merged = layers(GlobalHydra.instance().config_loader(), choices, prepared)
        _del_hydra(config)
        raw = _plain(OmegaConf.to_container(config, resolve=False))
    found = origins(raw, merged, prepared, os.environ)
    tree = _resolved(config, found)
    for key, value in flatten(tree):  # of files; the overrides were looked at before
        refuse_secret(key, str(value))
    return Composed(tree, found, {g: c for g, c in choices.items() if not g.startswith("hydra/")})


def _resolved(config: Any, found: Mapping[str, Origin]) -> Mapping[str, Any]:
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        return _plain(OmegaConf.to_container(config, resolve=True))
    except OmegaConfBaseException as error:
        key = (error.full_key or "").partition("[")[0]
        where = f" ({found[key]})" if key in found else ""
        raise AmtError(f"{key}{where} cannot be resolved: {str(error).splitlines()[0]}", code=USAGE) from error


def _del_hydra(config: Any) -> None:
    """Drop Hydra's own node: its values only resolve inside an application."""
    from omegaconf import open_dict

    with open_dict(config):
        del config["hydra"]


@contextmanager
def explained(words: Sequence[str], dirs: Sequence[Path]) -> Iterator[None]:
    """Turn what Hydra, OmegaConf and the YAML parser raise about configs and overrides into an AmtError."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    try:
        yield
    except (HydraException, OmegaConfBaseException, YAMLError, ValueError, OSError) as error:
        if of_a_stream(error):
            raise
        raise _explain(error, words, dirs) from error


def _explain(error: BaseException, words: Sequence[str], dirs: Sequence[Path]) -> AmtError:
    from hydra.errors import MissingConfigException, OverrideParseException
    from yaml import MarkedYAMLError

    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        file = error.problem_mark.name
        return AmtError(
            f"{file}:{error.problem_mark.line + 1}: no YAML: {error.problem}", fix=[f"mend {file}"], code=USAGE
        )
    if isinstance(error, UnicodeDecodeError):
        file = next((str(f) for d in dirs for f in sorted(d.glob("*/*.yaml")) if not _is_utf8(f)), "a config file")
        return AmtError(f"{file} is not UTF-8: {error.reason}", fix=[f"save {file} as UTF-8"], code=USAGE)
    if misplaced := _OVERRIDE_OF_NOTHING.match(str(error)):
        return _no_group(misplaced["config"], misplaced["group"], dirs)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        return _no_option(str(error.missing_cfg_file), list(error.options or []), str(error), words)
    if isinstance(error, OverrideParseException):
        return AmtError(
            f"{error.override} cannot be read: {str(error).splitlines()[0]}",
            fix=["quote the value for Hydra, inside the shell's quotes: \"key='value'\""],
            code=USAGE,
        )
    if "requires --multirun" in str(error) or "Ambiguous value" in str(error):
        word = next((w for w in words if w in str(error)), "")
        return _several(word, ["give one value", f"a list is written {word.partition('=')[0]}=[…]"])
    return _other(error, words)


def _several(word: str, fix: list[str]) -> AmtError:
    text = f"{word} gives several values, which would be a sweep; this is a single run"
    return AmtError(text, fix=[*fix, "a sweep is given with -m"], code=USAGE)


def _is_utf8(file: Path) -> bool:
    try:
        file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _no_group(config: str, group: str, dirs: Sequence[Path]) -> AmtError:
    """A config's defaults list overrides a group that is none."""
    file = next((f for d in dirs if (f := d / f"{config}.yaml").is_file()), config)
    close = nearest(group, groups(list(dirs)))
    hint = f"did you mean `override /{close}`?" if close else f"the groups are: {', '.join(groups(list(dirs)))}"
    return AmtError(f"{file}: `override /{group}`: there is no such group", fix=[hint], code=USAGE)


def _no_option(missing: str, options: Sequence[str], text: str, words: Sequence[str]) -> AmtError:
    """An option of a group that is not there, or one that a config's defaults list names."""
    group, _, name = missing.rpartition("/")
    if f"{group}={name}" in words and set(name.split(",")) <= set(options):
        return _several(f"{group}={name}", [f"give one of {', '.join(name.split(','))}"])
    named_in = text.partition("In '")[2].partition("'")[0]
    where = f" (in the defaults list of {named_in})" if named_in not in ("", "config") else ""
    close = nearest(name, options)
    hint = f"did you mean `{group}={close}`?" if close else f"there are: {', '.join(options) or 'none'}"
    return AmtError(f"{group}={name}: there is no such option{where}", fix=[hint], code=USAGE)


def _other(error: BaseException, words: Sequence[str]) -> AmtError:
    from omegaconf.errors import OmegaConfBaseException

    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else error
    key = getattr(cause, "full_key", None)
    lines = [*str(error).splitlines(), *(str(cause).splitlines() if cause is not error else [])]
    noise = ("full_key:", "object_type=", "reference_type=")
    text = " ".join(line.strip() for line in lines if not line.strip().startswith(noise))
    return AmtError(
        f"{f'{key}: ' if key else ''}{text}", fix=[f"given: {' '.join(map(quote, words))}"] if words else [], code=USAGE
    )


def _plain(container: Any) -> Mapping[str, Any]:
    assert isinstance(container, dict)  # conf/config.yaml is a mapping
    return container
