"""Callbacks of the package that train.py itself uses, added to its Trainer."""

from __future__ import annotations

import os
from typing import Any

from . import gradients, weights
from .session import Session, is_on


def made(session: Session, package: Any, trainer: Any, model: Any) -> Any:
    """Return the callbacks that the plan asks for, and make way for them."""
    found = []
    if session.arguments("warmstart") is not None:
        found.append(_warmstart(session, package, weights.names(model)))
    if session.arguments("grad_finite") is not None:
        session.pending.discard("grad_finite")
        if is_on("AMT_DEBUG_GRAD_FINITE"):
            session.report("patched", what="grad_finite", detail="on_before_optimizer_step")
            session.say("grad_finite: the first parameter with a gradient that is not finite ends the run")
            found.append(_grad_finite(session, package))
    if session.arguments("last") is not None:
        found.append(_last(session, package, trainer))
    return found


def _warmstart(session: Session, package: Any, before: Any) -> Any:
    class WarmStart(package.callbacks.Callback):
        """Loads where modules that setup() makes are there, and before anything is trained."""

        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            weights.load(session, trainer, pl_module, before)

    return WarmStart()


def _grad_finite(session: Session, package: Any) -> Any:
    class GradFinite(package.callbacks.Callback):
        """Looks before the clipping, which spreads one bad value over all gradients."""

        def __init__(self) -> None:
            self.watch = gradients.Watch(session.rank)

        def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
            self.watch.look(trainer, pl_module)

    return GradFinite()


def _last(session: Session, package: Any, trainer: Any) -> Any:
    own = package.callbacks.ModelCheckpoint
    for callback in trainer.callbacks:
        if isinstance(callback, own):
            callback.save_last = False  # frozen on a plateau, a link, or last-v1: whatever it is in this version

    class Last(package.callbacks.Checkpoint):
        """Keeps last.ckpt a real file and current. Lightning runs checkpoint callbacks last, in their order."""

        def __init__(self) -> None:
            self.step = None
            self.folder = session.checkpoints

        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            folders = [c.dirpath for c in trainer.callbacks if isinstance(c, own) and c.dirpath]
            if folders and os.path.realpath(str(folders[0])) != os.path.realpath(session.checkpoints):
                session.refuse(
                    "checkpoints would go to %s, and the plan looks for them in %s: name the place with repo.runs or "
                    "repo.checkpoints" % (os.path.realpath(str(folders[0])), session.checkpoints)
                )
            session.done("last", "last.ckpt in %s is kept current" % self.folder)

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            if not trainer.sanity_checking and trainer.state.fn == "fit":
                self._save(trainer)

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            self._save(trainer)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            self._save(trainer)

        def _save(self, trainer: Any) -> None:
            if trainer.global_step == self.step or getattr(trainer, "fast_dev_run", False):
                return
            last = os.path.join(self.folder, "last.ckpt")
            part = last + ".part"
            trainer.save_checkpoint(part)  # on every rank: Lightning decides who writes
            if trainer.is_global_zero:
                if os.path.isdir(part):
                    session.refuse("%s is a folder: this strategy writes sharded checkpoints" % part)
                os.replace(part, last)
            self.step = trainer.global_step

    return Last()
