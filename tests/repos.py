"""Small training repositories to read, and real checkpoints to start from. Nothing of a repository is ever run."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORCED = 'os.environ.get("AMT_FORCE_SCRATCH", "0") == "1"'

HOME_TRAIN = """\
import argparse
import os

import pytorch_lightning as pl
from config import shared_cfg
from data_presets import data_preset_single_cfg


def str2bool(text):
    return text.lower() in ("1", "true", "yes")


parser = argparse.ArgumentParser()
parser.add_argument("exp_id", type=str)
parser.add_argument("-p", "--project", type=str, default="ymt3")
parser.add_argument("-d", "--data-preset", type=str, default="synthetic")
parser.add_argument("-pr", "--precision", type=str, default="bf16-mixed")
parser.add_argument("-it", "--max-steps", type=int, default=-1)
parser.add_argument("-vit", "--val-interval", type=int, default=None)
parser.add_argument("-lr", "--base-learning-rate", type=float, default=None)
parser.add_argument("-o", "--optimizer", type=str, default="adamw")
parser.add_argument("-s", "--scheduler", type=str, default="cosine")
parser.add_argument("-bsz", "--train-batch-size", type=int, nargs=2, default=None)
parser.add_argument("-g", "--num-gpus", type=str, default="auto")
parser.add_argument("-n", "--num-nodes", type=int, default=1)
parser.add_argument("-nw", "--num-workers", type=int, default=None)
parser.add_argument("-ps", "--pitch-shift-range", type=int, nargs=2, default=None)
parser.add_argument("-sb", "--sync-batchnorm", type=str2bool, default=False)
parser.add_argument("-b", "--base-name", type=str, default="t5")
parser.add_argument("--warmup-steps", type=int, default=None)
parser.add_argument("--init-ckpt", type=str, default=None)
parser.add_argument("--monitor", type=str, default=None)
parser.add_argument("--monitor-mode", type=str, default=None, choices=["max", "min"])
parser.add_argument("--save-top-k", type=int, default=None)
parser.add_argument("--save-last", type=str2bool, default=None)
parser.add_argument("--save-dir", type=str, default=None)
parser.add_argument("--logger", type=str, default="csv", choices=["wandb", "csv"])
args = parser.parse_args()

folder = os.path.join(args.save_dir or shared_cfg["WANDB"]["save_dir"], args.project, args.exp_id, "checkpoints")
last = os.path.join(folder, "last.ckpt")
if {forced}:
    last = None
if os.environ.get("AMT_DEBUG_GRAD_FINITE") == "1" or os.environ.get("AMT_DETECT_ANOMALY") == "1":
    print("debugging")

model = pl.LightningModule()
model.log("validation/macro_onset_f", 0.0)
model.log("validation/loss", 0.0)
print(data_preset_single_cfg[args.data_preset], args.base_learning_rate, args.optimizer, args.scheduler)
print(args.train_batch_size, args.num_workers, args.pitch_shift_range, args.warmup_steps, args.init_ckpt, args.logger)
print(args.monitor, args.monitor_mode, args.save_top_k, args.save_last, args.sync_batchnorm, args.val_interval)
trainer = pl.Trainer(max_steps=args.max_steps, precision=args.precision, devices=args.num_gpus, nodes=args.num_nodes)
trainer.fit(model, ckpt_path=last)
trainer.save_checkpoint(os.path.join(folder, "last.ckpt"))
"""

HOME_CONFIG = """\
shared_cfg = {
    "WANDB": {"save_dir": "../logs", "mode": "online"},
    "BSZ": {"train_sub": 12, "train_local": 24},
    "DATAIO": {"num_workers": 4},
    "CHECKPOINT": {"monitor": "validation/macro_onset_f", "mode": "max", "save_top_k": 4, "save_last": True},
    "LR_SCHEDULE": {"warmup_steps": 1000},
    "TRAINER": {"accumulate_grad_batches": 1},
}
"""

# Public YourMT3: a last.ckpt gives its weights only, no flag for a warm start, most values stand in config.py only.
FAMILY_TRAIN = """\
import argparse
import os

import pytorch_lightning as pl
import torch
from config.config import shared_cfg
from config.data_presets import data_preset_single_cfg
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.loggers import WandbLogger
from utils import str2bool

parser = argparse.ArgumentParser()
parser.add_argument("exp_id", type=str)
parser.add_argument("-p", "--project", type=str, default="ymt3")
parser.add_argument("-d", "--data-preset", type=str, default="musicnet")
parser.add_argument("-ps", "--pitch-shift-range", type=int, default=None, nargs=2)
parser.add_argument("-b", "--base-name", type=str, default="google/t5-v1_1-small")
parser.add_argument("-bsz", "--train-batch-size", type=int, default=None, nargs=2)
parser.add_argument("-pr", "--precision", type=str, default="bf16-mixed")
parser.add_argument("-st", "--strategy", type=str, default="auto")
parser.add_argument("-sb", "--sync-batchnorm", type=str2bool, default=False)
parser.add_argument("-it", "--max-steps", type=int, default=-1)
parser.add_argument("-vit", "--val-interval", type=int, default=None)
parser.add_argument("-lr", "--base-learning-rate", type=float, default=None)
parser.add_argument("-o", "--optimizer", type=str, default="AdamWScale")
parser.add_argument("-s", "--scheduler", type=str, default="cosine")
parser.add_argument("-n", "--num-nodes", type=int, default=1)
parser.add_argument("-g", "--num-gpus", type=str, default="auto")
parser.add_argument("-wb", "--wandb-mode", type=str, default=None)
args = parser.parse_args()
print(args.exp_id, args.project, args.data_preset, args.pitch_shift_range, args.train_batch_size, args.precision)
print(args.strategy, args.sync_batchnorm, args.max_steps, args.val_interval, args.base_learning_rate, args.optimizer)
print(args.scheduler, args.num_nodes, args.num_gpus, args.wandb_mode, shared_cfg, data_preset_single_cfg)
logger = WandbLogger(**shared_cfg["WANDB"], project=args.project, id=args.exp_id)
last = os.path.join(shared_cfg["WANDB"]["save_dir"], args.project, args.exp_id, "checkpoints", "last.ckpt")
model = pl.LightningModule()
model.log("validation/macro_onset_f", 0.0)
if os.path.exists(last):
    model.load_state_dict(torch.load(last)["state_dict"], strict=False)
pl.Trainer(logger=logger, callbacks=[ModelCheckpoint(**shared_cfg["CHECKPOINT"])]).fit(model)
"""

FAMILY_CONFIG = """\
shared_cfg = {
    "WANDB": {"save_dir": "../logs", "cache_dir": "../logs/.wandb_cache", "mode": "online"},
    "PATH": {"data_home": "../../data"},
    "BSZ": {"train_sub": 12, "train_local": 24, "validation": 64, "test": 64},
    "DATAIO": {"num_workers": 4, "prefetch_factor": 2, "pin_memory": True, "persistent_workers": False},
    "CHECKPOINT": {
        "monitor": "validation/macro_onset_f",
        "mode": "max",
        "save_top_k": 4,
        "save_last": True,
    },
    "TRAINER": {"accumulate_grad_batches": 1, "gradient_clip_val": 1.0},
    "LR_SCHEDULE": {"warmup_steps": 1000, "total_steps": 100000},
}
"""

PRESETS = """\
data_preset_single_cfg = {
    "synthetic": {"eval_vocab": [None], "dataset_name": "synthetic", "train_split": "train"},
    "musicnet": {"eval_vocab": [None], "dataset_name": "musicnet", "train_split": "train"},
    "guitarset": {"eval_vocab": [None], "dataset_name": "guitarset", "train_split": "train"},
}
data_preset_multi_cfg = {}
"""


def home(root: Path, forced: str = FORCED, changes: Mapping[str, str] | None = None, **modules: str) -> Path:
    """Write a repository of the private home layout; `changes` replaces text of train.py and config.py."""
    train = HOME_TRAIN.replace("{forced}", forced)
    files = {"src/train.py": train, "src/config.py": HOME_CONFIG, "src/data_presets.py": PRESETS}
    return _write(root, {**files, **{f"src/{name}.py": text for name, text in modules.items()}}, changes or {})


def family(root: Path, changes: Mapping[str, str] | None = None) -> Path:
    """Write a repository as the public one is."""
    files = {
        "amt/src/train.py": FAMILY_TRAIN,
        "amt/src/config/config.py": FAMILY_CONFIG,
        "amt/src/config/data_presets.py": PRESETS,
        "amt/src/utils.py": "def str2bool(v):\n    return v.lower() in ('yes', 'true', 't', '1')\n",
    }
    return _write(root, files, changes or {})


def _write(root: Path, files: Mapping[str, str], changes: Mapping[str, str]) -> Path:
    used = set()
    for name, text in files.items():
        for old, new in changes.items():
            if old in text:
                used.add(old)
                text = text.replace(old, new)  # noqa: PLW2901
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    assert used == set(changes), "a change that changes nothing"
    return root


def line_of(file: Path, text: str) -> str:
    """FILE:LINE of the first line that holds `text`, as messages name a place."""
    number = next(n for n, row in enumerate(file.read_text().splitlines(), 1) if text in row)
    return f"{file}:{number}"


def lightning(step: int, score: float | None, weights: bool = True) -> dict[str, Any]:
    """What Lightning saves: enough of it to be told from anything else."""
    import torch

    callback = {
        "monitor": "validation/macro_onset_f",
        "best_model_path": "",
        "best_model_score": None if score is None else torch.tensor(score),
        "current_score": None if score is None else torch.tensor(score),
    }
    return {
        "epoch": 1,
        "global_step": step,
        "pytorch-lightning_version": "2.4.0",
        "state_dict": {"layer.weight": torch.zeros(3, 2)} if weights else {},
        "optimizer_states": [],
        "lr_schedulers": [],
        "callbacks": {"ModelCheckpoint{'monitor': 'validation/macro_onset_f'}": callback},
        "hyper_parameters": {"lr": 1e-3},
    }


class Checkpoints:
    """Real checkpoints by torch.save, each kind written once and copied from then on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, path: Path, step: int = 1000, score: float | None = 0.5, weights: bool = True) -> Path:
        """Put a whole checkpoint at `path`."""
        kind = self.folder / f"{step}-{score}-{weights}.ckpt"
        if not kind.exists():
            import torch

            torch.save(lightning(step, score, weights), kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(kind, path)
        return path

    def cut(self, path: Path, step: int = 1000) -> Path:
        """Put a checkpoint there that a kill cut short: the end of the archive is missing."""
        self(path, step)
        path.write_bytes(path.read_bytes()[:-100])
        return path
