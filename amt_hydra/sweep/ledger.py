"""What a sweep was asked to do: a line per point. How each stands is never written down, but looked at."""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from amt_hydra.errors import unwritable
from amt_hydra.readback import json_lines
from amt_hydra.slurm.place import Submitted
from amt_hydra.sweep.points import Point

FOLDER = "sweeps"
FILE = "ledger.jsonl"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a sweep's points have in common in the ledger."""

    launcher: str
    """The option of hydra/launcher."""
    gpus: tuple[str, ...] | None
    """Those that hydra.launcher.gpus names; None where nobody named any."""
    config_dir: str | None
    cwd: Path
    """Where it was asked for: relative paths among the words are meant from there."""


def path_of(points: Sequence[Point]) -> Path:
    """Where the ledger of these points lies: the same sweep has the same one tomorrow."""
    outputs = next(point.paths.outputs for point in points if point.paths is not None)
    names = sorted(point.exp_id for point in points)
    mark = hashlib.sha256("\n".join(names).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return outputs / FOLDER / mark / FILE


def write(
    points: Sequence[Point], asked: Asked, places: Mapping[str, Submitted] | None = None, file: Path | None = None
) -> Path:
    """Write the ledger, whole or not at all; with `file` into one that has further points, which stay as they are.

    A point that is not among `places` keeps the place in the queue that the ledger had for it. Raises AmtError where it
    cannot be written.
    """
    file, old = file or path_of(points), [] if file is None else json_lines(file)
    before = {entry.exp_id: entry.place for entry in _entries(file)}
    known = {**before, **(places or {})}
    written = {one["exp_id"]: one for one in old if "exp_id" in one}
    written |= {point.exp_id: _entry(point, asked, known.get(point.exp_id)) for point in points}
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in written.values())
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _replace(file, text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise unwritable("the ledger of the sweep", file, error) from error
    return file


@contextlib.contextmanager
def kept(file: Path, but: type[Exception]) -> Iterator[None]:
    """Where an error comes out of the block, have the ledger be as it was before; `but` where it is this one."""
    before = file.read_bytes() if file.exists() else None
    try:
        yield
    except but:
        raise
    except BaseException:
        if before is None:
            file.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # something else lies there
                file.parent.rmdir()
                file.parent.parent.rmdir()
        else:
            _replace(file, before)
        raise


def _replace(file: Path, content: bytes) -> None:
    """Give the file its new content, whole or not at all."""
    handle, draft = tempfile.mkstemp(prefix=".draft-", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        Path(draft).replace(file)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True)
class Entry:
    """One point, as its sweep was last asked for."""

    sweep: str
    """The name of the ledger's folder."""
    exp_id: str
    signature: str
    command: str
    """The run of this point alone."""
    words: tuple[str, ...]
    """The overrides that the sweep gave it."""
    asked: Asked
    place: Submitted | None
    """Its place in Slurm's queue; None where it was not submitted."""
    goal: int | None
    """The step it is to reach."""
    mode: Literal["min", "max"]
    records: Path
    checkpoints: Path
    lock: Path


def read(outputs: Path) -> list[Entry]:
    """Every point of every sweep, that which was asked for last at the end. A line that is damaged is left out."""
    files = sorted((outputs / FOLDER).glob(f"*/{FILE}"), key=lambda file: (file.stat().st_mtime_ns, file))
    return [entry for file in files for entry in _entries(file)]


def _entries(file: Path) -> list[Entry]:
    return [entry for found in json_lines(file) if (entry := _read(file.parent.name, found))]


def _read(sweep: str, found: Mapping[str, Any]) -> Entry | None:
    try:
        slurm, gpus = found["slurm"], found["gpus"]
        return Entry(
            sweep=sweep,
            exp_id=found["exp_id"],
            signature=found["signature"],
            command=found["command"],
            words=tuple(found["words"]),
            asked=Asked(found["launcher"], gpus and tuple(gpus), found["config_dir"], Path(found["cwd"])),
            place=slurm and Submitted(slurm["name"], slurm["task"], slurm["job"]),
            goal=found["goal"],
            mode=found["mode"],
            records=Path(found["records"]),
            checkpoints=Path(found["checkpoints"]),
            lock=Path(found["lock"]),
        )
    except (KeyError, TypeError):
        return None


def _entry(point: Point, asked: Asked, place: Submitted | None) -> dict[str, object]:
    assert point.paths is not None  # a point that could not be composed is refused, and then no ledger is written
    return {
        "exp_id": point.exp_id,
        "signature": point.signature,
        "command": str(point.command(asked.config_dir)),
        "words": list(point.asked),
        "launcher": asked.launcher,
        "gpus": asked.gpus,
        "config_dir": asked.config_dir,
        "cwd": str(asked.cwd),
        "slurm": None if place is None else asdict(place),
        "goal": point.goal,
        "mode": point.mode,
        "records": str(point.paths.records),
        "checkpoints": str(point.paths.checkpoints),
        "lock": str(point.paths.lock),
    }
