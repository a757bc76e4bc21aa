"""Gradients that are not finite, by name."""

from __future__ import annotations

from typing import Any

_MOST_OVERFLOWS = 20
"""Steps in a row that a GradScaler may skip: it halves its scale at each, so by then it is no scale that is wrong."""


class Watch:
    """Looks at all gradients of a step; one question to the device where all is well."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.overflows = 0

    def look(self, trainer: Any, model: Any) -> None:
        """Raise FloatingPointError naming the first parameter whose gradient is not finite."""
        import torch

        named = [(name, p) for name, p in model.named_parameters() if p.grad is not None]
        if not named or bool(torch.stack([_finite(torch, p.grad) for _, p in named]).all()):
            self.overflows = 0
            return
        values = [name for name, p in named if not bool(_finite(torch, p.detach()))]
        where = "at step %d on rank %d" % (trainer.global_step, self.rank)
        if values:
            raise FloatingPointError(
                "the parameter %s is not finite %s, before its gradient is (%d such): an earlier step made it so"
                % (values[0], where, len(values))
            )
        if _scaler(trainer) is not None:
            self.overflows += 1
            if self.overflows < _MOST_OVERFLOWS:
                return
            where += ", the %dth overflow in a row under 16-mixed" % self.overflows
        bad = [name for name, p in named if not bool(_finite(torch, p.grad))]
        raise FloatingPointError(
            "the gradient of %s is not finite %s (%d of %d gradients)" % (bad[0], where, len(bad), len(named))
        )


def _finite(torch: Any, tensor: Any) -> Any:
    values = tensor.coalesce().values() if tensor.is_sparse else tensor
    return torch.isfinite(values).all()


def _scaler(trainer: Any) -> Any:
    """Return the GradScaler of 16-mixed: its overflow steps are skipped, and no fault."""
    return getattr(getattr(trainer, "precision_plugin", None), "scaler", None)
