"""One point run on this machine, as the command that a user could paste."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amt_hydra.errors import INTERRUPTED
from amt_hydra.launch.processes import tie_to_parent
from amt_hydra.sweep.points import Point


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
    def ended_the_sweep(self) -> bool:
        """Whether no further point is to be started: Ctrl-C, or a failure under sweep.fail_fast."""
        return self.code == INTERRUPTED or (self.code != 0 and self.point.fail_fast)


def run_point(point: Point, environ: Mapping[str, str], cwd: Path, config_dir: str | None) -> Finished:
    """Run it to its end. What it prints goes to our stderr; Ctrl-C is passed on to it, and it ends when we do."""
    folder = [] if config_dir is None else ["--config-dir", config_dir]
    process = subprocess.Popen(
        [sys.executable, "-m", "amt_hydra", "train", "--json", *folder, "--", *point.words],
        env=dict(environ),
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        process_group=0,  # the terminal's Ctrl-C reaches us, and it once, by way of us
        preexec_fn=tie_to_parent(signal.SIGTERM, os.getpid()),  # noqa: PLW1509 - no other thread runs
    )
    out = _waited(process)
    code = process.returncode
    return Finished(point, 128 - code if code < 0 else code, *_told(out, code))


def _waited(process: "subprocess.Popen[bytes]") -> bytes:
    while True:
        try:
            return process.communicate()[0]
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)


def _told(out: bytes, code: int) -> tuple[str, float | None]:
    """The verdict and the best score, by the JSON document on its stdout."""
    try:
        document: dict[str, Any] = json.loads(out.decode("utf-8", "replace"))
    except ValueError:
        return f"ended with exit code {code}, and said nothing", None
    if "verdict" in document:
        return str(document["verdict"]), document.get("best")
    if "error" in document:
        return str(document["error"]["message"]), None
    errors = [f["message"] for f in document.get("findings", ()) if f["severity"] == "error"]
    return "refused: " + "; ".join(errors), None
