"""What a sweep was asked to do: a line per point. How each stands is never written down, but looked at."""

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from amt_hydra.errors import AmtError
from amt_hydra.sweep.points import Point

FOLDER = "sweeps"
FILE = "ledger.jsonl"


def path_of(points: Sequence[Point]) -> Path:
    """Where the ledger of these points lies: the same sweep has the same one tomorrow."""
    outputs = next(point.outputs for point in points if point.outputs is not None)
    names = sorted(point.exp_id for point in points)
    mark = hashlib.sha256("\n".join(names).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return outputs / FOLDER / mark / FILE


def write(points: Sequence[Point], config_dir: str | None) -> Path:
    """Write the ledger, whole or not at all. Raises AmtError where it cannot be written."""
    file = path_of(points)
    text = "".join(json.dumps(_entry(point, config_dir), ensure_ascii=False) + "\n" for point in points)
    draft = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(prefix=".draft-", dir=file.parent)
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        Path(draft).replace(file)
    except OSError as error:
        if draft is not None:
            Path(draft).unlink(missing_ok=True)
        raise AmtError(
            f"the ledger of the sweep cannot be written to {file}: {error.strerror}",
            fix=["make room, or name another folder: paths.outputs=… or AMT_OUTPUTS"],
        ) from error
    return file


def _entry(point: Point, config_dir: str | None) -> dict[str, object]:
    return {
        "exp_id": point.exp_id,
        "signature": point.signature,
        "command": str(point.command(config_dir)),
        "words": list(point.words),
        "goal": point.goal,
        "folder": str(point.folder),
    }
