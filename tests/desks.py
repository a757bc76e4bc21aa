"""Fixtures: where the user stands, and the repository that is trained. Loaded by `pytest_plugins = ["desks"]`."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from family_repos import with_model
from repos import Checkpoints, family, home
from stand import Stand

from amt_hydra.conf_path import bundled_repository


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoints:
    return Checkpoints(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, in a shell that has nothing of ours exported."""
    for name in [n for n in os.environ if n.startswith(("AMT_", "WANDB_", "SLURM_", "CUDA_", "RANK", "MASTER_"))]:
        monkeypatch.delenv(name)
    folder = tmp_path / "desk, with=weird [x]*? 'name' 日本"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def stand(desk: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: Checkpoints) -> Stand:
    """The private home layout: it resumes, takes --init-ckpt, and reads AMT_FORCE_SCRATCH."""
    repository = home(desk / "code")
    stand = Stand(desk, repository, repository / "logs", checkpoint, monkeypatch)
    stand.machine()
    return stand


@pytest.fixture
def bundled(desk: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: Checkpoints) -> Stand:
    """The bundled repository, as it stands."""
    stand = Stand(desk, bundled_repository(), desk / "outputs", checkpoint, monkeypatch)
    stand.machine()
    return stand


@pytest.fixture
def public(desk: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: Checkpoints) -> Stand:
    """The public layout: by itself it never resumes, and has no flag for a warm start."""
    repository = family(desk / "YourMT3")
    stand = Stand(desk, repository, repository / "amt" / "logs", checkpoint, monkeypatch)
    stand.machine()
    return stand


@pytest.fixture
def model(desk: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: Checkpoints) -> Stand:
    """The public layout with the architecture's flags, and with tasks and presets of several kinds."""
    repository = with_model(desk / "YourMT3")
    stand = Stand(desk, repository, repository / "amt" / "logs", checkpoint, monkeypatch)
    stand.machine()
    return stand


@pytest.fixture
def plain(public: Stand) -> Stand:
    """The public layout, run as it is: nothing is brought to it."""
    return replace(public, words=("repo.bridge=false",))
