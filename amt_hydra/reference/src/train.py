"""Train a melody transcriber: python train.py EXP_ID [flags]. Defaults stand in config.py, data in data_presets.py."""

import argparse
import logging
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

from config import audio_cfg, base_lr, model_cfg, monitors, shared_cfg
from data_presets import data_preset_multi_cfg, data_preset_single_cfg
from errors import RunError

bsz, training, checkpoint = shared_cfg["BSZ"], shared_cfg["TRAINER"], shared_cfg["CHECKPOINT"]
dataio, schedule, wandb = shared_cfg["DATAIO"], shared_cfg["LR_SCHEDULE"], shared_cfg["WANDB"]
presets = data_preset_single_cfg | data_preset_multi_cfg
# What Lightning says at each start and nobody can act on.
NOISE = (
    r".*(does not have many workers|dataloader is not resumable|isinstance\(treespec|exists and is not empty"
    r"|ended before the epoch ended|pkg_resources is deprecated|`srun` command is available)"
)


def str2bool(text: str) -> bool:
    """Return the truth value of a flag's text; any other text is argparse's to refuse."""
    return ("false", "true").index(text.lower()) == 1


# fmt: off
parser = argparse.ArgumentParser(prog="train.py", usage="train.py EXP_ID [flags]; -h lists them",
                                 formatter_class=argparse.ArgumentDefaultsHelpFormatter)
parser.add_argument("exp_id", type=str, help="name of the run: its folder is SAVE_DIR/PROJECT/EXP_ID")
parser.add_argument("-p", "--project", type=str, default="melody", help="folder above the run's, and the W&B project")
parser.add_argument("-d", "--data-preset", type=str, default="synthetic", choices=list(presets), help="training data")
parser.add_argument("-bsz", "--train-batch-size", type=int, nargs=2, default=[bsz["train_sub"], bsz["train_local"]],
                    metavar=("SUB", "LOCAL"), help="LOCAL clips per device and step; SUB must divide LOCAL and does "
                                                   "nothing more here, where one loader yields the whole local batch")
parser.add_argument("-pr", "--precision", type=str, default=training["precision"], help="32, bf16-mixed, 16-mixed")
parser.add_argument("-st", "--strategy", type=str, default="auto", help="Lightning's: auto, ddp")
parser.add_argument("-sb", "--sync-batchnorm", type=str2bool, default=False, help="share batch statistics between GPUs")
parser.add_argument("-e", "--max-epochs", type=int, default=training["max_epochs"], help="-1: no limit")
parser.add_argument("-it", "--max-steps", type=int, default=training["max_steps"],
                    help="optimizer steps in all, those before a resume included; the cosine ends here; -1: no limit")
parser.add_argument("-vit", "--val-interval", type=int, default=training["val_check_interval"], help="in steps")
parser.add_argument("-lr", "--base-learning-rate", type=float, default=None, help="peak; else base_lr of the optimizer")
parser.add_argument("-o", "--optimizer", type=str.lower, default=shared_cfg["OPTIMIZER"]["name"], choices=list(base_lr))
parser.add_argument("-s", "--scheduler", type=str.lower, default=schedule["scheduler"], choices=["cosine", "constant"])
parser.add_argument("-n", "--num-nodes", type=int, default=1, help="machines")
parser.add_argument("-g", "--num-gpus", type=str, default="auto", help="auto or a number: GPUs, else CPU processes")
parser.add_argument("-wb", "--wandb-mode", type=str, default=os.environ.get("WANDB_MODE", wandb["mode"]),
                    choices=["online", "offline", "disabled"])
parser.add_argument("-nw", "--num-workers", type=int, default=dataio["num_workers"], help="loader processes per device")
parser.add_argument("--init-ckpt", type=str, default=None, help="checkpoint whose weights alone are taken (warm-start)")
parser.add_argument("--warmup-steps", type=int, default=schedule["warmup_steps"], help="of a linear rise to the peak")
parser.add_argument("--save-top-k", type=int, default=checkpoint["save_top_k"], help="best checkpoints kept; -1: all")
parser.add_argument("--monitor", type=str, default=checkpoint["monitor"], choices=monitors, help="what says which")
parser.add_argument("--monitor-mode", type=str, default=checkpoint["mode"], choices=["max", "min"])
parser.add_argument("--save-last", type=str2bool, default=checkpoint["save_last"], help="from which a run resumes")
parser.add_argument("--accumulate", type=int, default=training["accumulate_grad_batches"], help="batches per step")
parser.add_argument("--save-dir", type=str, default=wandb["save_dir"], help="where runs are kept, relative to the cwd")
parser.add_argument("--data-home", type=str, default=dataio["data_home"], help="of NAME.wav by NAME*.csv or .mid")
parser.add_argument("--val-clips", type=int, default=None, help="synthetic validation melodies; else the preset's")
parser.add_argument("--seed", type=int, default=training["seed"], help="of weights and the stream of clips")
parser.add_argument("--logger", type=str, default=wandb["logger"], choices=["auto", "wandb", "csv"],
                    help="auto, wandb: W&B where it has credentials; metrics.csv is written in any case")
# fmt: on


def settle(args: argparse.Namespace) -> None:
    """Check what argparse cannot, and add what follows from it: batch_local, total_steps, base_learning_rate."""
    sub, args.batch_local = args.train_batch_size
    if min(sub, args.batch_local, args.val_interval, args.accumulate) < 1 or args.batch_local % sub:
        raise RunError("SUB, LOCAL, --val-interval and --accumulate must be at least 1, and LOCAL a multiple of SUB")
    limits = [args.max_steps, args.max_epochs * dataio["steps_per_epoch"]]
    args.total_steps = min((limit for limit in limits if limit > 0), default=0)
    if not args.total_steps:
        raise RunError("one of --max-steps and --max-epochs must set an end")
    if Path(args.exp_id).name != args.exp_id:
        raise RunError(f"exp_id {args.exp_id!r}: not a plain folder name")
    if args.base_learning_rate is None:
        args.base_learning_rate = base_lr[args.optimizer]


def switched_on(variable: str) -> bool:
    """Say whether an environment variable is set to anything but 0."""
    return os.environ.get(variable, "0") not in ("", "0")


def identity(init_ckpt: str | None, last: Path) -> str:
    """Return what this run is: scratch, resume or warm-start. Three facts decide, in this order."""
    if switched_on("AMT_FORCE_SCRATCH"):
        return "scratch"
    if os.path.lexists(last):  # a link whose target is gone is an error later, not a fresh start
        return "resume"
    return "warm-start" if init_ckpt else "scratch"


def announce(args: argparse.Namespace, kind: str, last: Path, detail: str) -> None:
    """Print the one line that says what the run is, and what it passes over."""
    unused = [str(last)] if kind != "resume" and last.exists() else []
    if kind != "warm-start" and args.init_ckpt:
        unused.append(f"--init-ckpt {args.init_ckpt}")
    forced = "; AMT_FORCE_SCRATCH is on" if switched_on("AMT_FORCE_SCRATCH") else ""
    print(f"identity: {kind} ({detail}{forced}{'; not used: ' if unused else ''}{', '.join(unused)})", flush=True)


def move_aside(*paths: Path) -> None:
    """Rename what an earlier run left, so that a new one neither mixes with it nor destroys it."""
    for path in paths:
        if os.path.lexists(path):
            path.rename(f"{path}.{time.strftime('%Y%m%d-%H%M%S')}")


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return a checkpoint's contents; plain values only, so that nothing in it can run."""
    import torch

    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a cut or foreign file fails in as many ways as there are formats
        raise RunError(f"{path}: no checkpoint that can be read ({type(error).__name__})") from error
    return content


def warm_start(module: Any, path: Path) -> str:
    """Load the weights that match by name into the module and return the counts; shapes must agree."""
    theirs, ours = read_checkpoint(path).get("state_dict", {}), module.state_dict()
    matched = {name: theirs[name] for name in ours if name in theirs}
    if not matched:
        raise RunError(f"{path}: none of its {len(theirs)} tensors matches one of this model's {len(ours)}")
    for name, tensor in matched.items():
        if tensor.shape != ours[name].shape:
            raise RunError(f"{path}: {name} is {tuple(tensor.shape)} there and {tuple(ours[name].shape)} here")
    module.load_state_dict(matched, strict=False)
    return f"{len(matched)} tensors matched, {len(ours) - len(matched)} missing, {len(theirs) - len(matched)} unused"


def make_trainer(args: argparse.Namespace, folder: Path, loggers: list[Any]) -> Any:
    """Return Lightning's trainer for the run whose folder this is."""
    import lightning.pytorch as pl
    from callbacks import GradFinite, LastCheckpoint, NoRepeatedValidation, StopOnSignal
    from lightning.pytorch.callbacks import ModelCheckpoint, TQDMProgressBar

    best = ModelCheckpoint(
        dirpath=folder / "checkpoints",
        monitor=args.monitor,
        mode=args.monitor_mode,
        save_top_k=args.save_top_k,
        save_last=False,  # LastCheckpoint's task
        save_on_train_epoch_end=False,
        enable_version_counter=False,
    )
    last = LastCheckpoint(folder / "checkpoints") if args.save_last else None
    bar = TQDMProgressBar(refresh_rate=5 if sys.stdout.isatty() else 100)
    callbacks = [bar, NoRepeatedValidation(), StopOnSignal(last), best, *([last] if last else [])]
    if switched_on("AMT_DEBUG_GRAD_FINITE"):
        callbacks.append(GradFinite())
    try:
        return pl.Trainer(
            devices=args.num_gpus,
            num_nodes=args.num_nodes,
            strategy=args.strategy,
            sync_batchnorm=args.sync_batchnorm,
            precision=args.precision,
            max_steps=args.total_steps,
            max_epochs=-1,
            val_check_interval=args.val_interval * args.accumulate,
            check_val_every_n_epoch=None,
            accumulate_grad_batches=args.accumulate,
            gradient_clip_val=training["gradient_clip_val"],
            log_every_n_steps=training["log_every_n_steps"],
            detect_anomaly=switched_on("AMT_DETECT_ANOMALY"),
            num_sanity_val_steps=0,
            use_distributed_sampler=False,  # the stream already deals clips out by rank
            reload_dataloaders_every_n_epochs=1,  # an epoch's clips follow from the step at which it starts
            logger=loggers,
            callbacks=callbacks,
            enable_model_summary=False,
        )
    except Exception as error:  # a precision, a strategy or a number of devices that cannot be
        raise RunError(str(error)) from error


def run(args: argparse.Namespace) -> None:
    """Train: work out the identity, build the parts, say what the run is, fit."""
    import lightning.pytorch as pl
    import torch
    from data import Melodies
    from lightning.pytorch.utilities import rank_zero_only
    from loggers import make_loggers
    from model import Transcriber

    logging.disable(logging.INFO)
    folder = (Path(args.save_dir) / args.project / args.exp_id).resolve()
    last = folder / "checkpoints" / "last.ckpt"
    kind, step, detail = identity(args.init_ckpt, last), 0, "weights drawn from the seed"
    if kind == "resume":
        step = int(read_checkpoint(last)["global_step"])
        detail = f"continues {last} at step {step}"
        if step >= args.total_steps:
            raise RunError(f"{last} is at step {step}, the run ends at {args.total_steps}: nothing to train", code=65)
    if not torch.cuda.is_available():
        if args.sync_batchnorm:
            raise RunError("--sync-batchnorm: PyTorch shares batch statistics between GPUs only, and none is here")
        # Leave a core to each loader process: threads beyond the cores only wait for one another.
        torch.set_num_threads(max(1, torch.get_num_threads() - args.num_workers))

    pl.seed_everything(args.seed, workers=True)
    module = Transcriber(
        audio_cfg,
        model_cfg,
        optimizer=args.optimizer,
        learning_rate=args.base_learning_rate,
        weight_decay=shared_cfg["OPTIMIZER"]["weight_decay"],
        scheduler=args.scheduler,
        warmup_steps=args.warmup_steps,
        total_steps=args.total_steps,
    )
    if kind == "warm-start":
        detail = f"weights of {args.init_ckpt}: {warm_start(module, Path(args.init_ckpt))}"
    data = Melodies(
        presets[args.data_preset], args.data_home, args.val_clips, args.seed, args.batch_local, args.num_workers
    )
    trainer = make_trainer(args, folder, make_loggers(args.logger, args.wandb_mode, args.project, folder, step))
    rank_zero_only(announce)(args, kind, last, detail)
    if kind != "resume":
        rank_zero_only(move_aside)(last.parent, folder / "metrics.csv")
    trainer.fit(module, datamodule=data, ckpt_path=last if kind == "resume" else None)
    if "wandb" in sys.modules:
        sys.modules["wandb"].finish()  # here, since it has been seen to hang when the interpreter exits
    best = trainer.checkpoint_callback
    rank_zero_only(print)(f"finished: step {trainer.global_step}, best {best.monitor} {best.best_model_score or 0:.4f}")
    rank_zero_only(print)(f"best checkpoint: {best.best_model_path or 'none: no validation took place'}")


def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 -- a handler's signature
    """End at a signal before training, where nothing is to be saved: an exception could get lost in torch's import."""
    os.write(2, f"train.py: error: stopped by {signal.Signals(number).name} before training\n".encode())
    os._exit(128 + number)


def main() -> int:
    """Run, and return the exit status: problems that the user can act on end in one line."""
    for number in (signal.SIGTERM, signal.SIGINT):  # until StopOnSignal takes over
        signal.signal(number, stop)
    warnings.filterwarnings("ignore", message=NOISE)
    args = parser.parse_args()
    try:
        settle(args)
        run(args)
    except RunError as failure:
        print(f"train.py: error: {failure}", file=sys.stderr, flush=True)
        return failure.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
