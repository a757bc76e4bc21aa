"""Lightning's Trainer: what fit() is given, and what watches over it."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
from typing import Any

from . import callbacks
from .hooks import Finder
from .session import Session, is_on

PACKAGES = ("pytorch_lightning", "lightning.pytorch")


def hook(session: Session, finder: Finder) -> None:
    """Patch whichever of the two packages train.py imports."""
    for name in PACKAGES if session.pending else ():
        finder.after.setdefault(name, []).append(functools.partial(_patch, session))


def _patch(session: Session, package: Any) -> None:
    trainer: Any = getattr(package, "Trainer", None)
    if trainer is None or "ckpt_path" not in inspect.signature(trainer.fit).parameters:
        session.refuse("%s has no Trainer.fit(ckpt_path=…): it cannot be patched" % package.__name__)
    trainer.fit = _fit(session, package, trainer.fit)
    if session.arguments("detect_anomaly") is not None:
        session.pending.discard("detect_anomaly")
        if is_on("AMT_DETECT_ANOMALY"):
            trainer.__init__ = _with_anomaly_detection(session, trainer.__init__)


def _with_anomaly_detection(session: Session, init: Any) -> Any:
    if "detect_anomaly" not in inspect.signature(init).parameters:
        session.refuse("this Lightning's Trainer takes no detect_anomaly")

    @functools.wraps(init)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs["detect_anomaly"] = True
        session.report("patched", what="detect_anomaly", detail="Trainer(detect_anomaly=True)")
        session.say("detect_anomaly: Trainer(detect_anomaly=True); the operation that made a NaN is named")
        init(self, *args, **kwargs)

    return wrapped


def _fit(session: Session, package: Any, fit: Any) -> Any:
    signature = inspect.signature(fit)

    @functools.wraps(fit)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs).arguments
        model = given.get("model")
        if model is None or not _is_first(session, self):
            return fit(self, *args, **kwargs)
        path = _checkpoint(session, given.get("ckpt_path"))
        if path is not None:
            given["ckpt_path"] = path
        importlib.import_module(package.__name__ + ".callbacks")
        self.callbacks[:0] = callbacks.made(session, package, model)  # first: an EMA copies what was loaded
        given.pop("self")
        return fit(self, **given)

    return wrapped


def _is_first(session: Session, trainer: Any) -> Any:
    """Return whether this is the training that the plan is for: the first. A second that it resumed would undo it."""
    first, session.trainer = session.trainer, session.trainer or trainer
    if first is not None and first is not trainer:
        session.say(
            "a second Trainer: its fit() is as train.py has it, without resume, warm-start, last.ckpt or checks"
        )
        session.report("second_trainer")
    return first is None


def _checkpoint(session: Session, passed: Any) -> Any:
    """Return the checkpoint that fit() continues from; None where the plan says nothing about it."""
    resume, warmstart = session.arguments("resume"), session.arguments("warmstart")
    if warmstart is not None and passed is not None:
        session.refuse("this is a warm-start, and train.py passes fit(ckpt_path=%r): it would be a resume" % (passed,))
    if resume is None:
        return None
    if passed is not None and os.path.realpath(str(passed)) != os.path.realpath(resume["ckpt"]):
        session.refuse("the plan resumes %s, and train.py passes fit(ckpt_path=%r)" % (resume["ckpt"], passed))
    session.done("resume", "fit(ckpt_path=%s)" % resume["ckpt"])
    return resume["ckpt"]
