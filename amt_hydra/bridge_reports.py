"""What the bridge reported from each rank, beside its plan in the record."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from amt_hydra.bridged import PLAN_FILE
from amt_hydra.readback import json_lines


def refusal(record: Path) -> str:
    """Why the bridge ended train.py; "" where it did not."""
    return next((str(event["message"]) for event in _events(record) if event.get("event") == "refused"), "")


def ranks(record: Path) -> tuple[int, ...]:
    """The ranks that went through the bridge with one and the same plan: that of rank 0."""
    plans = {event["rank"]: event["hash"] for event in _events(record) if event.get("event") == "plan"}
    return tuple(sorted(rank for rank, plan in plans.items() if plan == plans.get(0)))


def _events(record: Path) -> Iterator[Mapping[str, Any]]:
    for file in sorted(record.glob(f"{Path(PLAN_FILE).stem}-rank*.jsonl")):
        yield from json_lines(file)
