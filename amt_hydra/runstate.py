"""What lies in an experiment's folder, and around it: read once, before anything is decided."""

import glob
import os
from dataclasses import dataclass
from pathlib import Path

from amt_hydra.checkpoint import Xray, best, checkpoints, newest, xray
from amt_hydra.settings import Settings

BEST_OF = "best of "
_MOST_NEARBY = 200  # files looked at when a checkpoint has to be proposed


@dataclass(frozen=True, slots=True)
class Place:
    """Where an experiment keeps its checkpoints."""

    runs: Path
    """The folder that holds <project>/<exp_id>."""
    experiment: Path
    """The folder that is moved aside when it is in the way."""
    checkpoints: Path
    pattern: str
    """Glob of the checkpoint folders of all experiments of the project."""

    @property
    def last(self) -> Path:
        """The file that a resume starts from."""
        return self.checkpoints / "last.ckpt"

    @property
    def lock(self) -> Path:
        """The experiment's lock: beside the folder, so that it stays put when the folder is moved aside."""
        return self.experiment.with_name(f".{self.experiment.name}.lock")


@dataclass(frozen=True, slots=True)
class RunState:
    """Checkpoints of the experiment, and the one that a warm-start takes."""

    place: Place
    last: Xray | None
    """last.ckpt; None where there is none. A link to nothing is there, and not whole."""
    found: tuple[Xray, ...]
    """All of the experiment's checkpoints."""
    init: Xray | None
    """The checkpoint of a warm-start, whole or not; None where none is named or found."""
    init_from: str
    """Who named it."""
    nearby: tuple[Xray, ...] = ()
    """Whole checkpoints of the project, best first: filled where one has to be proposed."""

    @property
    def newest(self) -> Xray | None:
        """The whole checkpoint with the largest global_step, whatever its name."""
        return newest(self.found)


def place(settings: Settings, runs: Path, exp_id: str | None = None) -> Place:
    """Work out the folders of an experiment, by default the settings' own, from the mapping's template."""
    template = settings.repo.checkpoints
    names = {"runs": str(runs), "project": settings.project, "exp_id": exp_id or settings.exp_id}
    head, marker, _ = template.partition("{exp_id}")
    escaped = {k: glob.escape(v) for k, v in names.items()} | {"exp_id": "*"}
    return Place(
        runs=runs,
        experiment=Path((head + marker).format(**names)),
        checkpoints=Path(template.format(**names)),
        pattern=template.format(**escaped),
    )


def read_runstate(settings: Settings, where: Place, init_from: str) -> RunState:
    """Look at the experiment's checkpoints. `init_from` says who set init.ckpt, where it is set."""
    found = checkpoints(where.checkpoints)
    last = next((x for x in found if x.path.name == where.last.name), None)
    init, source = _init(settings, where, init_from)
    wanted = {"scratch": None, "resume": last, "warmstart": init}[settings.init.mode]
    missing = settings.init.mode != "scratch" and (wanted is None or not wanted.whole)
    return RunState(
        where, last, found, init, source, nearby(where, settings.checkpoint.mode or "max") if missing else ()
    )


def nearby(where: Place, mode: str) -> tuple[Xray, ...]:
    """Whole checkpoints of all experiments of the project: best score first, then those without one, newest first."""
    files = [Path(f) for folder in glob.glob(where.pattern) for f in glob.glob(f"{glob.escape(folder)}/*.ckpt")]
    recent = sorted(files, key=_mtime, reverse=True)[:_MOST_NEARBY]
    whole = [x for x in map(xray, recent) if x.whole]
    sign = -1.0 if mode == "max" else 1.0
    return tuple(sorted(whole, key=lambda x: (x.score is None, sign * (x.score or 0.0))))


def _mtime(path: Path) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _init(settings: Settings, where: Place, init_from: str) -> tuple[Xray | None, str]:
    """The warm-start checkpoint: init.ckpt, else the mapping's."""
    if settings.init.ckpt is not None:
        return xray(settings.init.ckpt), init_from
    proposed = settings.repo.init_ckpt
    if settings.init.mode != "warmstart" or not proposed:
        return None, ""
    if not proposed.startswith(BEST_OF):
        return xray(Path(proposed).expanduser()), "repo.init_ckpt"
    folder = place(settings, where.runs, exp_id=proposed.removeprefix(BEST_OF)).checkpoints
    return best(checkpoints(folder), settings.checkpoint.mode or "max"), f"repo.init_ckpt: {proposed}"
