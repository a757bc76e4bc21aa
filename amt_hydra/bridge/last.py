"""last.ckpt: a real file and current, also where the run is asked to end."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from .session import Session


class Stop:
    """SIGTERM, remembered until a step is whole. It may come more than once: Slurm and the launcher both send it."""

    def __init__(self) -> None:
        self.received = False
        self.theirs: Any = signal.SIG_DFL

    def look(self) -> None:
        """See whether the repository has a handler of its own, before Lightning puts one around it."""
        self.theirs = signal.getsignal(signal.SIGTERM)

    def listen(self) -> None:
        """Take the place of Lightning's handler, which ends the run without a checkpoint."""
        if not callable(self.theirs) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._receive)

    def _receive(self, signum: Any, frame: Any) -> None:
        self.received = True


def made(session: Session, package: Any) -> Any:
    """Return the callback that keeps last.ckpt."""
    own = package.callbacks.ModelCheckpoint
    last = os.path.join(session.checkpoints, "last.ckpt")

    class Last(package.callbacks.Checkpoint):
        """Keeps last.ckpt a real file and current: with the step, and with what every ModelCheckpoint knows by then."""

        # It is among trainer.checkpoint_callbacks: whoever goes through those finds nothing here.
        monitor = best_model_score = None
        best_model_path = last_model_path = ""

        def __init__(self) -> None:
            self.saved: Any = None
            self.before = 0
            self.stop = Stop()
            self.best_k_models: dict[str, Any] = {}

        def setup(self, trainer: Any, pl_module: Any, stage: Any) -> None:
            """Go behind every ModelCheckpoint: Lightning has put those of configure_callbacks() last by now."""
            trainer.callbacks = [c for c in trainer.callbacks if c is not self] + [self]

        def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
            self.stop.look()
            _take_over(session, _of(trainer, own))
            session.done("last", "last.ckpt in %s is kept current" % session.checkpoints)

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            self.stop.listen()
            if trainer.ckpt_path and os.path.realpath(str(trainer.ckpt_path)) == os.path.realpath(last):
                self.saved = _state(trainer, own)  # written anew before a step is made, it would count a batch twice

        def on_train_batch_start(self, trainer: Any, *args: Any) -> None:
            self.before = trainer.global_step

        def on_train_batch_end(self, trainer: Any, *args: Any) -> None:
            if trainer.global_step == self.before:
                return  # gradients are still being added up
            if trainer.world_size > 1:
                _ = trainer.callback_metrics  # as in _save
            if trainer.strategy.reduce_boolean_decision(self.stop.received, all=False):  # one rank's stops them all
                self._save(trainer)
                trainer.strategy.barrier()  # whoever ends first may take the others along: srun sees to that
                session.end("SIGTERM: step %d is saved in %s" % (trainer.global_step, last), 128 + signal.SIGTERM)

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
            _write(session, trainer, last)
            self.saved = state

    return Last()


def _of(trainer: Any, own: Any) -> Any:
    """Return its ModelCheckpoints: those of configure_callbacks() are among them once it fits."""
    return [c for c in trainer.callbacks if isinstance(c, own)]


def _take_over(session: Session, theirs: Any) -> None:
    """Have the ModelCheckpoints leave last.ckpt alone; refuse where they save elsewhere than planned."""
    folders = [os.path.realpath(str(c.dirpath)) for c in theirs if c.dirpath]
    if folders and os.path.realpath(session.checkpoints) not in folders:
        session.refuse(
            "checkpoints would go to %s, and the plan looks for them in %s: name the place with repo.runs or "
            "repo.checkpoints" % (folders[0], session.checkpoints)
        )
    for callback in theirs:
        callback.save_last = False  # frozen on a plateau, a link, or last-v1: whatever it is in this version


def _write(session: Session, trainer: Any, last: Any) -> None:
    """Write it aside and move it into place; called on every rank, Lightning decides who writes."""
    part = last + ".part"
    trainer.save_checkpoint(part)
    if os.path.isdir(part):  # looked at by all ranks, so that none waits for one that has refused
        session.refuse("%s is a folder: this strategy writes sharded checkpoints" % part)
    if trainer.is_global_zero:
        os.replace(part, last)


def _state(trainer: Any, own: Any) -> Any:
    """Return what last.ckpt has to be current with: the step, and the best ones so far."""
    return trainer.global_step, [(c.best_model_path, sorted(c.best_k_models)) for c in _of(trainer, own)]
