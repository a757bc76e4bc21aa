"""metrics.csv always, Weights & Biases where it can work."""

import csv
import netrc
import os
import sys
import uuid
from pathlib import Path
from urllib.parse import urlparse

from lightning.pytorch.loggers import CSVLogger, Logger
from lightning.pytorch.utilities import rank_zero_only


class Metrics(CSVLogger):
    """<folder>/metrics.csv, current after every row; a resume keeps the rows up to the step it continues from."""

    def __init__(self, folder: Path, resumed_step: int = 0) -> None:
        super().__init__(folder.parent.parent, name=folder.parent.name, version=folder.name, flush_logs_every_n_steps=1)
        if getattr(rank_zero_only, "rank", 0) == 0:
            self.keep(folder / "metrics.csv", resumed_step)

    def keep(self, path: Path, resumed_step: int) -> None:
        """Write the rows of an earlier run up to `resumed_step` anew: the writer begins by removing its file."""
        if not path.exists():
            return
        aside = path.with_suffix(".old")
        path.replace(aside)
        with aside.open(newline="") as file:
            rows = [{k: v for k, v in row.items() if v} for row in csv.DictReader(file)]
        self.experiment.metrics = [row for row in rows if float(row["step"]) <= resumed_step]
        self.save()
        aside.unlink()


def credentials() -> bool:
    """Say whether wandb would find an API key: WANDB_API_KEY, or an entry for its host in the netrc file."""
    if os.environ.get("WANDB_API_KEY"):
        return True
    host = urlparse(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    try:
        entry = netrc.netrc(os.environ.get("NETRC")).authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return False
    return entry is not None


def make_loggers(kind: str, mode: str, project: str, folder: Path, resumed_step: int) -> list[Logger]:
    """Return the run's loggers; `mode` is wandb's online, offline or disabled, `resumed_step` 0 unless it resumes."""
    loggers: list[Logger] = [Metrics(folder, resumed_step)]
    if kind == "csv" or mode == "disabled":
        return loggers
    if kind == "auto" and mode == "online" and not credentials():
        loud("no W&B credentials (WANDB_API_KEY, netrc): logging to metrics.csv only")
        return loggers
    name = folder / "wandb_id.txt"  # a resume continues its W&B run; any other run is a new one
    try:
        from lightning.pytorch.loggers import WandbLogger

        run_id = name.read_text().strip() if resumed_step and name.exists() else uuid.uuid4().hex[:8]
        wandb = WandbLogger(
            project=project, name=folder.name, id=run_id, save_dir=folder, mode=mode, resume="allow", log_model=False
        )
        _ = wandb.experiment  # starts the run here, where a failure can still be answered
        if getattr(rank_zero_only, "rank", 0) == 0:
            name.write_text(run_id + "\n")
        return [*loggers, wandb]
    except Exception as error:  # whatever keeps W&B from starting must not keep training from starting
        reason = str(error).strip().splitlines() or [type(error).__name__]
        loud(f"W&B did not start ({reason[0]}): logging to metrics.csv only")
        return loggers


@rank_zero_only
def loud(text: str) -> None:
    """Print a line that is not overlooked, on stderr."""
    print(f"!!! {text}", file=sys.stderr, flush=True)
