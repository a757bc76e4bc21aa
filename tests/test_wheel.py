"""An installed package carries its configs and the bundled repository, and works away from any checkout."""

import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content. Building it fetches hatchling from the package registry."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_holds_every_config_and_the_bundled_trainer(unpacked: Path) -> None:
    for inside, outside in (("conf", ROOT / "conf"), ("reference", ROOT / "amt_hydra" / "reference")):
        here = {p.relative_to(outside) for p in outside.rglob("*") if p.suffix in (".yaml", ".py")}
        there = {p.relative_to(unpacked / "amt_hydra" / inside) for p in (unpacked / "amt_hydra" / inside).rglob("*")}
        assert len(here) > 10
        assert here <= there


def test_a_plan_from_the_wheel(unpacked: Path, run_cli: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    done = run_cli("plan", "experiment=quick", env={"PYTHONPATH": str(unpacked)})
    assert done.returncode == 0, done.stderr
    assert str(unpacked / "amt_hydra" / "reference") in done.stdout
