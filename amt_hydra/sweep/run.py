"""A sweep from its command line to its last point, through Hydra's own multirun."""

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amt_hydra.commands import key_of
from amt_hydra.conf_path import groups, search_dirs, shipped
from amt_hydra.errors import REFUSED, USAGE, AmtError, Never, nearest
from amt_hydra.slurm.queue import Queued, queue
from amt_hydra.sweep import ledger
from amt_hydra.sweep.local import Finished, OneAtATime, Slots, run_points
from amt_hydra.sweep.points import Point, plan_points
from amt_hydra.sweep.standing import without_queued

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
    launcher: str = "local"
    """The option of hydra/launcher."""
    gpus: tuple[str, ...] | None = None
    """Those that hydra.launcher.gpus names."""
    ledger_file: Path | None = None
    """The one that has these points already, where it is not a sweep of its own."""
    needs_values: bool = False
    """Whether the sweeper decides by the scores what it asks for next."""
    planned: list[Point] = field(default_factory=list)
    submitted: dict[str, str] = field(default_factory=dict)
    """Job ids by exp_id."""
    name: str = ""
    """The sweep's in the ledgers; "" where none was written."""
    finished: list[Finished] = field(default_factory=list)

    def __call__(self, _config: Any) -> Any:
        """Hydra's own launchers would call it in their own process, with their own folders. Raises AmtError."""
        raise AmtError("this launcher does not plan a sweep before it starts it", fix=[f"{_LAUNCHER}=local"])

    def launch(
        self, words: Sequence[tuple[str, ...]], first: int, slots: Callable[[], Slots] = OneAtATime
    ) -> "list[JobReturn]":
        """Plan a point per tuple of `words`; where nothing is refused, run them. Returns the scores, NaN for none."""
        points = self._planned(words, first)
        shared = slots()
        _refuse_never(points, shared.never)
        if not self.only_plan:
            ledger.write(points, self._asked, file=self.ledger_file)
            self._follow(run_points(self._todo(points), shared, self.environ, self.cwd, self.config_dir), points, first)
        return self._returned(points)

    def submit(self, words: Sequence[tuple[str, ...]], first: int) -> "list[JobReturn]":
        """Plan every point; where nothing is refused, submit all to Slurm. Waits for their ends where asked to.

        Returns the best score of each, or NaN: for those that are yet to run as well.
        """
        from amt_hydra.report.sweep import show_submitted
        from amt_hydra.slurm.submit import Cluster, StillQueuedError

        before = queue(self.environ)  # before they are planned: what ends meanwhile must not be taken for never begun
        points = self._planned(words, first, to_submit=True, before=before)
        cluster = Cluster(self.environ)
        if before is None:
            raise AmtError("squeue does not answer: what is queued already cannot be told", fix=["try again: squeue"])
        _refuse_never(points, cluster.never)
        todo = self._todo(points)
        if todo and not self.only_plan:
            file = self.ledger_file or ledger.path_of(points)
            places = cluster.numbered(todo, file.parent.name)
            with ledger.kept(file, but=StillQueuedError):
                ledger.write(points, self._asked, places, self.ledger_file)
                jobs = cluster.submit(todo, places, file.parent / "jobs", self.cwd, self.config_dir)
            self.submitted |= jobs
            self.name = file.parent.name
            show_submitted(jobs, file)
            places = {exp_id: replace(place, job=jobs[exp_id]) for exp_id, place in places.items()}
            with _told():
                ledger.write(points, self._asked, places, self.ledger_file)
            if self.needs_values or todo[0].wait:
                self._follow(cluster.wait(todo, jobs), points, first)
        return self._returned(points)

    def _planned(
        self,
        words: Sequence[tuple[str, ...]],
        first: int,
        *,
        to_submit: bool = False,
        before: Mapping[str, Queued] | None = None,
    ) -> list[Point]:
        """The points, shown. Raises AmtError where one is refused, or there are too many."""
        from amt_hydra.report.sweep import show_points

        if not words:
            raise AmtError("the sweep has no point: one of its lists is empty", code=USAGE)
        points = plan_points(words, self.environ, self.cwd, self.config_dir, to_submit=to_submit)
        points = without_queued(points, self.environ, before)
        self.planned += points
        if not self.json:
            show_points(points, self.config_dir, first, to_submit=to_submit)
        _refuse(points)
        return points

    def _todo(self, points: Sequence[Point]) -> list[Point]:
        """What has something to train, unless an earlier batch has ended the sweep."""
        ended = any(one.ends_the_sweep for one in self.finished)
        return [point for point in points if point.trains and not ended]

    def _follow(self, events: Iterable[Point | Finished | str], points: Sequence[Point], first: int) -> None:
        """Show what becomes of the points, until nothing more does."""
        from amt_hydra.report.sweep import show_finished, show_started, show_waiting

        numbers = {point.exp_id: f"{first + number}/{first + len(points)}" for number, point in enumerate(points, 1)}
        for event in events:
            if isinstance(event, str):
                show_waiting(event)
            elif isinstance(event, Point):
                show_started(event, numbers[event.exp_id])
            else:
                self.finished.append(event)
                show_finished(event, numbers[event.point.exp_id])

    def _returned(self, points: Sequence[Point]) -> "list[JobReturn]":
        best = {point.exp_id: point.score for point in points if point.action == "done"}
        best |= {end.point.exp_id: end.best for end in self.finished}
        return [_returned(point.asked, best.get(point.exp_id)) for point in points]

    @property
    def _asked(self) -> ledger.Asked:
        return ledger.Asked(self.launcher, self.gpus, self.config_dir, self.cwd)

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
    given = {key: name for key, _, name in (word.partition("=") for word in prepared)}
    prepared += [f"{key}={name}" for key, name in _DEFAULTS.items() if key not in given]
    task.launcher = given.get(_LAUNCHER, _DEFAULTS[_LAUNCHER])
    task.needs_values = given.get("hydra/sweeper", _DEFAULTS["hydra/sweeper"]) != _DEFAULTS["hydra/sweeper"]
    register(dirs)
    with hydra.initialize_config_dir(str(shipped()), version_base="1.3"):
        engine = GlobalHydra.instance().hydra  # used outside: points are composed by an instance each
    assert engine is not None
    with tempfile.TemporaryDirectory() as scratch, explained(words, dirs):
        prepared.append(f"hydra.sweep.dir={quote(scratch)}")  # a multirun.yaml is written before a point is looked at
        engine.multirun("config", task, prepared, with_log_configuration=False)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Show an error, and go on: the ledger has the names of the jobs, by which they are found without their ids."""
    from amt_hydra.report.sweep import show_warning

    try:
        yield
    except AmtError as error:
        show_warning(f"{error.message}: the jobs are known by their names only")


def _refuse_launcher(words: Sequence[str]) -> None:
    """Only a launcher of ours plans a sweep before it starts it; Hydra's own words say nothing of which there are."""
    ours = sorted(file.stem for file in (shipped() / _LAUNCHER).glob("*.yaml"))
    chosen = _DEFAULTS[_LAUNCHER]
    for word in words:
        key, _, name = word.partition("=")
        if key.lstrip("+~") == _LAUNCHER:
            chosen = name
            if key != _LAUNCHER or name not in ours:
                raise AmtError(
                    f"{word}: hydra/launcher is one of {', '.join(ours)}",
                    new=[f"{_LAUNCHER}={nearest(name, ours) or _DEFAULTS[_LAUNCHER]}"],
                    drop=[_LAUNCHER],
                    code=USAGE,
                )
    for word in words:
        key, _, value = word.partition("=")
        if key == "hydra.launcher.gpus" and "," in value and not value.startswith("["):
            raise AmtError(f"{word} is no list of GPUs", new=[f"{key}=[{value}]"], code=USAGE)
        key = key_of(word)
        if key.startswith("hydra.launcher") and (key, chosen) != ("hydra.launcher.gpus", "gpu_pool"):
            has = "hydra.launcher.gpus" if chosen == "gpu_pool" else "none: a job's settings are slurm.* and ddp.*"
            raise AmtError(
                f"{key}: {_LAUNCHER}={chosen} has no such setting, but {has}",
                new=[f"{_LAUNCHER}=gpu_pool"] if key == "hydra.launcher.gpus" else [],
                drop=[key],
                code=USAGE,
            )


def _refuse(points: Sequence[Point]) -> None:
    """Nothing is started where one point is refused, or there are more than were asked for knowingly."""
    refused = [point for point in points if point.action == "refused"]
    if refused:
        raise AmtError(f"{len(refused)} of {len(points)} points are refused: none was started", code=REFUSED)
    most = min(point.max_points for point in points)
    new = [point for point in points if point.trains]
    if len(new) > most:
        raise AmtError(
            f"this would start {len(new)} runs, and sweep.max_points is {most}",
            new=[f"sweep.max_points={len(new)}"],
            code=REFUSED,
        )


def _refuse_never(points: Sequence[Point], never: Callable[[Point], Never | None]) -> None:
    """Nothing is started where a point would wait for ever."""
    found = list(dict.fromkeys(one for point in points if (one := never(point))))
    if found:
        new, drop = found[0].new, found[0].drop
        raise AmtError("; ".join(one.why for one in found), new=new, drop=drop, code=REFUSED)


def _returned(overrides: Sequence[str], value: float | None) -> "JobReturn":
    from hydra.core.utils import JobReturn, JobStatus

    found = JobReturn(overrides=list(overrides), status=JobStatus.COMPLETED)
    found.return_value = float("nan") if value is None else value
    return found
