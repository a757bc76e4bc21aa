"""Writes a small repository and reads it."""

import textwrap
from pathlib import Path

from amt_hydra.repository import Repository, read


def repository(root: Path, train: str = "", **modules: str) -> Repository:
    """Write a repository of the home layout and read it; keywords are module names, "a__b" means a/b.py."""
    for name, text in {"train": train, **modules}.items():
        path = root / "src" / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return read(root)
