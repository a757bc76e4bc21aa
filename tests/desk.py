import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TINY = ("optimizer.warmup_steps=2", "val_interval=4", "extra.flags.val_clips=2", "data.num_workers=0", "ddp=cpu1")
"""Real training, as little of it as still validates and saves."""

_NOT_INHERITED = ("AMT_", "WANDB_", "SLURM_", "RANK", "LOCAL_", "WORLD_", "MASTER_", "COLUMNS")


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str


def environment(home: Path, **variables: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_INHERITED)}
    return {**kept, "HOME": str(home), **variables}


@dataclass(frozen=True)
class Desk:
    """A folder to stand in, and `python -m amt_hydra` typed there."""

    folder: Path

    def __call__(self, *words: str, within: Sequence[str] = (), **variables: str) -> Run:
        """`within` is a command that runs it."""
        done = subprocess.run(
            [*within, sys.executable, "-m", "amt_hydra", *words],
            cwd=self.folder,
            env=environment(self.folder, **variables),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    def checkpoints(self, exp_id: str) -> Path:
        return self.folder / "outputs" / "melody" / exp_id / "checkpoints"

    def launches(self, exp_id: str) -> list[Path]:
        return sorted((self.folder / "outputs" / "melody" / exp_id / "launches").iterdir())
