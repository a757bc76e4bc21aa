"""torch.load of exactly the checkpoints that the plan names: with the classes that they hold."""

from __future__ import annotations

import functools
import os
from typing import Any

from .hooks import Finder
from .session import Session


def hook(session: Session, finder: Finder) -> None:
    """Widen torch.load for checkpoints that its weights_only default refuses."""
    paths = set()
    for name in ("resume", "warmstart", "unpickle"):
        arguments = session.arguments(name)
        if arguments and arguments.get("pickled", True):
            paths.add(os.path.realpath(arguments["ckpt"]))
    if paths:
        finder.after.setdefault("torch", []).append(lambda torch: _wrap(session, torch, paths))


def _wrap(session: Session, torch: Any, paths: Any) -> Any:
    original = torch.load

    @functools.wraps(original)
    def load(f: Any, *args: Any, **kwargs: Any) -> Any:
        if _real_path(f) in paths:
            kwargs["weights_only"] = False
            session.done("unpickle", "weights_only=False for %s" % _real_path(f))
        return original(f, *args, **kwargs)

    torch.load = load


def _real_path(file: str) -> Any:
    """Return the real path of what torch.load is given: a path, or an open file, fsspec's included."""
    if not isinstance(file, (str, os.PathLike)):
        file = getattr(file, "path", None) or getattr(file, "name", None)
    return os.path.realpath(os.fspath(file)) if isinstance(file, (str, os.PathLike)) else None
