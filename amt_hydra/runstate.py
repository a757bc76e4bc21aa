"""What lies in an experiment's folder, and around it: read once, before anything is decided."""

import glob
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from amt_hydra.checkpoint import Xray, best, checkpoints, newest, xray
from amt_hydra.errors import USAGE, AmtError
from amt_hydra.readback import launches
from amt_hydra.settings import Settings

BEST_OF = "best of "
_MOST_NEARBY = 200  # files looked at when a checkpoint has to be proposed
_PLACEHOLDERS = ("runs", "project", "exp_id")


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
    init_inside: Path | None
    """Its path within the experiment's folder, where it lies there: it goes along when that is moved aside."""
    unused: str
    """An exp_id like this one's that no experiment has yet."""
    nearby: tuple[Xray, ...] = ()
    """Whole checkpoints of the project, best first: filled where one has to be proposed."""
    earlier: Mapping[str, object] = field(default_factory=dict)
    """Settings of the experiment's last launch, by key, as its record has them: filled for a resume."""
    begun: str = ""
    """What a resume goes on with, and since when, as its record has it: "the warm-start of 2026-12-01T08:00:00Z"."""

    @property
    def newest(self) -> Xray | None:
        """The whole checkpoint with the largest global_step, whatever its name."""
        return newest(self.found)


def describe(ray: Xray) -> str:
    """One checkpoint in a few words: name, global_step, score, or what is wrong with it."""
    if not ray.whole:
        return f"{ray.path.name} ({ray.problem})"
    score = "" if ray.score is None else f", score {ray.score:.4f}"
    step = "no global_step" if ray.global_step is None else f"global_step {ray.global_step}"
    return f"{ray.path.name} ({step}{score})"


def place(settings: Settings, runs: Path, exp_id: str | None = None) -> Place:
    """Work out the folders of an experiment, by default the settings' own, from the mapping's template."""
    template = settings.repo.checkpoints
    names = {"runs": str(runs), "project": settings.project, "exp_id": exp_id or settings.exp_id}
    head, marker, _ = template.partition("{exp_id}")
    escaped = {k: glob.escape(v) for k, v in names.items()} | {"exp_id": "*"}
    try:
        if not marker:
            raise ValueError("it does not say where the exp_id goes")
        return Place(
            runs=runs,
            experiment=Path((head + marker).format(**names)),
            checkpoints=Path(template.format(**names)),
            pattern=glob.escape(template).format(**escaped),
        )
    except (KeyError, IndexError, ValueError) as error:
        raise AmtError(
            f"repo.checkpoints={template} is no template: {error}",
            fix=[f"it is made of {', '.join(f'{{{name}}}' for name in _PLACEHOLDERS)}, and {{exp_id}} must be there"],
            code=USAGE,
        ) from error


def records_of(settings: Settings) -> Path:
    """Where the records of an experiment's launches lie."""
    return settings.paths.outputs / settings.project / settings.exp_id / "launches"


def _earlier(settings: Settings) -> dict[str, object]:
    """The values of the last launch that has a record; a resume of a run without one has nothing to go by."""
    recorded = next(launches(records_of(settings)), {}).get("settings")
    try:
        pairs = {key: (entry["value"], entry["repository"]) for key, entry in (recorded or {}).items()}
    except (KeyError, TypeError, AttributeError):
        return {}  # a record that is damaged or of another version tells nothing
    return {key: own if value is None else value for key, (value, own) in pairs.items()}


def _begun(settings: Settings) -> str:
    """The last launch that was no resume itself."""
    names = {"scratch": "the run from scratch", "warmstart": "the warm-start"}
    for record in launches(records_of(settings)):
        identity = record.get("identity")
        actual = identity.get("actual") if isinstance(identity, dict) else None
        if actual in names and "started" in record:
            return f"{names[actual]} of {record['started']}"
    return ""


def read_runstate(settings: Settings, where: Place, init_from: str) -> RunState:
    """Look at the experiment's checkpoints. `init_from` says who set init.ckpt, where it is set."""
    found = checkpoints(where.checkpoints)
    last = next((x for x in found if x.path.name == where.last.name), None)
    init, source = _init(settings, where, init_from)
    wanted = {"scratch": None, "resume": last, "warmstart": init}[settings.init.mode]
    missing = settings.init.mode != "scratch" and (wanted is None or not wanted.whole or not wanted.tensors)
    return RunState(
        place=where,
        last=last,
        found=found,
        init=init,
        init_from=source,
        init_inside=_inside(init.path, where.experiment) if init else None,
        unused=_unused(settings, where.runs),
        nearby=nearby(where, settings.checkpoint.mode or "max") if missing else (),
        earlier=_earlier(settings) if settings.init.mode == "resume" else {},
        begun=_begun(settings) if settings.init.mode == "resume" else "",
    )


def nearby(where: Place, mode: str) -> tuple[Xray, ...]:
    """Whole checkpoints of all experiments of the project: best score first, then those without one, newest first."""
    files = [Path(f) for folder in glob.glob(where.pattern) for f in glob.glob(f"{glob.escape(folder)}/*.ckpt")]
    recent = sorted(files, key=_mtime, reverse=True)[:_MOST_NEARBY]
    usable = [x for x in map(xray, recent) if x.whole and x.tensors]
    sign = -1.0 if mode == "max" else 1.0
    return tuple(sorted(usable, key=lambda x: math.inf if (score := _score(x)) is None else sign * score))


def _score(ray: Xray) -> float | None:
    return None if ray.score is None or math.isnan(ray.score) else ray.score


def _unused(settings: Settings, runs: Path) -> str:
    names = (f"{settings.exp_id}{number}" for number in count(2))
    return next(name for name in names if not os.path.lexists(place(settings, runs, name).experiment))


def _inside(file: Path, folder: Path) -> Path | None:
    """The path of `file` within `folder`, through links and "..": of what it leads to, else of itself."""
    root = os.path.realpath(folder)
    for path in (Path(os.path.realpath(file)), Path(os.path.realpath(file.parent), file.name)):
        if path.is_relative_to(root):
            return path.relative_to(root)
    return None


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
