"""What checkpoints hold, compared."""

from typing import Any

import torch


def same(one: Any, two: Any) -> bool:
    """Bit for bit, through mappings and lists."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[k], two[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(same(a, b) for a, b in zip(one, two, strict=True))
    return bool(one == two)
