"""Training identity: what a run declares itself to be, what it would be, and the facts that decide it.

Three facts decide: AMT_FORCE_SCRATCH, whether last.ckpt lies in the experiment's folder, and --init-ckpt.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from amt_hydra.checkpoint import Xray
from amt_hydra.commands import Typed
from amt_hydra.runstate import RunState
from amt_hydra.settings import Mode, Settings

FORCE_SCRATCH = "AMT_FORCE_SCRATCH"
_SHOWN = 8  # checkpoints that a message proposes at most

Actual = Literal["scratch", "resume", "warmstart", "undecided", "contradiction"]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the decision is taken from."""

    settings: Settings
    state: RunState
    forced: bool
    """AMT_FORCE_SCRATCH is on, as the repository itself would read it."""
    forced_why: str
    resumes: bool
    """The repository passes ckpt_path to fit: only then is a resume one."""
    takes_init: bool
    """The repository has a flag for a warm-start checkpoint."""
    max_steps: int | None
    """Steps to train to, -1 for no limit, None where it cannot be told."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why declared and actual identity do not agree, and each way out."""

    message: str
    ways: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Identity:
    """What the run will be, with the evidence."""

    declared: Mode
    actual: Actual
    evidence: tuple[str, ...]
    refusal: Refusal | None = None
    checkpoint: Path | None = None
    """What it starts from."""
    start_step: int = 0
    """global_step it starts at."""
    aside: bool = False
    """The experiment's folder is moved aside first."""
    said: tuple[str, ...] = field(default=())
    """What the user is told aloud."""


def table(forced: bool, last: bool, init: bool) -> Actual:
    """The decision table: what a run is by its three facts."""
    if forced:
        return "contradiction" if init else "scratch"
    if last:
        return "undecided" if init else "resume"
    return "warmstart" if init else "scratch"


def decide(facts: Facts, typed: Typed) -> Identity:
    """Work out the identity; a refusal in it means that the run must not start."""
    mode = facts.settings.init.mode
    last = facts.state.last is not None
    aside = _moves_aside(facts)
    given = facts.settings.init.ckpt is not None or (mode == "warmstart" and facts.state.init is not None)
    identity = Identity(
        declared=mode,
        actual=table(facts.forced, last and not aside, given),
        evidence=tuple(_evidence(facts, given)),
        aside=aside,
        said=tuple(_said(facts, aside)),
    )
    rules: dict[Mode, Callable[[Facts, Typed], Refusal | None]] = {
        "scratch": _scratch,
        "resume": _resume,
        "warmstart": _warmstart,
    }
    refusal = rules[mode](facts, typed)
    if refusal:
        return replace(identity, refusal=refusal)
    start = {"scratch": None, "resume": facts.state.last, "warmstart": facts.state.init}[mode]
    step = (start.global_step or 0) if start and mode == "resume" else 0
    return replace(identity, checkpoint=start.path if start else None, start_step=step)


def _moves_aside(facts: Facts) -> bool:
    if facts.settings.init.mode == "resume" or not facts.state.found:
        return False
    forced_scratch = facts.forced and facts.state.last is not None and facts.settings.init.mode == "scratch"
    return facts.settings.init.overwrite or forced_scratch


def _evidence(facts: Facts, given: bool) -> list[str]:
    state = facts.state
    last = f"{describe(state.last)}" if state.last else "absent"
    lines = [
        f"{FORCE_SCRATCH}: {'on' if facts.forced else 'off'} ({facts.forced_why})",
        f"last.ckpt: {last} in {state.place.checkpoints}",
        f"init checkpoint: {describe(state.init) if state.init and given else 'none'}"
        + (f" (from {state.init_from})" if given and state.init_from else ""),
    ]
    newest = state.newest
    if state.last and newest and newest.path != state.last.path and _step(newest) > _step(state.last):
        lines.append(f"newest checkpoint: {newest.path.name} at global_step {newest.global_step}, not last.ckpt")
    return lines


def describe(ray: Xray) -> str:
    """One checkpoint in a few words: name, global_step, score, or what is wrong with it."""
    if not ray.whole:
        return f"{ray.path.name} ({ray.problem})"
    score = "" if ray.score is None else f", score {ray.score:.4f}"
    step = "no global_step" if ray.global_step is None else f"global_step {ray.global_step}"
    return f"{ray.path.name} ({step}{score})"


def _said(facts: Facts, aside: bool) -> list[str]:
    lines = []
    if facts.forced:
        lines.append(f"{FORCE_SCRATCH} is on: {facts.forced_why}")
    if aside:
        lines.append(f"{facts.state.place.experiment} is moved aside first; nothing is deleted")
    return lines


def _step(ray: Xray) -> int:
    return ray.global_step if ray.global_step is not None else -1


def _scratch(facts: Facts, typed: Typed) -> Refusal | None:
    drop = typed.changed(drop=["init.ckpt"])
    if facts.settings.init.ckpt is not None:
        if facts.forced:
            return _contradiction(facts, typed)
        return Refusal(
            f"init=scratch, but init.ckpt={facts.settings.init.ckpt} would make it a warm-start",
            (f"warm-start: {typed.changed('init=warmstart')}", f"scratch: {drop}"),
        )
    if facts.state.last is not None and not facts.forced and not facts.settings.init.overwrite:
        return Refusal(
            f"init=scratch, but {describe(facts.state.last)} lies in {facts.state.place.checkpoints}: "
            "this would be a resume",
            (
                f"resume: {typed.changed('init=resume', drop=['init.overwrite'])}",
                f"another experiment: {typed.changed(f'exp_id={facts.settings.exp_id}2')}",
                f"start over, the old folder is moved aside: {typed.changed('init.overwrite=true')}",
            ),
        )
    return None


def _contradiction(facts: Facts, typed: Typed) -> Refusal:
    return Refusal(
        f"{FORCE_SCRATCH} is on ({facts.forced_why}) and an init checkpoint is given: they contradict each other",
        (
            f"warm-start: env -u {FORCE_SCRATCH} {typed.changed('init=warmstart')}",
            f"scratch: {typed.changed('init=scratch', drop=['init.ckpt'])}",
        ),
    )


def _resume(facts: Facts, typed: Typed) -> Refusal | None:
    last, where = facts.state.last, facts.state.place
    if facts.settings.init.ckpt is not None:
        return Refusal(
            f"init=resume goes on from {where.last}; init.ckpt={facts.settings.init.ckpt} has no place in it",
            (
                f"resume: {typed.changed(drop=['init.ckpt'])}",
                f"warm-start from it: {typed.changed('init=warmstart')}",
            ),
        )
    if facts.settings.init.overwrite:
        return Refusal(
            "init.overwrite=true would move away what init=resume goes on from",
            (f"resume: {typed.changed(drop=['init.overwrite'])}",),
        )
    if facts.forced:
        return Refusal(
            f"init=resume, but {FORCE_SCRATCH} is on ({facts.forced_why}): this would be a scratch run",
            (f"resume: env -u {FORCE_SCRATCH} {typed}", f"scratch: {typed.changed('init=scratch')}"),
        )
    if last is None:
        return Refusal(
            f"init=resume, but there is no last.ckpt in {where.checkpoints}: this would be a scratch run",
            (*_restore_ways(facts), *_nearby_ways(facts, typed), f"scratch: {typed.changed('init=scratch')}"),
        )
    if not last.whole:
        return Refusal(f"init=resume, but {where.last} is not whole: {last.problem}", _restore_ways(facts))
    if not facts.resumes:
        return Refusal(
            "init=resume, but this repository never passes ckpt_path to fit: it would load weights only and "
            "start at step 0",
            (f"warm-start: {_warmstart_from(last, facts, typed)}",),
        )
    return _resume_steps(facts, last, typed)


def _resume_steps(facts: Facts, last: Xray, typed: Typed) -> Refusal | None:
    step, goal = last.global_step, facts.max_steps
    if step is None or goal is None or goal == -1 or goal > step:
        return None
    return Refusal(
        f"init=resume, but last.ckpt is at global_step {step} and max_steps is {goal}: the trainer would return at "
        "once, having trained nothing",
        (
            f"train on: {typed.changed(f'max_steps={step + max(step, 1)}')}",
            f"warm-start from it: {_warmstart_from(last, facts, typed)}",
        ),
    )


def _warmstart_from(ray: Xray, facts: Facts, typed: Typed) -> str:
    return typed.changed("init=warmstart", f"init.ckpt={ray.path}", f"exp_id={facts.settings.exp_id}2")


def _restore_ways(facts: Facts) -> tuple[str, ...]:
    """How to bring a whole last.ckpt back: from the newest whole checkpoint of the experiment."""
    import shlex

    newest, last = facts.state.newest, facts.state.place.last
    if newest is None:
        return ()
    quoted = [shlex.quote(str(p)) for p in (last, last.with_name("last.ckpt.broken"), newest.path)]
    mend = f"mv {quoted[0]} {quoted[1]} && " if facts.state.last is not None else ""
    return (f"go on from {describe(newest)}: {mend}cp {quoted[2]} {quoted[0]}",)


def _nearby_ways(facts: Facts, typed: Typed) -> tuple[str, ...]:
    ways = [
        f"warm-start from {describe(ray)}: {typed.changed('init=warmstart', f'init.ckpt={ray.path}')}"
        for ray in facts.state.nearby[:_SHOWN]
    ]
    return tuple(ways) or (f"no whole checkpoint was found in {facts.state.place.pattern}",)


def _warmstart(facts: Facts, typed: Typed) -> Refusal | None:
    init, last = facts.state.init, facts.state.last
    if facts.forced:
        return _contradiction(facts, typed)
    if init is None:
        named = f" ({facts.state.init_from} has none)" if facts.state.init_from else ""
        return Refusal(f"init=warmstart, but no checkpoint is given{named}: set init.ckpt", _nearby_ways(facts, typed))
    if not init.whole:
        return Refusal(f"init.ckpt={init.path}: {init.problem}{_quoting_hint(init)}", _nearby_ways(facts, typed))
    if not init.tensors:
        return Refusal(f"init.ckpt={init.path} holds no weights", _nearby_ways(facts, typed))
    if not facts.takes_init:
        return Refusal(
            "init=warmstart, but this repository has no flag for an init checkpoint: it would be a scratch run",
            (f"scratch: {typed.changed('init=scratch', drop=['init.ckpt'])}",),
        )
    if last is not None and not facts.settings.init.overwrite:
        return Refusal(
            f"init=warmstart, but {describe(last)} lies in {facts.state.place.checkpoints}: the repository's own "
            "precedence would decide, and usually resumes",
            (
                f"warm-start, the old folder is moved aside: {typed.changed('init.overwrite=true')}",
                f"warm-start elsewhere: {typed.changed(f'exp_id={facts.settings.exp_id}2')}",
                f"resume: {typed.changed('init=resume', drop=['init.ckpt'])}",
            ),
        )
    return None


def _quoting_hint(init: Xray) -> str:
    """A path that was quoted or escaped for Hydra, as its documentation teaches, is taken here as it stands."""
    text = str(init.path)
    if text.endswith(("'", '"')) or "\\" in text:
        return "; paths need no quotes or backslashes beyond the shell's"
    return ""
