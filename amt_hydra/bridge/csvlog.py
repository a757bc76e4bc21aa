"""CSV files in place of W&B, for code that speaks to a WandbLogger."""

from __future__ import annotations

import atexit
import csv
import functools
import importlib
import os
from typing import Any, Dict

from .hooks import Finder
from .session import Session
from .trainer import PACKAGES

FILE, EARLIER = "metrics.csv", "metrics.earlier.csv"
_PASSED_OVER = ("unwatch", "log_text", "log_table", "log_image", "log_audio", "log_video", "use_artifact")


def hook(session: Session, finder: Finder) -> None:
    """Replace WandbLogger where each of the two packages defines it."""
    if session.arguments("csv") is not None:
        for name in PACKAGES:
            finder.after.setdefault(name, []).append(functools.partial(_replace, session))


def _replace(session: Session, package: Any) -> None:
    loggers = importlib.import_module(package.__name__ + ".loggers")
    home = importlib.import_module(package.__name__ + ".loggers.wandb")
    if not hasattr(home, "WandbLogger"):
        session.refuse("%s.loggers.wandb has no WandbLogger to replace" % package.__name__)
    stand_in = _made(session, loggers.CSVLogger)
    for module in (home, loggers):
        setattr(module, "WandbLogger", stand_in)  # noqa: B010 - no name that a type checker knows


def _made(session: Session, base: Any) -> Any:
    class WandbLogger(base):
        """Takes WandbLogger's arguments, and keeps its folder: <save_dir>/<project>/<id>."""

        def __init__(self, name: Any = None, save_dir: Any = ".", version: Any = None, **others: Any) -> None:
            known = version or others.get("id") or name
            super().__init__(
                save_dir or others.get("dir") or ".",
                name=others.get("project") or os.environ.get("WANDB_PROJECT") or "lightning_logs",
                version=known if known is None else str(known),
                prefix=others.get("prefix") or "",
            )
            self._said: set[str] = set()
            self._run: Any = None
            if session.rank == 0 and not session.worker:
                folder = os.path.abspath(self.log_dir)
                keep_earlier(folder)
                atexit.register(join, folder)
            session.done("csv", "metrics go to %s" % os.path.join(self.log_dir, FILE))

        @property
        def experiment(self) -> Any:
            if self._run is None:
                # A writer deletes the file that is there: a worker makes none.
                writer = None if session.worker else base.experiment.fget(self)
                self._run = _Experiment(self, writer)
            return self._run

        def watch(self, *args: Any, **kwargs: Any) -> None:
            self.pass_over("watch")

        def pass_over(self, name: str) -> None:
            if name not in self._said:
                self._said.add(name)
                session.say("csv: %s is W&B's and does nothing here" % name)

    for name in _PASSED_OVER:
        setattr(WandbLogger, name, functools.partialmethod(_pass_over, name))
    return WandbLogger


def _pass_over(self: Any, name: str, *args: Any, **kwargs: Any) -> None:
    self.pass_over(name)


class _Config(Dict[str, Any]):
    """A run's config: updated by whatever is handed over, kept by nobody."""

    def update(self, *args: Any, **kwargs: Any) -> None:
        for one in args:
            super().update(vars(one) if hasattr(one, "__dict__") and not isinstance(one, dict) else one)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # copy and pickle ask for theirs
        return self.get(name)


class _Experiment:
    """The CSV writer, with what code expects of a W&B run."""

    def __init__(self, logger: Any, writer: Any) -> None:
        self._logger = logger
        self._writer = writer
        self.config = _Config()
        self.summary = _Config()
        self.id, self.project, self.dir = logger.version, logger.name, logger.log_dir
        self.name = self.id

    def log(self, values: Any, step: Any = None, **others: Any) -> None:
        numbers = {k: float(v) for k, v in values.items() if _is_number(v)}
        if numbers:
            self._logger.log_metrics(numbers, step)

    def save(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            self._logger.pass_over("save")  # of files, to W&B
        elif self._writer is not None:
            self._writer.save()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if hasattr(self._writer, name):
            return getattr(self._writer, name)
        return lambda *args, **kwargs: self._logger.pass_over(name)


def _is_number(value: Any) -> Any:
    try:
        float(value)
    except (TypeError, ValueError, RuntimeError):  # the last: a tensor of several elements
        return False
    return not isinstance(value, str)


def keep_earlier(folder: str) -> None:
    """Keep the rows of earlier launches: CSVLogger deletes its file where it finds one."""
    if os.path.isfile(os.path.join(folder, FILE)):
        _write(
            os.path.join(folder, EARLIER), [*_read(os.path.join(folder, EARLIER)), *_read(os.path.join(folder, FILE))]
        )
        os.unlink(os.path.join(folder, FILE))


def join(folder: str) -> None:
    """Put the rows of earlier launches before those of this one. Killed before that, the next launch does it."""
    earlier = os.path.join(folder, EARLIER)
    if os.path.isfile(earlier):
        _write(os.path.join(folder, FILE), [*_read(earlier), *_read(os.path.join(folder, FILE))])
        os.unlink(earlier)


def _read(file: str) -> Any:
    if not os.path.isfile(file):
        return []
    with open(file, encoding="utf-8", errors="replace", newline="") as handle:
        return list(csv.DictReader(handle))


def _write(file: str, rows: Any) -> None:
    """Write rows with the columns of all of them; whole or not at all."""
    columns = list(dict.fromkeys(name for row in rows for name in row if name is not None))
    part = file + ".part"
    with open(part, "w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, fieldnames=columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    os.replace(part, file)
