"""The process between the launcher and train.py: started by path, in a session of its own, standard library only.

It is given one number, a socket to the launcher. The first line that comes in is what to run, as JSON (there, and not
in argv or the environment, because of `ps`); further lines are signals to pass on; end of file means that the launcher
is gone, and then train.py has to go as well. Lines that go out: started, failed or ended.

    terminate   SIGTERM to train.py, `grace_s` seconds, SIGKILL to it and to all that descend from it
    interrupt   SIGINT to train.py; the second time SIGKILL
    train.py has ended: what it left behind has `linger_s` seconds to end by itself, then the same again

SIGTERM and SIGINT go to train.py alone: its loader workers would die of them, and it of that, before it has saved. What
is asked to end by a command of its own (`ask`) is srun, which kills its ranks at SIGTERM, and leaves them when killed.
"""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))  # started by path; last, so that nothing is shadowed

from amt_hydra.launch.family import Family
from amt_hydra.launch.output import Screen
from amt_hydra.launch.processes import become_subreaper, tie_to_parent
from amt_hydra.launch.stream import Stream

_NOT_OURS = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that reach train.py by way of the launcher only. Sent to this process they do nothing, rather than end it."""
_TICK_S = 0.1
_KILLED_S = 5.0
"""Seconds to wait for what train.py left behind after SIGKILL: a process stuck in a driver may take for ever."""


class Supervisor:
    """Runs one train.py to its end; every method is called from the one loop in `run`."""

    def __init__(self, link: socket.socket, job: dict[str, Any], wake: int, subreaper: bool) -> None:
        self._link = link
        self._job = job
        self._wake = wake
        self._subreaper = subreaper
        self._family: Family
        self._stream = None if job["attach"] else Stream(job["pty"])
        self._notes = Screen(2)
        self._incoming = b""
        self._interrupts = 0
        self._seconds = 0.0
        self._asked = False
        self._kill = signal.SIGTERM if job["ask"] else signal.SIGKILL
        self._cleaning = False
        self._kill_at: float | None = None
        self._give_up_at: float | None = None
        self._linger_until: float | None = None

    def run(self, early: bytes) -> None:
        """Start train.py, wait until it and all its descendants are gone, and report each step to the launcher.

        `early` is what the launcher has sent after the job by now.
        """
        try:
            child = self._start()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            in_cwd = getattr(error, "filename", None) == _raw(self._job["cwd"])
            self._report({"failed": {"errno": getattr(error, "errno", None), "cwd": in_cwd, "text": str(error)}})
            return
        began = time.monotonic()
        self._family = Family(child.pid, own_group=self._stream is not None, subreaper=self._subreaper)
        self._report({"started": child.pid})
        if self._stream is not None:
            self._stream.open(Path(os.fsdecode(_raw(self._job["log"]))), self._note)
        self._obey(early)
        while not self._finished():
            self._wait()
            self._family.reap()
            if self._family.status is not None and self._linger_until is None:
                self._seconds = time.monotonic() - began
                self._linger_until = time.monotonic() + self._job["linger_s"]
            self._keep_deadlines()
        child.returncode = 0  # it was reaped here: Popen need not look for it
        self._finish()

    def _start(self) -> "subprocess.Popen[bytes]":
        end = None if self._stream is None else self._stream.end
        try:
            return self._run(
                self._job["argv"],
                preexec_fn=tie_to_parent(self._kill, os.getpid()),  # no other thread runs yet
                stdin=None if end is None else subprocess.DEVNULL,
                stdout=end,
                stderr=end,
                start_new_session=end is not None,
            )
        finally:
            if end is not None:
                os.close(end)

    def _run(self, argv: list[str], **options: Any) -> "subprocess.Popen[bytes]":
        env = {_raw(name): _raw(value) for name, value in self._job["env"].items()}
        return subprocess.Popen([_raw(word) for word in argv], env=env, cwd=_raw(self._job["cwd"]), **options)

    # What happens, and what is done about it.

    def _wait(self) -> None:
        output = None if self._stream is None else self._stream.fd
        link = self._link.fileno()
        sources = [fd for fd in (self._wake, output, link) if fd is not None and fd >= 0]
        deadlines = (self._kill_at, self._linger_until, self._give_up_at)
        ready, _, _ = select.select(sources, [], [], _TICK_S if any(deadlines) else None)
        if self._wake in ready and signal.SIGTERM in os.read(self._wake, 4096):
            self._terminate("SIGTERM")
        if self._stream is not None and output in ready:
            self._stream.copy()
        if link in ready:
            self._listen()

    def _listen(self) -> None:
        try:
            data = self._link.recv(4096)
        except OSError:
            data = b""
        if not data:
            self._link.close()
            self._terminate("the launcher is gone")
        self._obey(data)

    def _obey(self, data: bytes) -> None:
        *lines, self._incoming = (self._incoming + data).split(b"\n")
        for line in lines:
            self._signal(signal.Signals(int(line)))

    def _signal(self, signum: signal.Signals) -> None:
        if signum == signal.SIGWINCH:
            if self._stream is not None:
                self._stream.resize()
            self._family.signal_group(signum)
        elif signum == signal.SIGINT:
            self._interrupt()
        elif signum in (signal.SIGTERM, signal.SIGHUP):
            self._terminate(signum.name)
        else:  # not to the group: a loader worker would die of SIGUSR1
            self._family.signal_one(signum)

    def _interrupt(self) -> None:
        if self._family.status is not None:
            self._clean_up()
            return
        self._interrupts += 1
        if self._interrupts == 1:
            self._note("Ctrl-C was passed on to train.py; a second one kills it")
            self._family.signal_one(signal.SIGINT)
        else:
            self._note("second Ctrl-C: train.py is killed")
            self._kill_at = time.monotonic()

    def _terminate(self, why: str) -> None:
        if self._family.status is not None:
            self._clean_up()
        elif not self._asked:
            self._asked = True
            self._note(f"{why}: train.py is asked to end, and killed in {self._job['grace_s']:g} s")
            self._ask()
            self._kill_by(self._job["grace_s"])

    def _ask(self) -> None:
        if not self._job["ask"]:
            self._family.signal_one(signal.SIGTERM)
            return
        try:
            self._run(self._job["ask"], stdin=subprocess.DEVNULL, stdout=2)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._note(f"it cannot be asked: {error}")

    def _clean_up(self) -> None:
        """Ask what train.py left behind to end."""
        if not self._cleaning:
            self._cleaning = True
            self._family.signal_all(signal.SIGTERM)
            self._kill_by(min(self._job["grace_s"], self._job["linger_s"]))

    def _kill_by(self, seconds: float) -> None:
        at = time.monotonic() + seconds
        self._kill_at = at if self._kill_at is None else min(self._kill_at, at)

    def _keep_deadlines(self) -> None:
        now = time.monotonic()
        if self._linger_until is not None and now >= self._linger_until:
            self._clean_up()
        if self._kill_at is not None and now >= self._kill_at:
            self._end(now)

    def _end(self, now: float) -> None:
        if self._kill == signal.SIGTERM and self._family.status is None:  # once: it needs a while for its ranks
            self._kill, self._kill_at = signal.SIGKILL, now + _KILLED_S
            self._family.signal_one(signal.SIGTERM)
            return
        self._family.signal_all(signal.SIGKILL)
        if self._give_up_at is None and self._family.status is not None:
            self._give_up_at = now + _KILLED_S

    def _finished(self) -> bool:
        if self._family.status is None:
            return False
        if self._give_up_at is not None and time.monotonic() >= self._give_up_at:
            return True
        return self._family.all_gone and (self._stream is None or self._stream.fd is None)

    # What it is done with.

    def _note(self, text: str) -> None:
        self._notes.write(f"amt_hydra: {text}\n".encode())
        if self._stream is not None:
            self._stream.note(text)

    def _report(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self._link.sendall(json.dumps(message).encode() + b"\n")

    def _finish(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._notes.drain()
        code = os.waitstatus_to_exitcode(self._family.status or 0)
        self._report({"ended": {"code": code, "interrupted": self._interrupts > 0, "seconds": self._seconds}})


def _raw(text: str) -> bytes:
    """Undo the transport: every byte travels as the character of that number, whatever the two locales are."""
    return text.encode("latin-1")


def _first_line(link: socket.socket) -> tuple[bytes, bytes]:
    """Return the first line, empty where the launcher died before it was complete, and what came after it."""
    data = bytearray()
    while b"\n" not in data[-65536:]:
        more = link.recv(65536)
        if not more:
            return b"", b""
        data += more
    line, _, rest = bytes(data).partition(b"\n")
    return line, rest


def _signals_to(wake: int) -> None:
    """Have the loop woken by SIGCHLD and SIGTERM. What was ignored from the start (nohup) stays so, in train.py too."""
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for signum in (signal.SIGCHLD, signal.SIGTERM, *_NOT_OURS):
        if signal.getsignal(signum) != signal.SIG_IGN:
            signal.signal(signum, lambda *_: None)


def main() -> None:
    """Read the job from the socket of the given number, and run it."""
    given = int(sys.argv[1])
    link = socket.socket(fileno=os.dup(given))  # not inherited by train.py, and of a small number, as select needs it
    os.close(given)
    wake, waker = os.pipe()
    for end in (wake, waker):
        os.set_blocking(end, False)
    _signals_to(waker)
    tie_to_parent(signal.SIGTERM, os.getppid())()  # should a fork of the launcher keep its socket open
    subreaper = become_subreaper()
    line, rest = _first_line(link)
    if line:
        Supervisor(link, json.loads(line), wake, subreaper).run(rest)
    os._exit(0)  # a thread may still be held by a reader that does not read


if __name__ == "__main__":
    main()
