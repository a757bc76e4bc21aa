"""Points run on this machine, each as the command that a user could paste; as many at once as there are slots."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from amt_hydra.errors import INTERRUPTED, Never
from amt_hydra.launch.processes import tie_to_parent
from amt_hydra.sweep.points import Point

_LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True)
class Finished:
    """How a point ended."""

    point: Point
    code: int
    """The exit code of its run."""
    verdict: str
    best: float | None
    """The best monitored value among the checkpoints kept."""

    @property
    def ends_the_sweep(self) -> bool:
        """Whether no further point is to be started: Ctrl-C, or a failure under sweep.fail_fast."""
        return self.code == INTERRUPTED or (self.code != 0 and self.point.fail_fast)


class Slots(Protocol):
    """What points that run at the same time share."""

    full: str
    """Why a point has to wait although none of ours runs."""
    quiet: bool
    """Whether several may run at once, so that what they print would run together: it is in their logs then."""

    def never(self, point: Point) -> Never | None:
        """Why a point can never get what it needs; None where it can."""

    def take(self, point: Point) -> Mapping[str, str] | None:
        """Reserve what a point needs; returns the variables by which it gets that, or None where it has to wait."""

    def give_back(self, point: Point) -> None:
        """Release what was reserved for it."""


class OneAtATime:
    """The whole machine for each."""

    full = ""
    quiet = False

    def __init__(self) -> None:
        self._taken = False

    def never(self, point: Point) -> Never | None:
        """It always can."""
        del point
        return None

    def take(self, point: Point) -> Mapping[str, str] | None:
        """Reserve the machine."""
        del point
        if self._taken:
            return None
        self._taken = True
        return {}

    def give_back(self, point: Point) -> None:
        """Release it."""
        del point
        self._taken = False


@dataclass(frozen=True, slots=True)
class Running:
    """A point that runs as a command of its own."""

    point: Point
    process: "subprocess.Popen[bytes]"
    out: IO[bytes]


def run_points(
    points: Sequence[Point], slots: Slots, environ: Mapping[str, str], cwd: Path, config_dir: str | None
) -> Iterator[Point | Finished | str]:
    """Run points to their ends: yields each point as it is started, how it ended when it has, and once why all wait.

    Ctrl-C is passed on to all that run; after it, or after a failure under sweep.fail_fast, none is started. They end
    when this process does.
    """
    waiting, going = list(points), True
    running: list[Running] = []
    told = False
    while running or (waiting and going):
        try:
            for one in [one for one in running if one.process.poll() is not None]:
                running.remove(one)
                slots.give_back(one.point)
                end = finished(one)
                going &= not end.ends_the_sweep
                yield end
            given = slots.take(waiting[0]) if waiting and going else None
            if given is not None:
                point = waiting.pop(0)
                yield point
                running.append(start(point, {**environ, **given}, cwd, config_dir, quiet=slots.quiet))
            elif running:
                time.sleep(_LOOK_EVERY_S)
            elif waiting and going:  # what it needs is in somebody else's hands
                if not told:
                    told = True
                    yield slots.full
                time.sleep(10 * _LOOK_EVERY_S)
        except KeyboardInterrupt:
            going = False
            for one in running:
                one.process.send_signal(signal.SIGINT)


def start(point: Point, environ: Mapping[str, str], cwd: Path, config_dir: str | None, *, quiet: bool) -> Running:
    """Start it; what it says goes to our stderr, unless `quiet`. It gets SIGTERM when this process dies."""
    folder = [] if config_dir is None else ["--config-dir", config_dir]
    out = tempfile.TemporaryFile()  # noqa: SIM115 # open until the process has ended; a pipe would have to be read
    process = subprocess.Popen(
        [sys.executable, "-m", "amt_hydra", "train", "--json", *folder, "--", *point.words],
        env=dict(environ),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.DEVNULL if quiet else None,
        process_group=0,  # the terminal's Ctrl-C reaches us, and it once, by way of us
        preexec_fn=tie_to_parent(signal.SIGTERM, os.getpid()),  # noqa: PLW1509 - no other thread runs
    )
    return Running(point, process, out)


def finished(one: Running) -> Finished:
    """How it ended. It has."""
    code = one.process.wait()
    with one.out as out:
        out.seek(0)
        verdict, best = _told(out.read(), code)
    return Finished(one.point, 128 - code if code < 0 else code, verdict, best)


def _told(out: bytes, code: int) -> tuple[str, float | None]:
    """The verdict and the best score, by the JSON document on its stdout."""
    try:
        document: dict[str, Any] = json.loads(out.decode("utf-8", "replace"))
    except ValueError:
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"{how}, and said nothing", None
    if "verdict" in document:
        return str(document["verdict"]), document.get("best")
    if "error" in document:
        return str(document["error"]["message"]), None
    errors = [f["message"] for f in document.get("findings", ()) if f["severity"] == "error"]
    return "refused: " + "; ".join(errors), None
