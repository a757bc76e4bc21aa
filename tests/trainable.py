"""A repository in the public layout that trains on a CPU in seconds, with the public code's habits.

What it calls resuming takes the weights only, its batch-size flag changes a copy that no loader reads, warm-up and
workers stand in config.py, metrics go to W&B, and its checkpoints hold a class of its own.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

LOWEST = Path(__file__).resolve().parents[1] / ".venv" / "lightning-2.2"

TRAIN = """\
import argparse

import torch
from config.data_presets import data_preset_single_cfg
from model.init_train import initialize_trainer
from model.net import Net
from utils.loading import Clips
from utils.task_manager import TaskManager

parser = argparse.ArgumentParser()
parser.add_argument("exp_id", type=str)
parser.add_argument("-p", "--project", type=str, default="ymt3")
parser.add_argument("-d", "--data-preset", type=str, default="tones")
parser.add_argument("-ps", "--pitch-shift-range", type=int, default=None, nargs=2)
parser.add_argument("-bsz", "--train-batch-size", type=int, default=None, nargs=2)
parser.add_argument("-pr", "--precision", type=str, default="bf16-mixed")
parser.add_argument("-st", "--strategy", type=str, default="auto")
parser.add_argument("-it", "--max-steps", type=int, default=-1)
parser.add_argument("-vit", "--val-interval", type=int, default=None)
parser.add_argument("-lr", "--base-learning-rate", type=float, default=None)
parser.add_argument("-o", "--optimizer", type=str, default="AdamW")
parser.add_argument("-s", "--scheduler", type=str, default="cosine")
parser.add_argument("-n", "--num-nodes", type=int, default=1)
parser.add_argument("-g", "--num-gpus", type=str, default="auto")
parser.add_argument("-wb", "--wandb-mode", type=str, default=None)
args = parser.parse_args()

trainer, wandb_logger, dir_info, shared_cfg = initialize_trainer(args)
if args.pitch_shift_range is not None:
    shift = None if args.pitch_shift_range == [0, 0] else list(args.pitch_shift_range)
    shared_cfg["AUGMENTATION"]["train_pitch_shift_range"] = shift


def main():
    model = Net(
        shared_cfg=shared_cfg,
        optimizer_name=args.optimizer,
        scheduler_name=args.scheduler.lower(),
        base_lr=args.base_learning_rate,
        max_steps=args.max_steps,
        task_manager=TaskManager(data_preset_single_cfg[args.data_preset]["dataset_name"]),
    )
    if trainer.global_rank == 0:
        wandb_logger.experiment.config.update(shared_cfg, allow_val_change=True)
    wandb_logger.watch(model, log="gradients", log_freq=5000)
    if dir_info["last_ckpt_path"] is not None:
        checkpoint = torch.load(dir_info["last_ckpt_path"])
        model.load_state_dict(checkpoint["state_dict"], strict=False)
        trainer.fit(model, datamodule=Clips())
    else:
        trainer.fit(model, ckpt_path=dir_info["last_ckpt_path"], datamodule=Clips())


if __name__ == "__main__":
    main()
"""

INIT_TRAIN = """\
import os
from copy import deepcopy

import LIGHTNING as pl
from config.config import shared_cfg as default_shared_cfg
from LIGHTNING.callbacks import LearningRateMonitor, ModelCheckpoint
from LIGHTNING.loggers import WandbLogger


def initialize_trainer(args):
    shared_cfg = deepcopy(default_shared_cfg)
    os.makedirs(shared_cfg["WANDB"]["save_dir"], exist_ok=True)
    if args.wandb_mode is not None:
        shared_cfg["WANDB"]["mode"] = str(args.wandb_mode)
    folder = os.path.join(shared_cfg["WANDB"]["save_dir"], args.project, args.exp_id)
    logger = WandbLogger(
        project=args.project, id=args.exp_id, allow_val_change=True, log_model=False, **shared_cfg["WANDB"]
    )
    last_ckpt_path = os.path.join(folder, "checkpoints", "last.ckpt")
    if os.path.exists(last_ckpt_path):
        print(f"Resuming from {last_ckpt_path}")
    else:
        print("No checkpoint found. Starting from scratch")
        last_ckpt_path = None
    if args.val_interval is not None:
        shared_cfg["TRAINER"]["check_val_every_n_epoch"] = None
        shared_cfg["TRAINER"]["val_check_interval"] = int(args.val_interval)
    if args.train_batch_size is not None:
        shared_cfg["BSZ"]["train_sub"], shared_cfg["BSZ"]["train_local"] = args.train_batch_size
    trainer = pl.Trainer(
        **shared_cfg["TRAINER"],
        devices=args.num_gpus if args.num_gpus == "auto" else int(args.num_gpus),
        num_nodes=args.num_nodes,
        accelerator="cpu",
        strategy=args.strategy,
        precision=args.precision,
        max_steps=args.max_steps,
        logger=logger,
        callbacks=[ModelCheckpoint(**shared_cfg["CHECKPOINT"]), LearningRateMonitor(logging_interval="step")],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    if trainer.global_rank == 0:
        logger.experiment.config.update(args, allow_val_change=True)
    return trainer, logger, {"last_ckpt_path": last_ckpt_path}, shared_cfg
"""

NET = """\
import os

import LIGHTNING as pl
import torch


class Net(pl.LightningModule):
    def __init__(self, shared_cfg, optimizer_name, scheduler_name, base_lr, max_steps, task_manager):
        super().__init__()
        self.save_hyperparameters()
        self.body = torch.nn.Linear(4, 8)
        self.head = torch.nn.Linear(8, 2)
        self.pitchshift = None

    def setup(self, stage):
        if self.hparams.shared_cfg["AUGMENTATION"]["train_pitch_shift_range"]:
            self.pitchshift = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))

    def training_step(self, batches, _):
        x = torch.cat(batches)
        loss = self(x).pow(2).mean()
        if self.global_step == int(os.environ.get("TOY_NAN_AT", -1)):
            loss = loss + (self.head.bias * float("nan")).sum()
        return loss

    def validation_step(self, x, _):
        self.log("validation/macro_onset_f", 0.5, sync_dist=True)  # a plateau from the first validation on

    def configure_optimizers(self):
        schedule = self.hparams.shared_cfg["LR_SCHEDULE"]
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.base_lr or 1e-3)
        warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=schedule["warmup_steps"])
        return [optimizer], [{"scheduler": warm, "interval": "step"}]
"""

LOADING = """\
import LIGHTNING as pl
import torch
from config.config import shared_cfg


class Noise(torch.utils.data.Dataset):
    def __init__(self, part):
        generator = torch.Generator().manual_seed(part)
        self.clips = torch.randn(8, 4, generator=generator)

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, number):
        return self.clips[number]


class Clips(pl.LightningDataModule):
    def train_dataloader(self):
        sub, local = shared_cfg["BSZ"]["train_sub"], shared_cfg["BSZ"]["train_local"]
        parts = local // sub
        print(f"loaders: {parts} of {sub} clips, {shared_cfg['DATAIO']['num_workers']} workers each", flush=True)
        return [torch.utils.data.DataLoader(Noise(n), batch_size=sub, **shared_cfg["DATAIO"]) for n in range(parts)]

    def val_dataloader(self):
        return torch.utils.data.DataLoader(Noise(99), batch_size=8)
"""

CONFIG = """\
shared_cfg = {
    "PATH": {"data_home": "../../data"},
    "BSZ": {"train_sub": 2, "train_local": 4},
    "AUGMENTATION": {"train_pitch_shift_range": None},
    "DATAIO": {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False},
    "CHECKPOINT": {
        "monitor": "validation/macro_onset_f",
        "mode": "max",
        "save_top_k": 1,
        "save_last": True,
        "filename": "{epoch}-{step}",
    },
    "TRAINER": {
        "accumulate_grad_batches": 1,
        "gradient_clip_val": 1.0,
        "check_val_every_n_epoch": 1,
        "num_sanity_val_steps": 0,
    },
    "WANDB": {"save_dir": "../logs", "mode": "online"},
    "LR_SCHEDULE": {"warmup_steps": 8, "total_steps": 100000},
}
"""

PRESETS = """\
data_preset_single_cfg = {
    "tones": {"eval_vocab": [None], "dataset_name": "tones", "train_split": "train", "validation_split": "validation"},
}
data_preset_multi_cfg = {}
"""

TASKS = """\
class TaskManager:
    def __init__(self, name):
        self.name = name
"""


@dataclass(frozen=True)
class Ended:
    code: int
    out: str


@dataclass(frozen=True)
class Trainable:
    """One such repository, and what its runs leave."""

    root: Path

    @property
    def source(self) -> Path:
        return self.root / "amt" / "src"

    def checkpoints(self, exp_id: str, project: str = "melody") -> Path:
        return self.root / "amt" / "logs" / project / exp_id / "checkpoints"

    def by_itself(self, *argv: str, **variables: str) -> Ended:
        """`python train.py ARGV`, as its authors would, with W&B offline."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AMT_", "WANDB_", "SLURM_", "MASTER_"))}
        done = subprocess.run(
            [sys.executable, "train.py", *argv, "-wb", "offline", "-pr", "32", "-g", "1"],
            cwd=self.source,
            env={**kept, "OMP_NUM_THREADS": "1", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
            check=False,
        )
        return Ended(done.returncode, done.stdout)

    def load(self, path: Path) -> dict[str, Any]:
        """A checkpoint, with the class of the repository's own that it holds."""
        sys.path.insert(0, str(self.source))
        try:
            return dict(torch.load(path, weights_only=False))
        finally:
            sys.path.pop(0)
            for name in [n for n in sys.modules if n.split(".")[0] == "utils"]:
                del sys.modules[name]


def lowest() -> dict[str, str]:
    """Variables that put the lowest Lightning first; skips where it is not installed."""
    if not (LOWEST / "pytorch_lightning").is_dir():
        assert "AMT_CI" not in os.environ, f"{LOWEST} is not there: make test installs it"
        pytest.skip(f"{LOWEST} is not there: make test installs it")
    return {"PYTHONPATH": str(LOWEST)}


def write(root: Path, lightning: str = "pytorch_lightning", changes: Mapping[str, str] | None = None) -> Trainable:
    """Write it; `lightning` is the package it imports, `changes` replaces text of its files."""
    files = {
        "train.py": TRAIN,
        "config/config.py": CONFIG,
        "config/data_presets.py": PRESETS,
        "model/init_train.py": INIT_TRAIN,
        "model/net.py": NET,
        "utils/loading.py": LOADING,
        "utils/task_manager.py": TASKS,
    }
    for name, text in files.items():
        for old, new in {"LIGHTNING": lightning, **(changes or {})}.items():
            text = text.replace(old, new)  # noqa: PLW2901
        file = root / "amt" / "src" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Trainable(root)
