"""Run train.py on this machine and wait for it, whatever happens to the terminal, the disk or this process."""

import contextlib
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from amt_hydra.errors import INTERRUPTED, AmtError
from amt_hydra.launch.lock import Lock

_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH)


@dataclass(frozen=True, slots=True)
class Ended:
    """How train.py ended."""

    code: int
    """Its own exit code; 128 + n where signal n ended it; 130 where Ctrl-C was passed on to it."""
    signal: int | None
    """The signal that ended it, if one did."""
    interrupted: bool
    """Whether Ctrl-C was passed on to it."""
    seconds: float
    """From its start to its end, by the wall."""


def run(  # noqa: PLR0913 - what to run is six values, and each of the rest has a default
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    log: Path,
    lock: Lock | None,
    *,
    attach: bool = False,
    grace_s: float = 30.0,
    linger_s: float = 10.0,
    ask: Sequence[str] = (),
) -> Ended:
    """Run `argv` in `cwd` with exactly the environment `env`, and return how it ended.

    Its output goes live to our stdout (a terminal for it where ours is one) and to `log`; its stdin is empty. INT,
    TERM, HUP, USR1 and USR2 to this process are passed on while it runs, unless they were ignored before. It gets
    `grace_s` seconds between SIGTERM and SIGKILL; processes that it leaves behind get `linger_s` to end by themselves.
    With `ask` that command is run in place of SIGTERM, and SIGTERM is sent in place of SIGKILL: `argv` is srun's then.
    It ends when this process dies, of SIGKILL too; `lock`, if given, is held until it is dead. With `attach` it has our
    stdin, stdout and stderr, and the terminal's Ctrl-C reaches it alone; nothing is logged then.

    Where its output is a pipe, PYTHONUNBUFFERED is set unless `env` has it: otherwise the output would come late, and
    a traceback before what was printed ahead of it. Signals are passed on only if this is called in the main thread.

    Raises AmtError where it cannot be started, and then nothing was.
    """
    relay = _Relay()
    pty = not attach and _is_terminal()
    job = _job(argv, env, cwd, log, attach=attach, pty=pty, grace_s=grace_s, linger_s=linger_s, ask=ask)
    _flush()
    with relay.catching(attach), _terminal_mode(attach), _supervisor(relay.theirs, attach) as supervisor:
        try:
            if lock is not None:
                lock.hand_over(supervisor.pid)
            relay.begin(json.dumps(job).encode() + b"\n")
            return _follow(relay, supervisor, argv, cwd)
        finally:
            relay.close()  # end of file: if train.py still runs, because of an exception here, it is ended
            supervisor.wait()


class _Relay:
    """The launcher's end of the socket to the supervisor, and the signals that go through it."""

    def __init__(self) -> None:
        self.mine, self.theirs = (_above_stdio(end) for end in socket.socketpair())
        self._begun = False
        self._kept: list[int] = []
        self._before: dict[int, Any] = {}

    @contextlib.contextmanager
    def catching(self, attach: bool) -> Iterator[None]:
        """Pass signals on until the end of the block, then have them handled as before."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        try:
            for signum in _PASSED_ON:
                if signal.getsignal(signum) in (signal.SIG_IGN, None):
                    continue
                self._before[signum] = signal.getsignal(signum)
                # Attached: the terminal sends Ctrl-C to train.py itself. A handler, as SIG_IGN would be inherited.
                signal.signal(signum, _nothing if attach and signum == signal.SIGINT else self._pass_on)
            yield
        finally:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    def send(self, data: bytes) -> None:
        """Send `data` to the supervisor; if it is gone, `messages` tells."""
        with contextlib.suppress(OSError):
            self.mine.sendall(data)

    def messages(self) -> Iterator[dict[str, Any]]:
        """Yield what the supervisor reports, until it is gone."""
        with self.mine.makefile("rb") as lines:
            while True:
                try:
                    line = lines.readline()
                except OSError:
                    return
                if not line.endswith(b"\n"):
                    return
                yield json.loads(line)

    def begin(self, job: bytes) -> None:
        """Send the job, and then the signals that came before it."""
        self.send(job)
        self._begun = True
        while self._kept:
            self.send(b"%d\n" % self._kept.pop(0))

    def close(self) -> None:
        """Let the supervisor read end of file, whoever else has this end open: a fork of ours, a traceback's frame."""
        with contextlib.suppress(OSError):
            self.mine.shutdown(socket.SHUT_RDWR)
        self.mine.close()

    def _pass_on(self, signum: int, frame: FrameType | None) -> None:
        if self._begun:
            self.send(b"%d\n" % signum)
        else:
            self._kept.append(signum)
        before = self._before.get(signum)
        if signum in (signal.SIGUSR1, signal.SIGUSR2) and callable(before):
            before(signum, frame)  # whoever has set a handler for these (submitit, for a requeue) counts on it


def _above_stdio(end: socket.socket) -> socket.socket:
    """Move `end` out of the way of stdin, stdout and stderr, whose numbers are free where we were started without."""
    import fcntl

    with end:
        return socket.socket(fileno=fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3))


@contextlib.contextmanager
def _supervisor(theirs: socket.socket, attach: bool) -> Iterator["subprocess.Popen[bytes]"]:
    with theirs:
        yield subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", str(_SUPERVISOR), str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            stdin=None if attach else subprocess.DEVNULL,
            # Without these two file descriptors, their numbers may stand for any other file.
            stdout=None if sys.__stdout__ else subprocess.DEVNULL,
            stderr=None if sys.__stderr__ else subprocess.DEVNULL,
            cwd="/",
            env={name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ},
            start_new_session=not attach,
        )


def _follow(relay: _Relay, supervisor: "subprocess.Popen[bytes]", argv: Sequence[str], cwd: Path) -> Ended:
    began = time.monotonic()
    train: int | None = None
    relay.theirs.close()
    for message in relay.messages():
        if "started" in message:
            train = message["started"]
        elif "failed" in message:
            raise _not_started(message["failed"], argv, cwd)
        elif "ended" in message:
            return _ended(**message["ended"])
    status = supervisor.wait()
    if train is None:
        raise AmtError(f"train.py was not started: its supervisor ended first (status {status}).")
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(train, signal.SIGKILL)  # train.py died with the supervisor; its loader workers did not
    print(f"amt_hydra: the supervisor of train.py was killed (status {status}); so was train.py", file=sys.stderr)
    return Ended(128 + signal.SIGKILL, signal.SIGKILL, False, time.monotonic() - began)


def _ended(code: int, interrupted: bool, seconds: float) -> Ended:
    died_of = -code if code < 0 else None
    code = INTERRUPTED if interrupted else 128 - code if code < 0 else code
    return Ended(code, died_of, interrupted, seconds)


def _not_started(failed: dict[str, Any], argv: Sequence[str], cwd: Path) -> AmtError:
    """Turn the failure of the start into words."""
    program = argv[0]
    if failed["cwd"]:
        return AmtError(
            f"train.py was not started: the folder to run it in, {cwd}, is {_why(failed)}.",
            fix=("set repo.path to the repository's folder",),
        )
    why = {errno.ENOEXEC: "not a program", errno.E2BIG: "given too much: arguments and environment exceed the limit"}
    return AmtError(
        f"train.py was not started: {program} is {why.get(failed['errno']) or _why(failed)}.",
        fix=("set repo.python to a Python interpreter",),
    )


def _why(failed: dict[str, Any]) -> str:
    words = {errno.ENOENT: "not there", errno.EACCES: "not accessible", errno.ENOTDIR: "not a folder"}
    return words.get(failed["errno"]) or f"not usable ({failed['text']})"


def _job(
    argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path, ask: Sequence[str], **rest: Any
) -> dict[str, Any]:
    env = dict(env)
    if not (rest["attach"] or rest["pty"]):
        env.setdefault("PYTHONUNBUFFERED", "1")
    return {
        "argv": [_text(word) for word in argv],
        "ask": [_text(word) for word in ask],
        "env": {_text(name): _text(value) for name, value in env.items()},
        "cwd": _text(str(cwd.absolute())),
        "log": _text(str(log.absolute())),
        **rest,
    }


def _text(value: str) -> str:
    """Make each byte of an argument a character of its own: whatever the two locales are, it arrives unchanged."""
    return os.fsencode(value).decode("latin-1")


def _is_terminal() -> bool:
    return sys.__stdout__ is not None and os.isatty(1)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):
                stream.flush()


@contextlib.contextmanager
def _terminal_mode(attach: bool) -> Iterator[None]:
    """Put the terminal back to its mode afterwards: a killed debugger leaves it without echo."""
    if not attach or sys.__stdin__ is None or not os.isatty(0):
        yield
        return
    import termios

    mode = termios.tcgetattr(0)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(0, termios.TCSADRAIN, mode)


def _nothing(_signum: int, _frame: FrameType | None) -> None:
    pass
