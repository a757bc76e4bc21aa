"""The record of a launch: written whole or not at all, before train.py starts, and completed when it has ended."""

import contextlib
import errno
import json
import math
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from amt_hydra.errors import unwritable
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
    known = list(secrets)
    draft: Path | None = None
    with no_empty_folders(records):
        try:
            records.mkdir(parents=True, exist_ok=True)
            draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=records))
            draft.chmod(0o755)
            _write(draft / FILE, _json(content, known))
            for name, text in files.items():
                _write(draft / name, redact(text, known))
            return _place(draft, records)
        except BaseException as error:
            if draft is not None:
                shutil.rmtree(draft, ignore_errors=True)
            if isinstance(error, OSError):
                raise unwritable("the record", records, error) from error
            raise


@contextlib.contextmanager
def no_empty_folders(folder: Path) -> Iterator[None]:
    """Where an error comes out of the block, take away the folders that were made in it up to `folder`, if empty."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    except BaseException:
        for path in missing:
            with contextlib.suppress(OSError):  # never made, or another launch is in it by now
                path.rmdir()
        raise


def complete(folder: Path, outcome: Mapping[str, Any], secrets: Iterable[str]) -> None:
    """Add the outcome to a record, atomically. Raises AmtError where it cannot be written; it is then as before."""
    file = folder / FILE
    draft = folder / f".{FILE}.draft"
    try:
        content = json.loads(file.read_text(encoding="utf-8", errors="surrogateescape"))
        _write(draft, _json({**content, "outcome": outcome}, list(secrets)))
        draft.replace(file)
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise unwritable("the record", folder, error) from error


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
        text = text.replace(secret, "***")
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
    """Give the finished draft its name. A record is never empty, so no rename falls on another launch's."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    number = 1
    while True:
        try:
            return draft.rename(records / (stamp if number == 1 else f"{stamp}-{number}"))
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise
            number += 1


def _write(file: Path, text: str) -> None:
    with file.open("w", encoding="utf-8", errors="surrogateescape") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())


def _json(content: Mapping[str, Any], secrets: Sequence[str]) -> str:
    return json.dumps(_clean(content, secrets), indent=2, ensure_ascii=False) + "\n"


def _clean(value: Any, secrets: Sequence[str]) -> Any:
    """Plain values without secrets: before they are JSON, whose quoting would hide one, and which must stay JSON."""
    if isinstance(value, Mapping):
        return {redact(str(key), secrets): _clean(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item, secrets) for item in value]
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return redact(str(value), secrets)  # text, paths, and the numbers that JSON does not know


def now() -> str:
    """The time, UTC, ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
