"""Makes every key of the repository's data_presets.py an option of the group data_presets, without a file for it."""

from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult, ConfigSource
from omegaconf import OmegaConf

from amt_hydra.conf_path import PRESETS
from amt_hydra.overrides import escape


class PresetSource(ConfigSource):
    """Answers data_presets/<any name> with {name: <that name>}; the plan checks that the repository has it."""

    @staticmethod
    def scheme() -> str:
        """Scheme of this source in Hydra's search path."""
        return "amt-presets"

    def load_config(self, config_path: str) -> ConfigResult:
        """One preset by name."""
        name = config_path.removeprefix(f"{PRESETS}/")
        return ConfigResult(
            provider=self.provider,
            path=f"{self.scheme()}://",
            config=OmegaConf.create({"name": escape(name)}),
            header={"package": None},
        )

    def available(self) -> bool:
        """Always."""
        return True

    def is_group(self, config_path: str) -> bool:
        """There is one group."""
        return config_path == PRESETS

    def is_config(self, config_path: str) -> bool:
        """Any name is one."""
        return config_path.startswith(f"{PRESETS}/")

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Return the presets of the repository that would be used, for completion and for error messages."""
        if config_path != PRESETS or results_filter == ObjectType.GROUP:
            return []
        return sorted(_presets_in_reach())


def _presets_in_reach() -> list[str]:
    import os

    from amt_hydra.conf_path import bundled_repository
    from amt_hydra.errors import AmtError
    from amt_hydra.repository import locate, read

    try:
        return list(read(locate("auto", None, os.environ, bundled_repository()).root).presets)
    except AmtError:
        return []  # completion has nobody to tell; the run itself will
