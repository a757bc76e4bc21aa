"""Where a learning-rate schedule ends, by the state of it that a checkpoint holds. Pure."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeGuard

from amt_hydra.checkpoint import Xray


@dataclass(frozen=True, slots=True)
class End:
    """The last optimizer step of a schedule that a resume brings back."""

    step: int
    beyond: Literal["climbs", "raises"]
    """What the scheduler does after it."""
    read: str
    """What says so in the checkpoint: "T_max 90 after 10 steps"."""


def restored_end(ray: Xray) -> End | None:
    """The end that stands in the state of a scheduler; None where none does, or its steps are not the run's.

    torch's schedulers take T_max and total_steps from the state that they load (load_state_dict of
    torch/optim/lr_scheduler.py updates __dict__ with it), so those of a new max_steps are lost. Beyond T_max a cosine
    climbs as it fell; a one-cycle schedule raises ValueError.
    """
    for state in ray.schedulers:
        steps = state.get("last_epoch")
        if isinstance(steps, int) and ray.global_step is not None and abs(steps - ray.global_step) <= 1:
            for end in _ends(state, 0):
                return end
    return None


def _ends(state: Mapping[str, object], start: int) -> Iterator[End]:
    length, total = state.get("T_max"), state.get("total_steps")
    if _is_count(length):
        after = f" after {start} steps" if start else ""
        yield End(start + length, "climbs", f"T_max {length}{after}")
    elif _is_count(total) and "_schedule_phases" in state:
        yield End(start + total, "raises", f"total_steps {total}")
    inner, milestones = state.get("_schedulers"), state.get("_milestones")
    if isinstance(inner, list):  # SequentialLR: each starts where the one before it ends
        starts = [0, *milestones] if isinstance(milestones, list) else []
        for part, begin in zip(inner, starts, strict=False):
            if isinstance(part, Mapping) and isinstance(begin, int):
                yield from _ends(part, start + begin)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def rates(ray: Xray) -> tuple[list[float], list[float]]:
    """The base learning rates of the parameter groups, and those at the checkpoint's step; each once."""
    groups = [group for groups in ray.optimizer_groups for group in groups]
    base = [group.get("initial_lr", group.get("lr")) for group in groups]
    return _numbers(base), _numbers([group.get("lr") for group in groups])


def _numbers(values: list[object]) -> list[float]:
    return list(dict.fromkeys(float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)))


def cosine(step: int, length: int) -> float:
    """The share of the base rate that a half cosine of this length leaves at a step."""
    return (1 + math.cos(math.pi * min(step, length) / length)) / 2
