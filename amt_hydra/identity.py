"""Training identity: what a run declares itself to be, what it would be, and the facts that decide it.

Three facts decide: AMT_FORCE_SCRATCH, whether last.ckpt lies in the experiment's folder, and --init-ckpt.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from amt_hydra.checkpoint import Xray
from amt_hydra.env_switches import FORCE_SCRATCH
from amt_hydra.refusals import Facts, Refusal, Ways, refuse
from amt_hydra.runstate import describe
from amt_hydra.settings import Mode

Actual = Literal["scratch", "resume", "warmstart", "undecided", "contradiction"]


@dataclass(frozen=True, slots=True)
class Identity:
    """What the run will be, with the evidence."""

    declared: Mode
    actual: Actual
    evidence: tuple[str, ...]
    refusal: Refusal | None = None
    checkpoint: Path | None = None
    """What it starts from."""
    inside: Path | None = None
    """The path of that within the experiment's folder, where it lies there."""
    start_step: int = 0
    """global_step it starts at."""
    aside: bool = False
    """The experiment's folder is moved aside first."""
    said: tuple[str, ...] = ()
    """What the user is told aloud."""
    continues: str = ""
    """The beginning that a resume goes on with, e.g. "the warm-start of 2026-12-01T08:00:00Z"; "" where no record
    tells."""

    def __str__(self) -> str:
        return f"{self.actual} (continues {self.continues})" if self.continues else self.actual


def table(forced: bool, last: bool, init: bool) -> Actual:
    """The decision table: what a run is by its three facts."""
    if forced:
        return "contradiction" if init else "scratch"
    if last:
        return "undecided" if init else "resume"
    return "warmstart" if init else "scratch"


def decide(ways: Ways) -> Identity:
    """Work out the identity from the facts; a refusal in it, with its ways out, means that the run must not start."""
    facts = ways.facts
    mode, state = facts.settings.init.mode, facts.state
    aside = _moves_aside(facts)
    given = facts.settings.init.ckpt is not None or (mode == "warmstart" and state.init is not None)
    identity = Identity(
        declared=mode,
        actual=table(facts.forced, state.last is not None and not aside, given and facts.takes_init),
        evidence=tuple(_evidence(facts, given)),
        aside=aside,
        said=tuple(_said(facts, aside)),
    )
    if identity.actual == "resume" and not (mode == "resume" and facts.resumes):
        identity = replace(identity, actual="undecided" if facts.goes_on == "unknown" else facts.goes_on)
    refusal = refuse(ways)
    if refusal:
        return replace(identity, refusal=refusal)
    if mode == "resume" and state.last is not None:
        return replace(
            identity,
            checkpoint=state.last.path,
            start_step=state.last.global_step or 0,
            continues=state.begun,
        )
    if mode == "warmstart" and state.init is not None:
        return replace(identity, checkpoint=state.init.path, inside=state.init_inside)
    return identity


def _moves_aside(facts: Facts) -> bool:
    if facts.settings.init.mode == "resume" or not facts.state.found:
        return False
    forced_scratch = facts.forced and facts.state.last is not None and facts.settings.init.mode == "scratch"
    return facts.settings.init.overwrite or forced_scratch


def _evidence(facts: Facts, given: bool) -> list[str]:
    state = facts.state
    lines = [
        f"{FORCE_SCRATCH}: {'on' if facts.forced else 'off'} ({facts.forced_why})",
        f"last.ckpt: {describe(state.last) if state.last else 'absent'} in {state.place.checkpoints}",
        f"init checkpoint: {describe(state.init) if state.init and given else 'none'}"
        + (f" (from {state.init_from})" if given and state.init_from else ""),
    ]
    newest = state.newest
    if state.last and newest and newest.path != state.last.path and _step(newest) > _step(state.last):
        lines.append(f"newest checkpoint: {newest.path.name} at global_step {newest.global_step}, not last.ckpt")
    return lines


def _said(facts: Facts, aside: bool) -> list[str]:
    lines = []
    if facts.forced:
        lines.append(f"{FORCE_SCRATCH} is on: {facts.forced_why}")
    if aside:
        lines.append(f"{facts.state.place.experiment} is moved aside first; nothing is deleted")
    return lines


def _step(ray: Xray) -> int:
    return ray.global_step if ray.global_step is not None else -1
