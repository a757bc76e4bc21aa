"""The batch of one optimizer step, over all ranks. Pure."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GlobalBatch:
    """What an optimizer step sees: local x devices x nodes x accumulate clips."""

    local: int
    """Clips of one rank and batch."""
    devices: int
    """Per node."""
    nodes: int
    accumulate: int

    @property
    def size(self) -> int:
        """Clips."""
        return self.local * self.ranks * self.accumulate

    @property
    def ranks(self) -> int:
        """Processes that train."""
        return self.devices * self.nodes

    def __str__(self) -> str:
        factors = [f"{self.local} clips per device", f"{self.devices} devices"]
        factors += [f"{self.nodes} nodes"] if self.nodes > 1 else []
        factors += [f"{self.accumulate} batches accumulated"] if self.accumulate > 1 else []
        return f"{self.size} ({' x '.join(factors)})"


def global_batch(value: Callable[[str], object]) -> GlobalBatch | None:
    """The global batch by the values of settings; None where one of its factors cannot be told."""
    local, devices, nodes = (value(key) for key in ("batch.local", "ddp.devices", "ddp.nodes"))
    accumulate = value("batch.accumulate")
    factors = (local, devices, nodes, 1 if accumulate is None else accumulate)
    if not all(isinstance(one, int) and not isinstance(one, bool) and one > 0 for one in factors):
        return None
    return GlobalBatch(*factors)  # type: ignore[arg-type] # all are whole numbers by now
