"""The optimizers by the family's names, and the learning rate as a function of the step."""

import math
from collections.abc import Callable
from typing import Any

import torch


class AdamWScale(torch.optim.AdamW):
    """AdamW whose every step, weight decay included, is scaled by the parameter's RMS (at least 1e-3)."""

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Make one step."""
        with torch.enable_grad():
            loss = closure() if closure else None
        parameters = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        before = [p.clone() for p in parameters]
        super().step()
        for parameter, old in zip(parameters, before, strict=True):
            scale = old.square().mean().sqrt().clamp(min=1e-3)
            parameter.copy_(old + scale * (parameter - old))
        return loss


OPTIMIZERS: dict[str, Any] = {"adamw": torch.optim.AdamW, "adamwscale": AdamWScale, "adafactor": torch.optim.Adafactor}


def rate_at(step: int, scheduler: str, warmup_steps: int, total_steps: int) -> float:
    """Return the share of the peak learning rate for optimizer step `step`, counted from 0.

    Linear up to the peak over `warmup_steps`, then constant, or a cosine that reaches zero at `total_steps`.
    """
    if step < warmup_steps:
        return (step + 1) / (warmup_steps + 1)
    if scheduler == "constant":
        return 1.0
    progress = min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps))
    return 0.5 * (1.0 + math.cos(math.pi * progress))
