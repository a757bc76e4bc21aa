"""What we have written, read back. A file or line that is damaged, or of another version, tells nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def launches(records: Path) -> Iterator[dict[str, Any]]:
    """The records of an experiment's launches in `records`, the last one first; {} for one that is damaged."""
    for file in sorted(records.glob("[!.]*/record.json"), reverse=True):
        try:
            found = json.loads(_text(file))
        except (OSError, ValueError):
            found = {}
        yield found if isinstance(found, dict) else {}


def json_lines(file: Path) -> list[dict[str, Any]]:
    """The objects of a file with one per line, in their order; nothing where it is not there."""
    try:
        lines = _text(file).splitlines()
    except OSError:
        return []
    return [found for line in lines if isinstance(found := _parsed(line), dict)]


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="surrogateescape")


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:  # cut short by a kill, say
        return None
