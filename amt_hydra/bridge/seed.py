"""The plan's seed, in place of whichever train.py asks for."""

from __future__ import annotations

import functools
import multiprocessing
from typing import Any

from .hooks import Finder
from .session import Session

MODULES = ("lightning_fabric.utilities.seed", "lightning.fabric.utilities.seed")
"""Where the two packages define seed_everything: whoever imports it by another path has it from there."""


def hook(session: Session, finder: Finder) -> None:
    """Replace seed_everything before anything imports it."""
    if session.arguments("seed") is not None:
        for name in MODULES:
            finder.after.setdefault(name, []).append(functools.partial(_patch, session))


def _patch(session: Session, module: Any) -> None:
    original: Any = getattr(module, "seed_everything", None)
    if original is None:
        session.refuse("%s has no seed_everything: it cannot be replaced" % module.__name__)
    seed = session.arguments("seed")["seed"]
    first: list[int] = []

    @functools.wraps(original)
    def seed_everything(own: Any = None, *args: Any, **kwargs: Any) -> Any:
        own = kwargs.pop("seed", own)
        if multiprocessing.parent_process() is not None:  # a loader's worker, which takes a seed of its own
            return original(own, *args, **kwargs)
        value = seed if own is None else seed + own - (first or [own])[0]  # what it varies by itself, it still varies
        if own is not None and not first:
            first.append(own)
            if own != seed:
                session.say("seed: train.py asks for %r, and gets the plan's %d" % (own, seed), every=True)
        kwargs["workers"] = True
        return original(value, *args[1:], **kwargs)

    if "seed" in session.pending:  # at once, before train.py makes a model or a sampler
        original(seed, workers=True)
        session.done("seed", "seed_everything(%d, workers=True)" % seed)
    module.seed_everything = seed_everything
