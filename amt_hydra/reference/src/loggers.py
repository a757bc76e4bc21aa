"""metrics.csv always, Weights & Biases where it has credentials."""

import csv
import netrc
import os
import sys
import uuid
from pathlib import Path
from urllib.parse import urlparse

from lightning.pytorch.loggers import CSVLogger, Logger, WandbLogger
from lightning.pytorch.utilities import rank_zero_only


@rank_zero_only
def keep(logger: CSVLogger, path: Path, step: int) -> None:
    """Write an earlier run's rows up to `step` anew: CSVLogger removes the file that it finds, or adds to it."""
    aside = path.replace(path.with_suffix(".old"))
    with aside.open(newline="") as file:
        rows = [{k: v for k, v in row.items() if v} for row in csv.DictReader(file)]
    logger.experiment.metrics = [row for row in rows if float(row["step"]) <= step]
    logger.save()
    aside.unlink()


def credentials() -> bool:
    """Say whether wandb would find an API key: WANDB_API_KEY, or an entry for its host in the netrc file."""
    host = urlparse(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    try:
        return bool(os.environ.get("WANDB_API_KEY")) or host in netrc.netrc(os.environ.get("NETRC")).hosts
    except (OSError, netrc.NetrcParseError):
        return False


def make_loggers(kind: str, mode: str, project: str, folder: Path, resumed_step: int) -> list[Logger]:
    """Return the run's loggers; `mode` is wandb's online, offline or disabled, `resumed_step` 0 unless it resumes."""
    metrics = CSVLogger(folder.parent, name="", version=folder.name, flush_logs_every_n_steps=1)
    if resumed_step and (folder / "metrics.csv").exists():
        keep(metrics, folder / "metrics.csv", resumed_step)
    if kind == "csv" or mode == "disabled":
        return [metrics]
    if mode == "online" and not credentials():
        warning = "!!! no W&B credentials (WANDB_API_KEY, netrc): logging to metrics.csv only"
        rank_zero_only(print)(warning, file=sys.stderr, flush=True)
        return [metrics]
    stored = folder / "wandb_id.txt"  # a resume continues its W&B run; any other run is a new one
    run_id = stored.read_text() if resumed_step and stored.exists() else uuid.uuid4().hex[:8]
    folder.mkdir(parents=True, exist_ok=True)
    rank_zero_only(stored.write_text)(run_id)
    return [metrics, WandbLogger(folder.name, folder, id=run_id, project=project, mode=mode, resume="allow")]
