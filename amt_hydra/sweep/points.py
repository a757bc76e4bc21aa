"""The points of a sweep, each planned and checked: what would be started, continued, skipped or refused."""

import os
import signal
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

from amt_hydra.checkpoint import Xray, best
from amt_hydra.checks.base import Finding
from amt_hydra.commands import Typed, key_of
from amt_hydra.errors import AmtError
from amt_hydra.launch.processes import tie_to_parent
from amt_hydra.origins import Origin
from amt_hydra.preflight import Preflight, Request, look, request
from amt_hydra.readback import launches
from amt_hydra.repository import Repository, read
from amt_hydra.runstate import records_of
from amt_hydra.schema import check_folder_name
from amt_hydra.settings import Settings
from amt_hydra.slurm.resources import Resources, resources
from amt_hydra.sweep.signature import signature

Action = Literal["start", "continue", "done", "running", "queued", "refused"]
_FEW = 4
"""Points that are planned sooner here than worker processes start."""


@cache
def _read_once(root: Path) -> Repository:
    """The repository, which is the same for all points that are planned in one go."""
    return read(root)


@dataclass(frozen=True, slots=True)
class Paths:
    """Where to look for how a point stands."""

    outputs: Path
    """The folder of all records, and of the ledgers."""
    records: Path
    """The launches of this point."""
    checkpoints: Path
    lock: Path


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a sweep."""

    words: tuple[str, ...]
    """The overrides under which it is a run of its own: with its exp_id, and as a resume where it goes on."""
    asked: tuple[str, ...]
    """Those that the sweep gave it."""
    exp_id: str
    """The name with the signature; as typed where the point could not even be composed."""
    signature: str
    action: Action
    why: str
    """What says so, in words."""
    mode: Literal["min", "max"]
    """Whether more of the monitored metric is better."""
    score: float | None
    """The best one of its checkpoints."""
    step: int | None
    """The step it stands at; None where nothing is there."""
    goal: int | None
    """The step it is to reach; None where there is none."""
    ranks: int
    """Processes that train it."""
    devices: int | None
    """Those of one machine as they were asked for; None where that is left to the machine."""
    paths: "Paths | None"
    """Where its things lie; None where it could not even be composed."""
    asks: "Resources | None"
    """What its job asks Slurm for; None where it could not even be composed."""
    wait: bool
    """slurm.wait"""
    findings: tuple[Finding, ...]
    max_points: int
    fail_fast: bool

    @property
    def trains(self) -> bool:
        """Whether there is something to train, and nobody does."""
        return self.action in ("start", "continue")

    def command(self, config_dir: str | None) -> Typed:
        """The run of this point alone."""
        return Typed("train", self.words, config_dir)


def plan_points(
    points: Sequence[tuple[str, ...]],
    environ: Mapping[str, str],
    cwd: Path,
    config_dir: str | None,
    *,
    to_submit: bool = False,
) -> list[Point]:
    """Plan each, in worker processes where there are many: they know nothing of each other."""
    _read_once.cache_clear()
    plan = partial(plan_point, environ=dict(environ), cwd=cwd, config_dir=config_dir, to_submit=to_submit)
    workers = min(os.cpu_count() or 1, len(points))
    if len(points) <= _FEW or workers < 2:
        return _without_twins([plan(words) for words in points])
    # Forked, so that none imports everything anew; this process has no threads of its own by then. A worker would wait
    # for its next point for ever where we are killed.
    tied = tie_to_parent(signal.SIGKILL, os.getpid())
    with ProcessPoolExecutor(workers, mp_context=get_context("fork"), initializer=tied) as pool:
        return _without_twins(list(pool.map(plan, points, chunksize=max(1, len(points) // (workers * 8)))))


def plan_point(
    words: tuple[str, ...],
    environ: Mapping[str, str],
    cwd: Path,
    config_dir: str | None,
    *,
    to_submit: bool = False,
) -> Point:
    """Plan one point: under a name of its own, and as a resume where an earlier launch of it has got somewhere.

    With `to_submit` it is planned for a job of its own: facts of this machine are then not asked for.
    """
    typed = Typed("train", words, config_dir)
    try:
        asked = replace(request(typed, environ, cwd), to_submit=to_submit)
        mark = signature(asked.settings)
        named = _named(asked, mark)
    except AmtError as error:
        return _refused(words, error)
    try:
        pre = look(named, environ, _read_once)
        action, why = _stands(pre, mark)
        if action == "continue":
            named = _resumed(named)
            pre = look(named, environ, _read_once)
            why = f"{pre.subject.identity}, {why}"
    except AmtError as error:
        return replace(_refused(named.typed.words, error), asked=words, exp_id=named.settings.exp_id, signature=mark)
    if pre.stopped and action not in ("done", "running"):
        # Its ways out are commands of another training, which must not go by this one's name.
        pre = look(replace(named, typed=asked.typed), environ, _read_once)
        action, why = "refused", "; ".join(finding.message for finding in pre.stopped)
    return _point(words, named, pre, mark, action, why)


def _point(asked: tuple[str, ...], named: Request, pre: Preflight, mark: str, action: Action, why: str) -> Point:
    subject, sweep, place = pre.subject, named.settings.sweep, pre.subject.plan.place
    devices = subject.settings.ddp.devices
    mode: Literal["min", "max"] = "min" if subject.effective("checkpoint.mode") == "min" else "max"
    return Point(
        words=named.typed.words,
        asked=asked,
        exp_id=named.settings.exp_id,
        signature=mark,
        action=action,
        why=why,
        mode=mode,
        score=score(subject.state.found, mode),
        step=subject.state.last.global_step if subject.state.last else None,
        goal=subject.whole_number("max_steps"),
        ranks=(devices if isinstance(devices, int) else 1) * subject.settings.ddp.nodes,
        devices=named.settings.ddp.devices if isinstance(named.settings.ddp.devices, int) else None,
        paths=Paths(subject.settings.paths.outputs, subject.plan.records, place.checkpoints, place.lock),
        asks=resources(subject.settings, subject.channels),
        wait=subject.settings.slurm.wait,
        findings=tuple(pre.findings),
        max_points=sweep.max_points,
        fail_fast=sweep.fail_fast,
    )


def score(found: Sequence[Xray], mode: Literal["min", "max"]) -> float | None:
    """The best score among checkpoints."""
    top = best(found, mode)
    return top.score if top else None


def _refused(words: tuple[str, ...], error: AmtError) -> Point:
    return Point(
        words=words,
        asked=words,
        exp_id="",
        signature="",
        action="refused",
        why=error.message,
        mode="max",
        score=None,
        step=None,
        goal=None,
        ranks=0,
        devices=None,
        paths=None,
        asks=None,
        wait=False,
        findings=(Finding("Composed", "error", error.message, tuple(error.fix)),),
        max_points=sys.maxsize,
        fail_fast=False,
    )


def _stands(pre: Preflight, mark: str) -> tuple[Action, str]:
    """What becomes of a point, by what lies in its folder."""
    subject, last = pre.subject, pre.subject.state.last
    if subject.locked:
        return "running", str(subject.locked)
    if subject.settings.init.mode == "resume" or subject.settings.init.overwrite:
        return "start", f"init={subject.settings.init.mode}"  # as it was asked for in so many words
    if last is None or not last.whole or last.global_step is None:
        return "start", "nothing is there yet"
    if not _is_ours(pre, mark):
        return "start", "a run without a record of this point is there"  # which its identity will refuse
    goal = subject.whole_number("max_steps")
    if goal is not None and 0 <= goal <= last.global_step:
        return "done", f"step {last.global_step} of {goal}"
    return "continue", f"at step {last.global_step}" + ("" if goal is None or goal < 0 else f" of {goal}")


def _is_ours(pre: Preflight, mark: str) -> bool:
    """Whether a launch with this signature has a record: only then is what lies there the same training."""
    return any(record.get("signature") == mark for record in launches(records_of(pre.subject.settings)))


def _named(asked: Request, mark: str) -> Request:
    """The same run under a name of its own. Raises AmtError where that would be none."""
    exp_id = f"{asked.settings.exp_id}_{mark}"
    try:
        check_folder_name(exp_id)
    except ValueError as error:
        message = f"exp_id={asked.settings.exp_id}: with _{mark} after it, as a point is named, it {error}"
        raise AmtError(message, fix=["name the sweep shorter: exp_id=…"]) from error
    words = (*(w for w in asked.typed.words if key_of(w) != "exp_id"), f"exp_id={exp_id}")
    return _changed(asked, words, replace(asked.settings, exp_id=exp_id), "exp_id")


def _resumed(named: Request) -> Request:
    """The same run, going on: a warm-start that was stopped is not started again from its first weights."""
    dropped = ("init", "init.mode", "init.ckpt", "init.min_coverage")
    words = (*(w for w in named.typed.words if key_of(w) not in dropped), "init=resume")
    init = replace(named.settings.init, mode="resume", ckpt=None)
    return _changed(named, words, replace(named.settings, init=init), "init.mode", "init.ckpt")


def _changed(asked: Request, words: tuple[str, ...], settings: Settings, *keys: str) -> Request:
    """The request with settings that the sweep decides; what was composed stays."""
    origins = {**asked.composed.origins, **{key: Origin("override", "the sweep") for key in keys}}
    composed = replace(asked.composed, origins=origins)
    return replace(asked, typed=replace(asked.typed, words=words), composed=composed, settings=settings)


def _without_twins(points: Iterable[Point]) -> list[Point]:
    """Refuse points that are the same training: they would share a folder, and the one go on with the other's."""
    found = list(points)
    same: dict[tuple[str, Paths | None], list[int]] = defaultdict(list)
    for number, point in enumerate(found):
        if point.signature:
            same[point.exp_id, point.paths].append(number)
    for numbers in same.values():
        for number in numbers if len(numbers) > 1 else ():
            others = ", ".join(str(other + 1) for other in numbers if other != number)
            goals = {found[other].goal for other in numbers}
            what = "max_steps, which says how far it goes," if len(goals) == len(numbers) else "what differs"
            why = f"the same training as point {others}: {what} does not make it another one"
            way = "sweep a setting that changes the result, seed among them"
            finding = Finding("PointsDiffer", "error", why, (way,))
            found[number] = replace(found[number], action="refused", why=why, findings=(finding,))
    return found
