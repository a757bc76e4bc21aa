"""From overrides to a plain tree of values, by Hydra; and for each value, who decided it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amt_hydra.conf_path import groups, shipped
from amt_hydra.documented import documented
from amt_hydra.errors import USAGE, AmtError, nearest
from amt_hydra.origins import Origin, origins
from amt_hydra.overrides import prepare


@dataclass(frozen=True, slots=True)
class Composed:
    """What Hydra made of the configs and the overrides."""

    tree: Mapping[str, Any]
    """Resolved plain values."""
    origins: Mapping[str, Origin]
    """Per dotted key, who decided its value."""
    choices: Mapping[str, str | None]
    """Per config group, the chosen option."""
    overrides: tuple[str, ...]
    """As typed."""


def register(dirs: Sequence[Path]) -> None:
    """Tell Hydra where to look besides the shipped configs, and of the resolver and the presets' source."""
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


def compose(words: Sequence[str], dirs: Sequence[Path]) -> Composed:
    """Compose conf/config.yaml with the overrides `words`. Raises AmtError with code 64 on any fault in them."""
    import hydra
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    names = groups(list(dirs))
    prepared = prepare(words, names)
    register(dirs)
    try:
        with hydra.initialize_config_dir(str(shipped()), version_base="1.3"):
            config = hydra.compose("config", prepared, return_hydra_config=True)
            loader = GlobalHydra.instance().config_loader()
            choices = dict(config.hydra.runtime.choices)
            del_hydra(config)
            raw = _plain(OmegaConf.to_container(config, resolve=False))
            tree = _plain(OmegaConf.to_container(config, resolve=True))
            found = origins(raw, tree, choices, prepared, list(_config_files(loader, choices)), os.environ)
    except (HydraException, OmegaConfBaseException) as error:
        raise explain(error, words) from error
    return Composed(tree, found, {g: c for g, c in choices.items() if not g.startswith("hydra/")}, tuple(words))


def del_hydra(config: Any) -> None:
    """Drop Hydra's own node: its values only resolve inside an application."""
    from omegaconf import open_dict

    with open_dict(config):
        del config["hydra"]


def explain(error: BaseException, words: Sequence[str]) -> AmtError:
    """Turn an error of Hydra or OmegaConf into one clear message."""
    from hydra.errors import MissingConfigException, OverrideParseException
    from omegaconf.errors import OmegaConfBaseException

    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        options = list(error.options or [])
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        close = nearest(name, options)
        hint = f"did you mean `{group}={close}`?" if close else f"there are: {', '.join(options) or 'none'}"
        return AmtError(f"{group}={name}: there is no such option", fix=[hint], code=USAGE)
    if isinstance(error, OverrideParseException):
        return AmtError(
            f"{error.override} cannot be read: {str(error).splitlines()[0]}",
            fix=["quote the value for Hydra, inside the shell's quotes: \"key='value'\""],
            code=USAGE,
        )
    if "requires --multirun" in str(error) or "Ambiguous value" in str(error):
        word = next((w for w in words if w in str(error)), "")
        return AmtError(
            f"{word} gives several values, which would be a sweep; this is a single run",
            fix=["give one value", f"a list is written {word.partition('=')[0]}=[…]"],
            code=USAGE,
        )
    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else error
    key = getattr(cause, "full_key", None)
    lines = [*str(error).splitlines(), *(str(cause).splitlines() if cause is not error else [])]
    noise = ("full_key:", "object_type=", "reference_type=", "To append to your config use +")
    text = " ".join(line.strip() for line in lines if not line.strip().startswith(noise))
    return AmtError(
        f"{f'{key}: ' if key else ''}{text}", fix=[f"given: {' '.join(words)}"] if words else [], code=USAGE
    )


def _plain(container: Any) -> Mapping[str, Any]:
    assert isinstance(container, dict)  # conf/config.yaml is a mapping
    return container


def _config_files(loader: Any, choices: Mapping[str, str | None]) -> Iterator[tuple[str, str, Path]]:
    """(group, option, file) of each chosen config that stands in a file, in the order they are merged."""
    yield "", "config", shipped() / "config.yaml"
    for group, option in sorted(choices.items(), key=lambda item: item[0] == "experiment"):
        if option is None or group.startswith("hydra/"):
            continue
        for source in loader.get_sources():
            if source.scheme() == "file" and source.is_config(f"{group}/{option}"):
                yield group, option, Path(source.path) / f"{group}/{option}.yaml"
                break
