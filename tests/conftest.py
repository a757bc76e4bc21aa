"""What several test files need: odd folder names, the command line as a process, a place to stand, /shared."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from amt_hydra.compose import Composed, compose
from amt_hydra.conf_path import search_dirs
from amt_hydra.preflight import typed_settings
from amt_hydra.settings import Settings

settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared machine")

ROOT = Path(__file__).resolve().parents[1]
WEIRD_NAMES = (
    "with spaces",
    "quo'te\"s",
    "epoch=3-step=1000",
    "a,b,c",
    "楽譜 — メロディ",
    "[x] {y} (z)",
    "$HOME ${oc.env:HOME} `id`",
    "in -between",
    "#1; two & three",
    "back\\slash ~tilde* ?",
)
_NOT_OURS = ("AMT_", "WANDB_", "SLURM_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_", "HYDRA_", "COMP_", "PYTHON")


def clean_environment(home: Path) -> dict[str, str]:
    """The caller's environment without anything that steers us, and with a home of the test's own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_OURS)}
    return {**kept, "HOME": str(home)}


@pytest.fixture(params=WEIRD_NAMES)
def weird_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder whose name needs quoting somewhere."""
    folder = tmp_path / request.param
    folder.mkdir()
    return folder


@pytest.fixture
def run_cli(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `python -m amt_hydra WORDS…` in tmp_path. `env` adds variables, None removes one; the rest is for run()."""

    def run(
        *words: str, env: dict[str, str | None] | None = None, python: tuple[str, ...] = (), **options: object
    ) -> subprocess.CompletedProcess[str]:
        merged = {**clean_environment(tmp_path), **(env or {})}
        how = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120, **options}
        command = [sys.executable, *python, "-m", "amt_hydra", *words]
        return subprocess.run(command, env={k: v for k, v in merged.items() if v is not None}, check=False, **how)  # type: ignore[call-overload, no-any-return]

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in tmp_path, in this process, with a clean environment."""
    for name in os.environ:
        if name.startswith(_NOT_OURS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def compose_here(here: Path) -> Callable[..., tuple[Settings, Composed]]:
    """Compose and type overrides as a run would, in this process."""

    def run(*words: str, config_dir: Path | None = None) -> tuple[Settings, Composed]:
        dirs = search_dirs(None if config_dir is None else str(config_dir), os.environ, here)
        composed = compose(words, dirs)
        return typed_settings(composed, here), composed

    return run


@pytest.fixture(scope="session")
def shared_path() -> Callable[..., Path]:
    """Return a path below the shared folder beside the checkout; skip where that is absent."""

    def find(*parts: str) -> Path:
        path = ROOT.parent.joinpath("shared", *parts)
        if not path.exists():
            pytest.skip(f"{path} is not here")
        return path

    return find
