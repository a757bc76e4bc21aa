"""Real processes: a launcher of its own, children that misbehave, and a look at /proc instead of sleeping."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from amt_hydra.launch.processes import start_mark

ROOT = Path(__file__).resolve().parents[2]

LAUNCHER = """
import contextlib, json, os, sys
from pathlib import Path
from amt_hydra.launch.lock import Lock
from amt_hydra.launch.run import run
job = json.loads(sys.argv[1])
with contextlib.ExitStack() as stack:
    lock = stack.enter_context(Lock(Path(job["lock"]))) if job["lock"] else None
    ended = run(job["argv"], dict(os.environ), Path(job["cwd"]), Path(job["log"]), lock, **job["options"])
Path(job["ended"]).write_text(json.dumps([ended.code, ended.signal, ended.interrupted]))
sys.exit(ended.code)
"""


def wait_until(what: Callable[[], Any], seconds: float = 20.0) -> Any:
    """Return the first true value of `what()`; fail after a generous deadline."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"did not happen within {seconds} s")


def gone(*pids: int) -> bool:
    return not any(start_mark(pid) for pid in pids)


class Scene:
    """A folder, the scripts in it, and launchers started there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "train.log"
        self.lock = folder / "x.lock"
        self.started: list[subprocess.Popen[bytes]] = []

    def script(self, text: str) -> list[str]:
        """Return the command of a script that has `note(name)`: it writes its pid to the file `name`."""
        head = """
            import os, signal, subprocess, sys, time
            def note(name):
                with open(name + ".part", "w") as file:
                    file.write(str(os.getpid()))
                os.rename(name + ".part", name)
        """
        path = self.folder / f"script{len(list(self.folder.glob('script*')))}.py"
        path.write_text(textwrap.dedent(head) + textwrap.dedent(text))
        return [sys.executable, str(path)]

    def launch(self, text: str, prefix: tuple[str, ...] = (), lock: bool = False, **rest: Any) -> Any:
        """Start a launcher process that runs the script `text`; keywords are run()'s options or Popen's."""
        options = {key: rest.pop(key) for key in ("grace_s", "linger_s", "attach", "ask") if key in rest}
        job = {
            "argv": self.script(text),
            "cwd": str(self.folder),
            "log": str(rest.pop("log", self.log)),
            "lock": str(self.lock) if lock else None,
            "ended": str(self.folder / "ended.json"),
            "options": options,
        }
        launcher = subprocess.Popen(
            [*prefix, sys.executable, "-c", LAUNCHER, json.dumps(job)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **rest},
        )
        self.started.append(launcher)
        return launcher

    def pid(self, name: str) -> int:
        """Return the pid that a script has noted as `name`, once it has."""
        path = self.folder / name
        wait_until(lambda: path.exists() and path.read_text() != "")  # it may be there before what it says
        return int(path.read_text())

    def supervisor(self, launcher: Any) -> int:
        """Return the pid of the launcher's supervisor, once it is there."""

        def find() -> int | None:
            tasks = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
            return int(tasks[0]) if tasks else None

        return int(wait_until(find))

    def ended(self) -> list[Any]:
        """Return code, signal and interrupted of the run, once it has ended."""
        path = self.folder / "ended.json"
        wait_until(lambda: path.exists() and path.read_text())
        return list(json.loads(path.read_text()))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    for launcher in scene.started:
        if launcher.poll() is None:
            launcher.send_signal(signal.SIGKILL)
        launcher.communicate()


@pytest.fixture
def eventually() -> Callable[..., Any]:
    return wait_until


@pytest.fixture
def is_gone() -> Callable[..., bool]:
    return gone
