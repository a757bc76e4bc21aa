"""Callbacks of the package that train.py itself uses, added to its Trainer."""

from __future__ import annotations

from typing import Any

from . import gradients, last, weights
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
        found.append(last.made(session, package))
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
