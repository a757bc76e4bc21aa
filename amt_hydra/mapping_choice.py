"""Which mapping of conf/repo applies to a repository, and what it says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from amt_hydra.compose import Composed
from amt_hydra.conf_path import bundled_repository
from amt_hydra.documented import read_yaml
from amt_hydra.repository.facts import HOME, Repository
from amt_hydra.schema import convert, leaves
from amt_hydra.settings import Settings

_FROM_MAPPING = ("means", "runs_from", "checkpoints", "init_ckpt", "loaders", "saved", "lazy")
_MERGED = ("means", "saved", "lazy")  # name by name: what the user says of one leaves the others


def with_mapping(settings: Settings, composed: Composed, repository: Repository, dirs: Sequence[Path]) -> Settings:
    """Under repo=auto, take the mapping that fits the repository found; what the user set himself stays."""
    if settings.repo.kind != "auto":
        return settings
    kind = fitting_kind(repository)
    new: dict[str, Any] = {"kind": kind}
    for name, shipped in mapping(dirs, kind, repository).items():
        origin = composed.origins.get(f"repo.{name}")
        if name in _MERGED:
            new[name] = {**shipped, **getattr(settings.repo, name)}
        elif not (origin and origin.asked):
            new[name] = shipped
    return replace(settings, repo=replace(settings.repo, **new))


def fitting_kind(repository: Repository) -> str:
    """The shipped mapping for a repository: by its place, else by its layout."""
    if repository.root == bundled_repository():
        return "reference"
    return "amt_ai" if repository.layout == HOME else "yourmt3"


def mapping(dirs: Sequence[Path], kind: str, repository: Repository) -> dict[str, Any]:
    """What conf/repo/<kind>.yaml says, typed as the settings of `repo` are."""
    file = next(f for d in dirs if (f := d / "repo" / f"{kind}.yaml").is_file())  # shipped, so it is there
    content: Mapping[str, Any] = read_yaml(file.read_text(encoding="utf-8"))
    known = leaves(Settings)
    return {
        name: convert(content[name], known[f"repo.{name}"], repository.root)
        for name in _FROM_MAPPING
        if name in content
    }
