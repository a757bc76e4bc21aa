"""The launch of a checked plan: lock, move aside, record, run, judge."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from amt_hydra import __version__, record
from amt_hydra.bridge_reports import ranks, refusal
from amt_hydra.bridged import PLAN_FILE, PLAN_VARIABLE, document
from amt_hydra.checks.base import Subject
from amt_hydra.errors import REFUSED, AmtError
from amt_hydra.launch.environment import child_environment, free_port, removed
from amt_hydra.launch.lock import Lock
from amt_hydra.launch.run import Ended, run
from amt_hydra.outcome import Outcome, judge, seen
from amt_hydra.preflight import Preflight
from amt_hydra.report.data import plain, preflight_data
from amt_hydra.repository.git import commit, diff
from amt_hydra.runstate import RunState, read_runstate
from amt_hydra.settings import Ddp

_MOST_DIFF = 256 * 1024  # bytes of uncommitted change that a record keeps


def launch(pre: Preflight, environ: Mapping[str, str]) -> tuple[Outcome, Path]:
    """Run train.py as planned. Returns how it ended and the record folder; raises AmtError where it did not start."""
    subject, plan = pre.subject, pre.subject.plan
    secrets = record.secrets_of(environ)
    with record.no_empty_folders(plan.place.lock.parent), Lock(plan.place.lock) as lock:
        _refuse_if_changed(pre)
        folder = _move_and_record(pre, environ, secrets)
        bridge = {PLAN_VARIABLE: str(folder / PLAN_FILE)} if plan.bridge else {}
        env = child_environment(environ, {**_rendezvous(pre), **plan.env, **bridge})
        before = seen(plan.place)
        launch_settings = subject.settings.launch
        try:
            ended = run(
                plan.argv,
                env,
                plan.cwd,
                folder / record.LOG,
                lock,
                attach=launch_settings.attach,
                grace_s=launch_settings.grace,
                ask=plan.ask,
            )
        except AmtError as error:
            record.complete(folder, {"verdict": f"not started: {error.message}"}, secrets)
            raise
        mode = "min" if subject.effective("checkpoint.mode") == "min" else "max"
        outcome = judge(ended, plan.place, subject.identity, mode, before)
        outcome = _bridged(outcome, ended, folder, subject)
        return _completed(outcome, ended, folder, secrets)


def _bridged(outcome: Outcome, ended: Ended, folder: Path, subject: Subject) -> Outcome:
    """What the bridge has to say of the end: it refused, or a rank went past it and trained with other values."""
    if subject.plan.bridge is None:
        return outcome
    if ended.code == REFUSED and (why := refusal(folder)):
        return replace(outcome, verdict=f"the bridge refused, at step {outcome.step or 0}: {why}")
    asked, there = _ranks(subject.settings.ddp), ranks(folder)
    if outcome.code == 0 and subject.decision("ddp.devices").reaches and len(there) < asked:
        text = f"of {asked} ranks only {', '.join(map(str, there)) or 'none'} went through the bridge: the others "
        return replace(outcome, code=REFUSED, verdict=f"{text}trained as the repository is by itself")
    return outcome


def _completed(outcome: Outcome, ended: Ended, folder: Path, secrets: list[str]) -> tuple[Outcome, Path]:
    content = {**plain(outcome), "train_code": ended.code, "signal": ended.signal, "ended": record.now()}
    try:
        record.complete(folder, content, secrets)
    except AmtError as error:  # the training is done and counts, whatever became of the record's last lines
        return replace(outcome, verdict=f"{outcome.verdict} ({error.message})"), folder
    return outcome, folder


def _refuse_if_changed(pre: Preflight) -> None:
    """The checkpoints may have changed between the plan and the lock: then the identity may be another."""
    subject = pre.subject
    now = read_runstate(subject.settings, subject.plan.place, subject.state.init_from)
    if _deciding(now) != _deciding(subject.state):
        raise AmtError(
            f"the checkpoints in {subject.plan.place.checkpoints} changed while the run was being planned",
            fix=[f"plan it again: {subject.typed}"],
        )


def _deciding(state: RunState) -> list[tuple[object, ...]]:
    """What a change is seen by. Not the scores: one that is NaN differs from itself."""
    rays = [ray for ray in (*state.found, state.init) if ray is not None]
    return [(ray.path, ray.link, ray.size, ray.mtime, ray.whole, ray.global_step) for ray in rays]


def _move_and_record(pre: Preflight, environ: Mapping[str, str], secrets: list[str]) -> Path:
    """Move the experiment aside where the plan says so, and write the record; where that fails, move it back."""
    plan = pre.subject.plan
    content, files = _content(pre, environ), _files(pre)
    _move(plan.place.experiment, plan.moved_to)
    try:
        return record.create(plan.records, content, files, secrets)
    except BaseException:
        if plan.moved_to is not None:
            _move(plan.moved_to, plan.place.experiment)
        raise


def _move(folder: Path, to: Path | None) -> None:
    try:
        if to is not None:
            folder.rename(to)
    except OSError as error:
        raise AmtError(f"{folder} cannot be moved to {to}: {error.strerror}") from error


def _rendezvous(pre: Preflight) -> dict[str, str]:
    """A port of its own for a run of several ranks, of which the first is on this machine: two may share the host."""
    return {"MASTER_PORT": str(free_port())} if _ranks(pre.subject.settings.ddp) > 1 else {}


def _ranks(ddp: Ddp) -> int:
    """Processes that train, on all machines."""
    return ddp.nodes * (ddp.devices if isinstance(ddp.devices, int) else 1)


def _content(pre: Preflight, environ: Mapping[str, str]) -> dict[str, Any]:
    repository = pre.subject.repository
    revision, dirty = commit(repository.root)
    return {
        "schema": 1,
        "amt_hydra": __version__,
        "started": record.now(),
        "launcher_pid": os.getpid(),
        "signature": pre.signature,
        **preflight_data(pre),
        "overrides": list(pre.subject.typed.words),
        "choices": dict(pre.composed.choices),
        "commit": revision,
        "dirty": dirty,
        "versions": record.versions(),
        "environment": record.environment_kept(environ),
        "environment_removed": list(removed(environ)),
    }


def _files(pre: Preflight) -> dict[str, str]:
    import yaml

    config = yaml.safe_dump(dict(pre.composed.tree), sort_keys=False, allow_unicode=True)
    patch = record.redact_assignments(diff(pre.subject.repository.root, _MOST_DIFF))
    return {"config.yaml": config} | ({"repository.diff": patch} if patch else {}) | _bridge_plan(pre)


def _bridge_plan(pre: Preflight) -> dict[str, str]:
    """What the bridge reads, in the record: it says for ever what was added to this run."""
    plan = pre.subject.plan
    if plan.bridge is None:
        return {}
    content = document(plan.bridge, pre.subject.repository, plan.place.checkpoints)
    return {PLAN_FILE: json.dumps(content, indent=2, ensure_ascii=False) + "\n"}
