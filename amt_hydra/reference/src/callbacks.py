"""What is added to Lightning's loop: a last.ckpt that is current, a stop that saves, and the search for a NaN."""
# ruff: noqa: ARG002, D102 -- the hooks' names, arguments and meaning are Lightning's

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import lightning.pytorch as pl
import torch
from errors import RunError


class LastCheckpoint(pl.callbacks.Checkpoint):
    """Keeps last.ckpt a whole, real and current file: after each validation, at the end, and when told to stop.

    ModelCheckpoint(save_last=True) writes it only beside a top-k save from Lightning 2.6 on, so that it freezes on a
    plateau; and on a resume it may write last-v1.ckpt instead. This one is written aside and then moved into place.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "last.ckpt"

    def save(self, trainer: pl.Trainer) -> None:
        """Write last.ckpt, on all ranks at once."""
        part = self.path.with_suffix(".part")
        trainer.save_checkpoint(part)
        if trainer.is_global_zero:
            os.replace(part, self.path)  # noqa: PTH105 -- replaces a link too, and never what it points at

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.save(trainer)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.save(trainer)


class NoRepeatedValidation(pl.Callback):
    """Goes on with training where a checkpoint was saved at a validation.

    Lightning before 2.5 repeats such a validation on a resume, and with a part of the recordings only.
    """

    interval: Any = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.global_step > 0:
            self.interval, trainer.val_check_batch = trainer.val_check_batch, sys.maxsize

    def on_train_batch_start(self, trainer: pl.Trainer, *args: Any) -> None:
        if self.interval is not None:
            trainer.val_check_batch, self.interval = self.interval, None


class StopOnSignal(pl.Callback):
    """Ends the run after the current step on SIGTERM or Ctrl-C, with last.ckpt written; a second Ctrl-C kills."""

    def __init__(self, last: LastCheckpoint | None) -> None:
        self.last, self.received = last, 0

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Remember the signal. SIGTERM may come twice, from Slurm and from who started this: SIGKILL follows anyway."""
        self.received = number
        if number == signal.SIGINT:
            signal.signal(number, signal.SIG_DFL)

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.receive)

    def on_train_batch_end(self, trainer: pl.Trainer, *args: Any) -> None:
        if trainer.strategy.reduce_boolean_decision(bool(self.received), all=False):  # one rank's signal stops them all
            if self.last:
                self.last.save(trainer)
            name = signal.Signals(self.received or signal.SIGTERM)
            raise RunError(f"stopped by {name.name} after step {trainer.global_step}", code=128 + name)


class GradFinite(pl.Callback):
    """AMT_DEBUG_GRAD_FINITE: stops at the first parameter whose value or gradient is not finite, and names it."""

    def on_before_optimizer_step(self, trainer: pl.Trainer, pl_module: pl.LightningModule, *args: Any) -> None:
        scaled = trainer.precision == "16-mixed"  # its scaler meets overflows, skips those steps, and is right to
        for name, parameter in pl_module.named_parameters():
            if not torch.isfinite(parameter).all():  # first, since one bad value makes every gradient bad
                found = "value"
            elif not scaled and parameter.grad is not None and not torch.isfinite(parameter.grad).all():
                found = "gradient"
            else:
                continue
            step = trainer.global_step + 1
            raise RunError(f"AMT_DEBUG_GRAD_FINITE: non-finite {found} of parameter {name} at step {step}", code=1)
