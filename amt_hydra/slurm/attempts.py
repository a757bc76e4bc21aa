"""What the jobs of a point did, one line each: a job that never came to train leaves no record."""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from amt_hydra.readback import json_lines

FILE = "attempts.jsonl"
MOST_IN_VAIN = 3
"""Starts in a row from the same step, after which a job that Slurm starts again is ended."""


def file_of(records: Path) -> Path:
    """The file of a point, by the folder of its records."""
    return records.with_name(FILE)


def note(records: Path, **facts: Any) -> None:
    """Append one. A disk that is full must not end a training."""
    file = file_of(records)
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8", errors="surrogateescape") as out:
            out.write(json.dumps(facts, ensure_ascii=False) + "\n")
            out.flush()
            os.fsync(out.fileno())


def read(records: Path) -> list[dict[str, Any]]:
    """All of a point, in their order; a line that is damaged is left out."""
    return json_lines(file_of(records))


def requeued(attempts: Sequence[Mapping[str, Any]], job: str) -> int:
    """How often this job was requeued at the signal."""
    return sum(one.get("job") == job and "step" in one for one in attempts)


def in_vain(attempts: Sequence[Mapping[str, Any]], job: str, step: int) -> int:
    """How many starts of this job in a row, up to now, began at `step` as well."""
    begun = [one["from"] for one in attempts if one.get("job") == job and "from" in one]
    count = 0
    while begun and begun.pop() == step:
        count += 1
    return count
