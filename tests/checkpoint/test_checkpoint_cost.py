"""A large file costs what a small one does; times are measured by bench/bench_checkpoint.py."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

Look = Callable[[Path], dict[str, Any]]


@pytest.fixture
def gibibyte(tmp_path: Path) -> Path:
    """A 1 GiB checkpoint by torch.save, whose tensors are holes: it takes a few KiB of the disk."""
    path = tmp_path / "large.ckpt"
    state = {f"layer.{n}.weight": torch.empty(1 << 20) for n in range(256)}  # never touched, so never in memory
    with torch.serialization.skip_data():
        torch.save({"state_dict": state, "global_step": 9}, path)
    assert path.stat().st_size > 1 << 30
    return path


def test_a_gibibyte_takes_less_than_30_mib(gibibyte: Path, look: Look) -> None:
    seen = look(gibibyte)
    assert (seen["whole"], seen["step"], seen["tensors"]) == (True, 9, 256)
    assert seen["mib"] < 30


def test_memory_is_flat_in_the_size_of_tensors(gibibyte: Path, look: Look, tmp_path: Path) -> None:
    small = tmp_path / "small.ckpt"
    torch.save({"state_dict": {f"layer.{n}.weight": torch.empty(1) for n in range(256)}, "global_step": 9}, small)
    assert abs(look(gibibyte)["mib"] - look(small)["mib"]) < 4


def test_nothing_heavy_is_imported(gibibyte: Path, look: Look) -> None:
    modules = set(look(gibibyte)["modules"])
    assert not modules & {"torch", "numpy", "lightning", "pickle", "zipfile", "hydra", "omegaconf"}


def test_importing_needs_only_the_standard_library() -> None:
    code = "import sys; sys.path.insert(0, '.'); from amt_hydra.checkpoint import xray; print(xray)"
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-I", "-S", "-c", code], cwd=root, capture_output=True, check=True)
