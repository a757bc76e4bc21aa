"""Where configs are looked for: the shipped ones first, so that nobody's shadow them, then the user's own."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from amt_hydra.errors import USAGE, AmtError
from amt_hydra.schema import absolute

PRESETS = "data_presets"
"""The group whose options are, besides its files, the keys of the repository's data_presets.py."""
_PACKAGE = Path(__file__).resolve().parent


def shipped() -> Path:
    """conf/ at the top of a checkout; inside the package where it was installed from a wheel."""
    inside = _PACKAGE / "conf"
    return inside if inside.is_dir() else _PACKAGE.parent / "conf"


def bundled_repository() -> Path:
    """Root of the repository that ships with the package."""
    return _PACKAGE / "reference"


def search_dirs(config_dir: str | None, environ: Mapping[str, str], cwd: Path) -> list[Path]:
    """Return the folders in the order they count. Raises AmtError where one that was named is not there."""
    found = [shipped()]
    for name, value in (("--config-dir", config_dir), ("AMT_CONF", environ.get("AMT_CONF"))):
        if not value:
            continue
        folder = absolute(value, cwd)
        if not folder.is_dir():
            raise AmtError(
                f"{name} is {str(folder)!r}, which is no folder", fix=["name an existing folder"], code=USAGE
            )
        found.append(folder)
    if (cwd / "conf").is_dir():
        found.append(cwd / "conf")
    return list(dict.fromkeys(p.resolve() for p in found))


def shadowed(dirs: list[Path]) -> tuple[Path, ...]:
    """Configs that an earlier folder has one of the same name for: they are never used."""
    seen: set[Path] = set()
    hidden = []
    for folder in dirs:
        names = {file.relative_to(folder) for file in (*folder.glob("*.yaml"), *folder.glob("*/*.yaml"))}
        hidden += sorted(folder / name for name in names & seen)
        seen |= names
    return tuple(hidden)


def groups(dirs: list[Path]) -> list[str]:
    """Names of the config groups in these folders; not Hydra's own, of launchers and sweepers."""
    found = {p.name for d in dirs for p in d.iterdir() if p.is_dir() and not p.name.startswith((".", "__"))}
    return sorted(found - {"hydra"})


@cache
def shipped_groups() -> tuple[str, ...]:
    """Names of the shipped groups, each of which config.yaml gives an option."""
    return tuple(groups([shipped()]))
