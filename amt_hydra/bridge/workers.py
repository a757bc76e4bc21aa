"""Processes that multiprocessing spawns from train.py: its modules are imported anew there, and need the plan too.

Forked ones have them as they are.
"""

from __future__ import annotations

import multiprocessing.spawn
import os
from typing import Any

from .hooks import Finder
from .session import Session

_ENTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run.py")


def hook(session: Session, finder: Finder) -> None:
    """Have them import the bridge where they would import train.py; it goes on to that."""
    original: Any = getattr(multiprocessing.spawn, "get_preparation_data", None)
    if original is None:
        session.refuse("this Python's multiprocessing has no get_preparation_data: it cannot be patched")

    def prepared(name: Any) -> Any:
        data = original(name)
        main = data.get("init_main_from_path")
        if main is not None and os.path.realpath(main) == os.path.realpath(session.train):
            data["init_main_from_path"] = _ENTRY
        return data

    multiprocessing.spawn.get_preparation_data = prepared
