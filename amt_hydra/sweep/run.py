"""A sweep from its command line to its last point, through Hydra's own multirun."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amt_hydra.conf_path import groups, search_dirs, shipped
from amt_hydra.errors import REFUSED, USAGE, AmtError, nearest
from amt_hydra.sweep import ledger
from amt_hydra.sweep.local import Finished, OneAtATime, Slots, run_points
from amt_hydra.sweep.points import Point, plan_points
from amt_hydra.sweep.words import typed

if TYPE_CHECKING:
    from hydra.core.utils import JobReturn

_LAUNCHER = "hydra/launcher"
_DEFAULTS = {_LAUNCHER: "local", "hydra/sweeper": "points"}


@dataclass
class Sweep:
    """What our launchers launch: it stands where Hydra has its task function."""

    environ: Mapping[str, str]
    cwd: Path
    config_dir: str | None
    only_plan: bool
    json: bool = False
    planned: list[Point] = field(default_factory=list)
    finished: list[Finished] = field(default_factory=list)

    def __call__(self, _config: Any) -> Any:
        """Hydra's own launchers would call it in their own process, with their own folders. Raises AmtError."""
        raise AmtError("this launcher does not plan a sweep before it starts it", fix=[f"{_LAUNCHER}=local"])

    def launch(
        self, job_overrides: Sequence[Sequence[str]], first: int, slots: Callable[[], Slots] = OneAtATime
    ) -> "list[JobReturn]":
        """Plan every point; where nothing is refused, run them. Returns the best score of each, or NaN."""
        from amt_hydra.report.sweep import show_points

        if not job_overrides:
            raise AmtError("the sweep has no point: one of its lists is empty", code=USAGE)
        words = [typed(overrides) for overrides in job_overrides]
        points = plan_points(words, self.environ, self.cwd, self.config_dir)
        self.planned += points
        if not self.json:
            show_points(points, self.config_dir, first)
        _refuse(points)
        best: dict[str, float | None] = {point.exp_id: point.score for point in points if point.action == "done"}
        shared = slots()
        _refuse_never(points, shared)
        if not self.only_plan:
            ledger.write(points, self.config_dir)
            best |= self._run(points, shared, first)
        pairs = zip(points, job_overrides, strict=True)
        return [_returned(overrides, best.get(point.exp_id)) for point, overrides in pairs]

    def _run(self, points: Sequence[Point], slots: Slots, first: int) -> dict[str, float | None]:
        """Run what has something to train, unless an earlier batch has ended the sweep."""
        from amt_hydra.report.sweep import show_finished, show_started, show_waiting

        numbers = {point.exp_id: f"{first + number}/{first + len(points)}" for number, point in enumerate(points, 1)}
        ended = any(one.ends_the_sweep for one in self.finished)
        todo = [point for point in points if point.action in ("start", "continue") and not ended]
        best: dict[str, float | None] = {}
        for event in run_points(todo, slots, self.environ, self.cwd, self.config_dir):
            if isinstance(event, str):
                show_waiting(event)
                continue
            if isinstance(event, Point):
                show_started(event, numbers[event.exp_id])
                continue
            self.finished.append(event)
            best[event.point.exp_id] = event.best
            show_finished(event, numbers[event.point.exp_id])
        return best

    @property
    def code(self) -> int:
        """0 where no point failed; else the exit code of the first that did."""
        return next((one.code for one in self.finished if one.code != 0), 0)


def sweep(words: Sequence[str], task: Sweep) -> None:
    """Have Hydra's sweeper hand the points to the launcher. Raises AmtError where nothing may be started."""
    import hydra
    from hydra.core.global_hydra import GlobalHydra

    from amt_hydra.compose import explained, register
    from amt_hydra.overrides import prepare, quote

    dirs = search_dirs(task.config_dir, task.environ, task.cwd)
    prepared = prepare(words, groups(dirs), sweep=True)
    _refuse_launcher(prepared)
    given = {word.partition("=")[0] for word in prepared}
    prepared += [f"{key}={name}" for key, name in _DEFAULTS.items() if key not in given]
    register(dirs)
    with hydra.initialize_config_dir(str(shipped()), version_base="1.3"):
        engine = GlobalHydra.instance().hydra  # used outside: points are composed by an instance each
    assert engine is not None
    with tempfile.TemporaryDirectory() as scratch, explained(words, dirs):
        prepared.append(f"hydra.sweep.dir={quote(scratch)}")  # a multirun.yaml is written before a point is looked at
        engine.multirun("config", task, prepared, with_log_configuration=False)


def _refuse_launcher(words: Sequence[str]) -> None:
    """Only a launcher of ours plans a sweep before it starts it."""
    ours = sorted(file.stem for file in (shipped() / _LAUNCHER).glob("*.yaml"))
    for key, _, name in (word.partition("=") for word in words):
        if key == _LAUNCHER and name not in ours:
            close = nearest(name, ours) or _DEFAULTS[_LAUNCHER]
            raise AmtError(
                f"{_LAUNCHER}={name}: there is no such launcher here; there are {', '.join(ours)}",
                new=[f"{_LAUNCHER}={close}"],
                code=USAGE,
            )


def _refuse(points: Sequence[Point]) -> None:
    """Nothing is started where one point is refused, or there are more than were asked for knowingly."""
    refused = [point for point in points if point.action == "refused"]
    if refused:
        raise AmtError(f"{len(refused)} of {len(points)} points are refused: none was started", code=REFUSED)
    most = min(point.max_points for point in points)
    new = [point for point in points if point.action in ("start", "continue")]
    if len(new) > most:
        raise AmtError(
            f"this would start {len(new)} runs, and sweep.max_points is {most}",
            new=[f"sweep.max_points={len(new)}"],
            code=REFUSED,
        )


def _refuse_never(points: Sequence[Point], slots: Slots) -> None:
    """Nothing is started where a point would wait for ever."""
    found = [f"{point.exp_id}: {why}" for point in points if (why := slots.never(point))]
    if found:
        raise AmtError("; ".join(found), fix=["fewer devices for each, or another launcher"], code=REFUSED)


def _returned(overrides: Sequence[str], value: float | None) -> "JobReturn":
    from hydra.core.utils import JobReturn, JobStatus

    found = JobReturn(overrides=list(overrides), status=JobStatus.COMPLETED)
    found.return_value = float("nan") if value is None else value
    return found
