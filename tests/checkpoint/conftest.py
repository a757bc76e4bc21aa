"""Files to look at, and a process of its own for what may cost memory."""

import io
import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[2]

LOOK = """
import json, resource, sys
def peak():  # VmHWM and not ru_maxrss, which a child inherits from the process that started it
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = peak()
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
from pathlib import Path
from amt_hydra.checkpoint import xray
seen = xray(Path(sys.argv[1]))
print(json.dumps({"mib": (peak() - before) / 1024, "whole": seen.whole, "problem": seen.problem,
                  "step": seen.global_step, "tensors": len(seen.tensors), "refused": len(seen.refused_globals),
                  "hyper": repr(seen.hyper_parameters)[:2000], "modules": sorted(sys.modules)}))
"""


@pytest.fixture
def look() -> Callable[[Path], dict[str, Any]]:
    """X-ray a file in a fresh interpreter under limits; "mib" is what that took above the bare interpreter."""

    def run(path: Path) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-c", LOOK, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
        )
        return dict(json.loads(done.stdout))

    return run


@pytest.fixture
def craft(tmp_path: Path) -> Callable[..., Path]:
    """Write an archive as torch.save does, around a pickle and storages given as bytes."""

    def write(data: bytes, name: str = "crafted.ckpt", packed: bool = False, **storages: bytes) -> Path:
        path = tmp_path / name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED) as archive:
            archive.writestr("archive/data.pkl", data)
            archive.writestr("archive/byteorder", b"little")
            for key, content in storages.items():
                archive.writestr(f"archive/data/{key.removeprefix('s')}", content)
            archive.writestr("archive/version", b"3\n")
        return path

    return write


@pytest.fixture
def pickled(craft: Callable[..., Path]) -> Callable[..., Path]:
    """Write an archive around the pickle of any object."""

    def write(value: object, protocol: int = 2, **options: Any) -> Path:
        return craft(pickle.dumps(value, protocol), **options)

    return write


@pytest.fixture
def saved(tmp_path: Path) -> Callable[..., Path]:
    """Write a checkpoint with torch.save."""

    def write(value: object, name: str = "saved.ckpt", **options: Any) -> Path:
        torch.save(value, tmp_path / name, **options)
        return tmp_path / name

    return write


@pytest.fixture(scope="session")
def checkpoint_bytes() -> bytes:
    """A small but complete checkpoint of the shape that Lightning writes."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    buffer = io.BytesIO()
    content = {
        "epoch": 2,
        "global_step": 1234,
        "pytorch-lightning_version": "2.4.0",
        "state_dict": model.state_dict(),
        "optimizer_states": [optimizer.state_dict()],
        "lr_schedulers": [{"last_epoch": 3, "base_lrs": [3e-4]}],
        "callbacks": {
            "ModelCheckpoint{'monitor': 'validation/macro_onset_f'}": {
                "monitor": "validation/macro_onset_f",
                "best_model_path": "/runs/a/best.ckpt",
                "best_model_score": torch.tensor(0.75),
                "current_score": torch.tensor(0.5),
            }
        },
        "hyper_parameters": {"lr": 3e-4, "task": "mt3_full_plus", "sizes": [1, 2], "pair": (1, None)},
    }
    torch.save(content, buffer)
    return buffer.getvalue()
