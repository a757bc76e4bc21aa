"""Callbacks of the package that train.py itself uses, added to its Trainer."""

from __future__ import annotations

import os
from typing import Any

from . import gradients, weights
from .session import Session, is_on


def made(session: Session, package: Any, model: Any) -> Any:
    """Return the callbacks that the plan asks for."""
    found = [_begins(session, package)]
    if session.arguments("warmstart") is not None:
        found.append(_warmstart(session, package, weights.names(model)))
    if session.arguments("grad_finite") is not None:
        session.pending.discard("grad_finite")
        if is_on("AMT_DEBUG_GRAD_FINITE"):
            session.report("patched", what="grad_finite", detail="on_before_optimizer_step")
            session.say("grad_finite: the first parameter with a gradient that is not finite ends the run")
            found.append(_grad_finite(session, package))
    if session.arguments("last") is not None:
        found.append(_last(session, package))
    return found


def _begins(session: Session, package: Any) -> Any:
    class Begins(package.callbacks.Callback):
        """Refuses a training that lacks a part of the plan: now, and not when it is over."""

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            missing = session.never_applied()
            _ = trainer.callback_metrics  # reduced here, as in Last: no collective meets another
            if trainer.strategy.reduce_boolean_decision(bool(missing), all=False):
                session.refuse_pending("the training begins")
                session.refuse("the training begins, and another rank lacks a part of the plan: look at its lines")

    return Begins()


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


def _last(session: Session, package: Any) -> Any:
    own = package.callbacks.ModelCheckpoint
    last = os.path.join(session.checkpoints, "last.ckpt")

    class Last(package.callbacks.Checkpoint):
        """Keeps last.ckpt a real file and current: with the step, and with what every ModelCheckpoint knows by then."""

        # It is among trainer.checkpoint_callbacks: whoever goes through those finds nothing here.
        monitor = best_model_score = None
        best_model_path = last_model_path = ""

        def __init__(self) -> None:
            self.saved: Any = None
            self.best_k_models: dict[str, Any] = {}

        def setup(self, trainer: Any, pl_module: Any, stage: Any) -> None:
            """Go behind every ModelCheckpoint: Lightning has put those of configure_callbacks() last by now."""
            trainer.callbacks = [c for c in trainer.callbacks if c is not self] + [self]

        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            theirs = [c for c in trainer.callbacks if isinstance(c, own)]  # configure_callbacks() has added its own
            folders = [os.path.realpath(str(c.dirpath)) for c in theirs if c.dirpath]
            if folders and os.path.realpath(session.checkpoints) not in folders:
                session.refuse(
                    "checkpoints would go to %s, and the plan looks for them in %s: name the place with repo.runs or "
                    "repo.checkpoints" % (folders[0], session.checkpoints)
                )
            for callback in theirs:
                callback.save_last = False  # frozen on a plateau, a link, or last-v1: whatever it is in this version
            session.done("last", "last.ckpt in %s is kept current" % session.checkpoints)

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            if trainer.ckpt_path and os.path.realpath(str(trainer.ckpt_path)) == os.path.realpath(last):
                self.saved = _state(trainer, own)  # written anew before a step is made, it would count a batch twice

        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            if not trainer.sanity_checking and trainer.state.fn == "fit":
                self._save(trainer)

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            self._save(trainer)

        def on_train_end(self, trainer: Any, pl_module: Any) -> None:
            self._save(trainer)

        def _save(self, trainer: Any) -> None:
            if getattr(trainer, "fast_dev_run", False):
                return
            state = _state(trainer, own)
            _ = trainer.callback_metrics  # reduced here: rank 0's progress bar has met that collective already
            if not trainer.strategy.reduce_boolean_decision(state != self.saved, all=False):  # one answer on all ranks
                return
            part = last + ".part"
            trainer.save_checkpoint(part)  # on every rank: Lightning decides who writes
            if os.path.isdir(part):  # looked at by all ranks, so that none waits for one that has refused
                session.refuse("%s is a folder: this strategy writes sharded checkpoints" % part)
            if trainer.is_global_zero:
                os.replace(part, last)
            self.saved = state

    return Last()


def _state(trainer: Any, own: Any) -> Any:
    """Return what last.ckpt has to be current with: the step, and the best ones so far."""
    theirs = [c for c in trainer.callbacks if isinstance(c, own)]
    return trainer.global_step, [(c.best_model_path, sorted(c.best_k_models)) for c in theirs]
