"""The bridge from its start to the end of train.py."""

from __future__ import annotations

import builtins
import os
import sys
import time
import types
from typing import Any

from . import csvlog, loads, seed, trainer, values, workers
from .hooks import Finder
from .session import VARIABLE, Session, is_on

_LONGEST_WAIT = 60  # seconds that a rank waits for rank 0 to move last.ckpt
_CAPABILITIES = (
    "resume",
    "warmstart",
    "unpickle",
    "force_scratch",
    "last",
    "csv",
    "grad_finite",
    "detect_anomaly",
    "seed",
)


def main() -> None:
    """Run the plan's train.py as __main__, with what the plan adds."""
    file = os.environ.get(VARIABLE)
    if not file:
        sys.exit("%s is not set: this is started by amt_hydra, in place of train.py" % VARIABLE)
    session = Session(file)
    session.say("rank %d: plan %s" % (session.rank, session.hash), every=True)
    session.report("plan", hash=session.hash)
    unknown = sorted(set(session.capabilities) - set(_CAPABILITIES))
    if unknown:
        session.refuse("the plan asks for %s, which this bridge does not have" % ", ".join(unknown))
    if session.arguments("force_scratch") is not None:
        _force_scratch(session)
    finder = Finder()
    for part in (values, loads, csvlog, seed, trainer, workers):
        part.hook(session, finder)
    finder.install()
    _run(session, finder)
    session.refuse_pending("train.py has ended")
    session.report("end")


def _force_scratch(session: Session) -> None:
    """Take last.ckpt out of the way before train.py looks for it: every repository finds it by its name."""
    session.pending.discard("force_scratch")
    last = os.path.join(session.checkpoints, "last.ckpt")
    if not is_on("AMT_FORCE_SCRATCH") or not os.path.lexists(last):
        return
    if session.rank == 0:
        aside = "%s.before-%s" % (last, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
        os.rename(last, aside)
        session.say("AMT_FORCE_SCRATCH is on: last.ckpt is left behind as %s" % aside)
        session.report("patched", what="force_scratch", detail=aside)
        return
    deadline = time.monotonic() + _LONGEST_WAIT
    while os.path.lexists(last):
        if time.monotonic() > deadline:
            session.refuse("AMT_FORCE_SCRATCH is on, and rank 0 has not moved %s away" % last)
        time.sleep(0.1)


def worker(names: Any) -> None:
    """Execute train.py for a process that multiprocessing has spawned from it, with the plan's values."""
    session = Session(os.environ[VARIABLE], worker=True)
    finder = Finder()
    for part in (values, loads, csvlog, workers):
        part.hook(session, finder)
    finder.install()
    names["__file__"] = session.train
    exec(_code(session, finder), names)


def _code(session: Session, finder: Finder) -> Any:
    with open(session.train, "rb") as handle:
        source = handle.read()
    changed = finder.sources.get(os.path.realpath(session.train))
    if changed is not None:
        return changed(source, session.train)
    return compile(source, session.train, "exec", dont_inherit=True)


def _run(session: Session, finder: Finder) -> None:
    """Execute train.py as Python itself would. Not by runpy: it rewrites the argv that Lightning's ranks start from."""
    code = _code(session, finder)
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=session.train, __builtins__=builtins, __spec__=None, __loader__=None)
    sys.modules["__main__"] = module
    if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):  # not under python -P
        sys.path[0] = os.path.dirname(session.train)
    try:
        exec(code, module.__dict__)
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
