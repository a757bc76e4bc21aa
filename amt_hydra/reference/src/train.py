"""Train a melody transcriber: python train.py EXP_ID [flags]. Defaults stand in config.py, data in data_presets.py."""

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from config import audio_cfg, base_lr, model_cfg, shared_cfg
from data_presets import data_preset_multi_cfg, data_preset_single_cfg
from errors import RunError


def str2bool(text: str) -> bool:
    """Return the truth value of a flag's text."""
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise argparse.ArgumentTypeError(f"expected true or false, found {text!r}")


# fmt: off
parser = argparse.ArgumentParser(prog="train.py", description="Train a melody transcriber.")
parser.add_argument("exp_id", type=str, help="name of the run: its folder is SAVE_DIR/PROJECT/EXP_ID")
parser.add_argument("-p", "--project", type=str, default="melody", help="folder above the run's, and the W&B project")
parser.add_argument("-d", "--data-preset", type=str, default="synthetic", help="of data_presets.py: synthetic, folder")
parser.add_argument("-bsz", "--train-batch-size", type=int, nargs=2, default=None, metavar=("SUB", "LOCAL"),
                    help="LOCAL clips per device and step; SUB must divide LOCAL and does nothing more here, where "
                         "one loader yields the whole local batch")
parser.add_argument("-pr", "--precision", type=str, default=None, help="Lightning's: 32, bf16-mixed, 16-mixed")
parser.add_argument("-st", "--strategy", type=str, default="auto", help="Lightning's: auto, ddp")
parser.add_argument("-sb", "--sync-batchnorm", type=str2bool, default=False, help="share batch statistics between GPUs")
parser.add_argument("-e", "--max-epochs", type=int, default=None, help="of DATAIO.steps_per_epoch steps; -1: no limit")
parser.add_argument("-it", "--max-steps", type=int, default=None,
                    help="optimizer steps in all, those before a resume included; the cosine ends here; -1: no limit")
parser.add_argument("-vit", "--val-interval", type=int, default=None, help="optimizer steps between validations")
parser.add_argument("-lr", "--base-learning-rate", type=float, default=None, help="peak; else base_lr of the optimizer")
parser.add_argument("-o", "--optimizer", type=str, default=None, help="adamw, adamwscale, adafactor; in any case")
parser.add_argument("-s", "--scheduler", type=str, default=None, help="cosine, constant; after a linear warm-up")
parser.add_argument("-n", "--num-nodes", type=int, default=1, help="machines")
parser.add_argument("-g", "--num-gpus", type=str, default="auto", help="auto or a number: GPUs, else CPU processes")
parser.add_argument("-wb", "--wandb-mode", type=str, default=None, help="online, offline, disabled; else WANDB_MODE")
parser.add_argument("-nw", "--num-workers", type=int, default=None, help="loader processes per device; 0: none")
parser.add_argument("--init-ckpt", type=str, default=None, help="checkpoint whose weights alone are taken (warm-start)")
parser.add_argument("--warmup-steps", type=int, default=None, help="optimizer steps of linear warm-up")
parser.add_argument("--save-top-k", type=int, default=None, help="best checkpoints kept; -1: all")
parser.add_argument("--monitor", type=str, default=None, help="figure that says which are best")
parser.add_argument("--monitor-mode", type=str, default=None, choices=["max", "min"], help="which way it is better")
parser.add_argument("--save-last", type=str2bool, default=None, help="keep last.ckpt, from which a run resumes")
parser.add_argument("--accumulate", type=int, default=None, help="batches per optimizer step")
parser.add_argument("--save-dir", type=str, default=None, help="where runs are kept, relative to the cwd")
parser.add_argument("--data-home", type=str, default=None, help="of the preset folder: NAME.wav by NAME*.csv or .mid")
parser.add_argument("--val-clips", type=int, default=None, help="synthetic validation melodies; else the preset's")
parser.add_argument("--seed", type=int, default=None, help="of the weights and of the stream of training clips")
parser.add_argument("--logger", type=str, default=None, choices=["auto", "wandb", "csv"],
                    help="auto: W&B where it has credentials; metrics.csv is written in any case")
# fmt: on

# The dictionary's entry that a flag overrides when it is given.
OVERRIDES = {
    "num_workers": ("DATAIO", "num_workers"),
    "data_home": ("DATAIO", "data_home"),
    "monitor": ("CHECKPOINT", "monitor"),
    "monitor_mode": ("CHECKPOINT", "mode"),
    "save_top_k": ("CHECKPOINT", "save_top_k"),
    "save_last": ("CHECKPOINT", "save_last"),
    "max_steps": ("TRAINER", "max_steps"),
    "max_epochs": ("TRAINER", "max_epochs"),
    "val_interval": ("TRAINER", "val_check_interval"),
    "accumulate": ("TRAINER", "accumulate_grad_batches"),
    "precision": ("TRAINER", "precision"),
    "seed": ("TRAINER", "seed"),
    "optimizer": ("OPTIMIZER", "name"),
    "scheduler": ("LR_SCHEDULE", "scheduler"),
    "warmup_steps": ("LR_SCHEDULE", "warmup_steps"),
    "save_dir": ("WANDB", "save_dir"),
    "logger": ("WANDB", "logger"),
    "wandb_mode": ("WANDB", "mode"),
}


def settle(args: argparse.Namespace) -> argparse.Namespace:
    """Return the arguments with every default filled in and every value checked."""
    from evaluate import METRICS
    from optimizers import OPTIMIZERS, SCHEDULERS

    args.wandb_mode = args.wandb_mode or os.environ.get("WANDB_MODE")
    for flag, (section, key) in OVERRIDES.items():
        if getattr(args, flag) is None:
            setattr(args, flag, shared_cfg[section][key])
    args.optimizer, args.scheduler = args.optimizer.lower(), args.scheduler.lower()
    one_of("--data-preset", args.data_preset, [*data_preset_single_cfg, *data_preset_multi_cfg])
    one_of("--optimizer", args.optimizer, OPTIMIZERS)
    one_of("--scheduler", args.scheduler, SCHEDULERS)
    one_of("--monitor", args.monitor, METRICS)
    one_of("--wandb-mode", args.wandb_mode, ("online", "offline", "disabled"))
    if args.base_learning_rate is None:
        args.base_learning_rate = base_lr[args.optimizer]
    sub, args.local = args.train_batch_size or (shared_cfg["BSZ"]["train_sub"], shared_cfg["BSZ"]["train_local"])
    if min(sub, args.local) < 1 or args.local % sub:
        raise RunError(f"--train-batch-size {sub} {args.local}: LOCAL must be a multiple of SUB, both at least 1")
    if min(args.val_interval, args.accumulate) < 1:
        raise RunError(f"--val-interval {args.val_interval} --accumulate {args.accumulate}: both must be at least 1")
    if args.num_gpus != "auto" and not args.num_gpus.isdecimal():
        raise RunError(f"--num-gpus {args.num_gpus!r}: neither auto nor a number")
    limits = [args.max_steps, args.max_epochs * shared_cfg["DATAIO"]["steps_per_epoch"]]
    args.total_steps = min((limit for limit in limits if limit > 0), default=0)
    if not args.total_steps:
        raise RunError(f"--max-steps {args.max_steps} --max-epochs {args.max_epochs}: one of them must set an end")
    if Path(args.exp_id).name != args.exp_id:
        raise RunError(f"exp_id {args.exp_id!r}: not a plain folder name")
    return args


def one_of(flag: str, value: str, known: Any) -> None:
    """Refuse a value that is not known, listing those that are."""
    if value not in known:
        raise RunError(f"{flag} {value!r}: not one of {', '.join(known)}")


def identity(init_ckpt: str | None, last: Path) -> str:
    """Return what this run is: scratch, resume or warm-start. Three facts decide, in this order."""
    if os.environ.get("AMT_FORCE_SCRATCH", "0") not in ("", "0"):
        return "scratch"
    if last.exists() or last.is_symlink():  # a link whose target is gone is an error later, not a fresh start
        return "resume"
    return "warm-start" if init_ckpt else "scratch"


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return a checkpoint's contents; plain values only, so that nothing in it can run."""
    import torch

    if not path.exists():
        raise RunError(f"{path}: no such checkpoint")
    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a cut or foreign file fails in as many ways as there are formats
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise RunError(f"{path}: not a checkpoint that can be read ({reason[0]})") from error
    return content


def warm_start(module: Any, path: Path) -> str:
    """Load the weights that match by name into the module and return the counts; shapes must agree."""
    theirs = read_checkpoint(path).get("state_dict", {})
    ours = module.state_dict()
    matched = [name for name in ours if name in theirs]
    for name in matched:
        if ours[name].shape != theirs[name].shape:
            raise RunError(f"{path}: {name} is {tuple(theirs[name].shape)} there and {tuple(ours[name].shape)} here")
    if not matched:
        raise RunError(f"{path}: none of its {len(theirs)} tensors matches one of this model's {len(ours)}")
    module.load_state_dict({name: theirs[name] for name in matched}, strict=False)
    return f"{len(matched)} tensors matched, {len(ours) - len(matched)} missing, {len(theirs) - len(matched)} unused"


def move_aside(path: Path) -> None:
    """Rename what an earlier run left, so that a new one neither mixes with it nor destroys it."""
    if path.exists() or path.is_symlink():
        number = 1
        while (target := path.with_name(f"{path.name}.old-{number}")).exists():
            number += 1
        path.rename(target)
        print(f"identity: moved {path} to {target.name}")


def make_callbacks(args: argparse.Namespace, folder: Path) -> list[Any]:
    """Return the checkpoint callbacks, the stop on a signal, the progress bar, and the NaN search if asked for."""
    from callbacks import GradFinite, LastCheckpoint, NoRepeatedValidation, StopOnSignal
    from lightning.pytorch.callbacks import ModelCheckpoint, TQDMProgressBar

    best = ModelCheckpoint(
        dirpath=folder,
        monitor=args.monitor,
        mode=args.monitor_mode,
        save_top_k=args.save_top_k,
        save_last=False,  # LastCheckpoint's task
        save_on_train_epoch_end=False,
        enable_version_counter=False,
    )
    last = LastCheckpoint(folder) if args.save_last else None
    bar = TQDMProgressBar(refresh_rate=5 if sys.stdout.isatty() else 100)
    callbacks = [bar, NoRepeatedValidation(), StopOnSignal(last), best, *([last] if last else [])]
    if os.environ.get("AMT_DEBUG_GRAD_FINITE", "0") not in ("", "0"):
        callbacks.append(GradFinite())
    return callbacks


def make_module(args: argparse.Namespace) -> Any:
    """Return the model with weights drawn from the seed."""
    import lightning.pytorch as pl
    from model import Transcriber

    pl.seed_everything(args.seed, workers=True)
    training = {
        "optimizer": args.optimizer,
        "learning_rate": args.base_learning_rate,
        "weight_decay": shared_cfg["OPTIMIZER"]["weight_decay"],
        "scheduler": args.scheduler,
        "warmup_steps": args.warmup_steps,
        "total_steps": args.total_steps,
        "log_every_n_steps": shared_cfg["TRAINER"]["log_every_n_steps"],
    }
    return Transcriber(audio_cfg, model_cfg, training)


def make_data(args: argparse.Namespace, say: bool) -> Any:
    """Return the preset's loaders; `say` prints which recordings were found."""
    from data import Melodies

    preset = (data_preset_single_cfg | data_preset_multi_cfg)[args.data_preset]
    cfg = shared_cfg["DATAIO"] | {
        "local": args.local,
        "accumulate": args.accumulate,
        "num_workers": args.num_workers,
        "seed": args.seed,
        "data_home": args.data_home,
        "val_clips": args.val_clips,
        "say": say,
    }
    return Melodies(preset, cfg, audio_cfg, model_cfg)


def make_trainer(args: argparse.Namespace, folder: Path, loggers: list[Any]) -> Any:
    """Return Lightning's trainer for the run whose folder this is."""
    import lightning.pytorch as pl

    return pl.Trainer(
        accelerator="auto",
        devices=args.num_gpus if args.num_gpus == "auto" else int(args.num_gpus),
        num_nodes=args.num_nodes,
        strategy=args.strategy,
        sync_batchnorm=args.sync_batchnorm,
        precision=args.precision,
        max_steps=args.max_steps,
        max_epochs=args.max_epochs,
        val_check_interval=args.val_interval * args.accumulate,
        check_val_every_n_epoch=None,
        accumulate_grad_batches=args.accumulate,
        gradient_clip_val=shared_cfg["TRAINER"]["gradient_clip_val"],
        detect_anomaly=os.environ.get("AMT_DETECT_ANOMALY", "0") not in ("", "0"),
        num_sanity_val_steps=0,
        use_distributed_sampler=False,  # the stream already deals clips out by rank
        logger=loggers,
        callbacks=make_callbacks(args, folder / "checkpoints"),
        default_root_dir=folder,
        enable_model_summary=False,
    )


def run(args: argparse.Namespace) -> None:
    """Train: work out the identity, build the parts, say what the run is, fit."""
    folder = (Path(args.save_dir) / args.project / args.exp_id).resolve()
    last = folder / "checkpoints" / "last.ckpt"
    kind = identity(args.init_ckpt, last)
    step = int(read_checkpoint(last)["global_step"]) if kind == "resume" else 0
    if kind == "resume" and step >= args.total_steps:
        raise RunError(f"{last} is at step {step}, and the run ends at {args.total_steps}: nothing to train", code=65)

    import torch
    from lightning.pytorch.utilities import rank_zero_only
    from loggers import make_loggers

    if not torch.cuda.is_available():
        if args.sync_batchnorm:
            raise RunError("--sync-batchnorm: PyTorch can share batch statistics between GPUs only, and none is here")
        # Leave a core to each loader process: threads beyond the cores only wait for one another.
        torch.set_num_threads(max(1, torch.get_num_threads() - args.num_workers))
    module, first_rank = make_module(args), getattr(rank_zero_only, "rank", 0) == 0
    counts = warm_start(module, Path(args.init_ckpt)) if kind == "warm-start" else ""
    data = make_data(args, say=first_rank)
    if first_rank:
        announce(kind, step, counts, args, last)
        if kind != "resume":
            move_aside(folder / "checkpoints")
            move_aside(folder / "metrics.csv")
    loggers = make_loggers(args.logger, args.wandb_mode, args.project, folder, step)
    trainer = make_trainer(args, folder, loggers)
    trainer.fit(module, datamodule=data, ckpt_path=str(last) if kind == "resume" else None)
    if "wandb" in sys.modules:
        sys.modules["wandb"].finish()  # here, since it has been seen to hang when the interpreter exits
    if first_rank:
        report(trainer, last.parent)


def announce(kind: str, step: int, counts: str, args: argparse.Namespace, last: Path) -> None:
    """Print the one line that says what the run is, and what it passes over."""
    how = {
        "scratch": "weights drawn from the seed",
        "resume": f"continues {last} at step {step}",
        "warm-start": f"weights of {args.init_ckpt}, {counts}",
    }[kind]
    if kind == "resume" and args.init_ckpt:
        how += f"; last.ckpt comes first, so --init-ckpt {args.init_ckpt} is not used"
    if os.environ.get("AMT_FORCE_SCRATCH", "0") not in ("", "0"):
        left = [f"--init-ckpt {args.init_ckpt}"] * bool(args.init_ckpt) + [str(last)] * last.exists()
        how += "; AMT_FORCE_SCRATCH is on" + (f", so {' and '.join(left)} is not used" if left else "")
    print(f"identity: {kind} ({how})", flush=True)


def report(trainer: Any, folder: Path) -> None:
    """Print the run's result."""
    best = trainer.checkpoint_callback
    score = "none" if best.best_model_score is None else f"{float(best.best_model_score):.4f}"
    print(f"finished: step {trainer.global_step}, best {best.monitor} {score}")
    print(f"best checkpoint: {best.best_model_path or 'none: no validation took place'}")
    print(f"checkpoints: {folder}")


def main() -> int:
    """Run, and return the exit status: problems that the user can act on end in one line."""
    warnings.filterwarnings("ignore", message=".*(does not have many workers|Consider setting `persistent_workers).*")
    warnings.filterwarnings("ignore", message=".*dataloader is not resumable.*")  # ours continues by the step
    try:
        run(settle(parser.parse_args()))
    except RunError as failure:
        print(f"train.py: error: {failure}", file=sys.stderr, flush=True)
        return failure.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
