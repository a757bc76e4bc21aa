"""The launcher and a repository in the public layout, side by side."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from desk import Desk, Run
from trainable import Trainable

SMALL = ("ddp=cpu1", "precision=fp32", "val_interval=4", "optimizer.warmup_steps=2", "optimizer.scheduler=warm")


@dataclass(frozen=True)
class Family:
    desk: Desk
    repository: Trainable

    def __call__(self, *words: str, **variables: str) -> Run:
        """`python -m amt_hydra WORDS` on it; a run that goes wrong shows its output."""
        path = f"repo.path={self.repository.root}"
        return self.desk("repo=yourmt3", path, *SMALL, *words, OMP_NUM_THREADS="1", **variables)

    def trained(self, *words: str, **variables: str) -> Path:
        """The checkpoint folder of a run that ended well."""
        run = self(*words, **variables)
        assert run.code == 0, run.out + run.err
        exp_id = next((word.removeprefix("exp_id=") for word in words if word.startswith("exp_id=")), "base")
        return self.repository.checkpoints(exp_id)

    def log(self, exp_id: str) -> str:
        """What the last launch of an experiment printed."""
        return (self.desk.launches(exp_id)[-1] / "output.log").read_text(errors="replace")

    def load(self, path: Path) -> dict[str, Any]:
        """A checkpoint, with the class of the repository's own that it holds."""
        return self.repository.load(path)
