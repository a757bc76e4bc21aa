"""The record of a launch: written whole or not at all, before train.py starts, and completed when it has ended."""

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from amt_hydra.errors import AmtError
from amt_hydra.overrides import looks_secret

FILE = "record.json"
LOG = "output.log"
_KEPT_VARIABLES = re.compile(r"AMT_\w+|CUDA_VISIBLE_DEVICES|SLURM_JOB_\w+")
_VERSIONS = ("amt-hydra", "hydra-core", "omegaconf", "torch", "lightning", "wandb", "numpy")
_ASSIGNED_SECRET = re.compile(r"(?i)(\b[\w.-]*(?:api_?key|token|secret|passw(?:or)?d)[\w.-]*['\"]?\s*[:=]\s*)(\S.*)")
_SHORTEST_SECRET = 6  # shorter values would redact half of every text


def create(records: Path, content: Mapping[str, Any], files: Mapping[str, str], secrets: Iterable[str]) -> Path:
    """Make a record folder in `records` that no other launch has, holding `content` and further text `files`.

    It appears under its name with everything in it. Raises AmtError where it cannot be written; nothing is left then.
    """
    try:
        records.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=records))
    except OSError as error:
        raise _unwritable(records, error) from error
    try:
        draft.chmod(0o755)
        _write(draft / FILE, redact(_json(content), secrets))
        for name, text in files.items():
            _write(draft / name, redact(text, secrets))
        return _place(draft, records)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise _unwritable(records, error) from error


def complete(folder: Path, outcome: Mapping[str, Any], secrets: Iterable[str]) -> None:
    """Add the outcome to a record, atomically. Raises AmtError where it cannot be written; it is then as before."""
    file = folder / FILE
    draft = folder / f".{FILE}.draft"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        _write(draft, redact(_json({**content, "outcome": dict(outcome)}), secrets))
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise _unwritable(folder, error) from error


def environment_kept(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables whose values a record keeps."""
    return {n: v for n, v in sorted(environ.items()) if _KEPT_VARIABLES.fullmatch(n) and not looks_secret(n)}


def secrets_of(environ: Mapping[str, str]) -> list[str]:
    """Values of secret-looking variables, longest first: none of them may reach a file of ours."""
    values = {v for n, v in environ.items() if looks_secret(n) and len(v) >= _SHORTEST_SECRET}
    return sorted(values, key=len, reverse=True)


def redact(text: str, secrets: Iterable[str]) -> str:
    """Replace every known secret by asterisks."""
    for secret in secrets:
        text = text.replace(secret, "***").replace(json.dumps(secret)[1:-1], "***")
    return text


def redact_assignments(text: str) -> str:
    """Blank what source code or a diff assigns to a secret-looking name."""
    return _ASSIGNED_SECRET.sub(r"\1***", text)


def versions() -> dict[str, str]:
    """Versions of what is installed beside us, without importing it."""
    found = {}
    for name in _VERSIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _place(draft: Path, records: Path) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    number = 1
    while True:
        folder = records / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            folder.mkdir()  # claims the name; two launches in one second get two
        except FileExistsError:
            number += 1
            continue
        draft.replace(folder)  # onto an empty folder: atomic
        return folder


def _write(file: Path, text: str) -> None:
    with file.open("w", encoding="utf-8", errors="surrogateescape") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n"


def _unwritable(folder: Path, error: OSError) -> AmtError:
    return AmtError(
        f"the record cannot be written to {folder}: {error.strerror or error}",
        fix=["make room, or name another folder: paths.outputs=… or AMT_OUTPUTS"],
    )


def now() -> str:
    """The time, UTC, ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
