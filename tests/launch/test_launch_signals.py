"""Signals, deaths and terminals: nothing is left running, and nothing is ended that should go on."""

import os
import pty
import signal
import subprocess
import sys
import termios
import tty
from pathlib import Path

import pytest

# train.py with a loader worker, and a rank that made a session of its own; all of them ignore SIGTERM.
FAMILY = """
for name in ("worker", "rank"):
    if os.fork() == 0:
        if name == "rank":
            os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        note(name)
        time.sleep(600)
signal.signal(signal.SIGTERM, {handler})
while not (os.path.exists("worker") and os.path.exists("rank")):
    time.sleep(0.01)
note("train")
time.sleep(600)
"""
MEMBERS = ("train", "worker", "rank")


def asleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.parametrize("handler", ["signal.SIG_DFL", "signal.SIG_IGN"])
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGQUIT])
def test_a_launcher_that_dies_leaves_no_orphan(scene, eventually, is_gone, handler, signum):
    launcher = scene.launch(FAMILY.format(handler=handler), grace_s=0.5, linger_s=0.5, lock=True)
    pids = [scene.pid(name) for name in MEMBERS]
    supervisor = scene.supervisor(launcher)
    launcher.send_signal(signum)
    eventually(lambda: is_gone(launcher.pid, supervisor, *pids))
    assert "the launcher is gone" in scene.log.read_text()


def test_the_lock_outlives_a_killed_launcher_until_train_py_is_dead(scene, eventually, is_gone):
    from amt_hydra.launch.lock import Lock, inspect

    launcher = scene.launch(
        "signal.signal(15, lambda *_: note('asked'))\nnote('train')\nwhile not os.path.exists('go'): time.sleep(0.01)",
        lock=True,
        grace_s=600,
    )
    train = scene.pid("train")
    supervisor = scene.supervisor(launcher)
    assert inspect(scene.lock).pids == (launcher.pid, supervisor)
    launcher.kill()
    launcher.wait()
    assert scene.pid("asked") == train
    assert inspect(scene.lock).pids == (launcher.pid, supervisor)
    (scene.folder / "go").touch()
    eventually(lambda: is_gone(train, supervisor))
    assert inspect(scene.lock) is None
    with Lock(scene.lock):
        pass
    assert not scene.lock.exists()


def test_a_killed_supervisor_takes_train_py_along(scene, eventually, is_gone):
    launcher = scene.launch(FAMILY.format(handler="signal.SIG_IGN"), grace_s=600)
    train, worker, rank = (scene.pid(name) for name in MEMBERS)
    os.kill(scene.supervisor(launcher), signal.SIGKILL)
    assert launcher.wait(20) == 137
    eventually(lambda: is_gone(train, worker))
    assert scene.ended() == [137, 9, False]
    assert b"the supervisor of train.py was killed" in launcher.stderr.read()
    os.kill(rank, signal.SIGKILL)  # the one thing that nobody is left to find


def test_launcher_and_supervisor_killed_at_once_take_train_py_along(scene, eventually, is_gone):
    launcher = scene.launch("note('train'); time.sleep(600)", grace_s=600)
    train = scene.pid("train")
    supervisor = scene.supervisor(launcher)
    for pid in (launcher.pid, supervisor):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: is_gone(train))


FORKING_LAUNCHER = """
import os, sys, threading, time
from pathlib import Path
from amt_hydra.launch.run import run
folder = Path(sys.argv[1])

def fork_once_it_runs():
    while not (folder / "train").exists():
        time.sleep(0.01)
    if os.fork() == 0:
        (folder / "fork").write_text(str(os.getpid()))
        time.sleep(600)

threading.Thread(target=fork_once_it_runs).start()
run(sys.argv[2:], dict(os.environ), folder, folder / "log", None, grace_s=0.3)
"""


def test_a_fork_of_a_killed_launcher_does_not_keep_train_py_alive(scene, eventually, is_gone):
    command = scene.script("note('train'); time.sleep(600)")
    root = Path(__file__).resolve().parents[2]
    launcher = subprocess.Popen(
        [sys.executable, "-c", FORKING_LAUNCHER, scene.folder, *command],
        env={**os.environ, "PYTHONPATH": str(root)},
        stderr=subprocess.DEVNULL,
    )
    scene.started.append(launcher)
    fork = scene.pid("fork")
    launcher.kill()
    try:
        eventually(lambda: is_gone(scene.pid("train")))
        assert not is_gone(fork)
    finally:
        os.kill(fork, signal.SIGKILL)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP])
def test_term_and_hup_ask_train_py_to_end(scene, signum):
    launcher = scene.launch(
        """
        def end(*_):
            print("saved")
            sys.exit(12)
        signal.signal(signal.SIGTERM, end)
        note("train")
        time.sleep(600)
        """
    )
    scene.pid("train")
    launcher.send_signal(signum)
    out, err = launcher.communicate(timeout=20)
    assert (launcher.returncode, out) == (12, b"saved\n")
    assert b"is asked to end, and killed in 30 s" in err
    assert scene.ended() == [12, None, False]


# Like srun: SIGTERM to it is the end of its ranks.
STARTER = """
def end(*_):
    note("ended")
    sys.exit(137)
signal.signal(signal.SIGTERM, end)
note("train")
while not os.path.exists("asked"):
    time.sleep(0.01)
if os.path.exists("obeys"):
    note("saved")
    sys.exit(143)
time.sleep(600)
"""


@pytest.mark.parametrize("obeys", [True, False])
def test_what_has_a_command_for_it_is_asked_by_that_and_sigterm_is_its_kill(scene, is_gone, obeys):
    ask = scene.script("note('asked')")
    if obeys:
        (scene.folder / "obeys").touch()
    launcher = scene.launch(STARTER, grace_s=0.5, ask=ask)
    train = scene.pid("train")
    launcher.terminate()
    assert launcher.wait(20) == (143 if obeys else 137)
    assert is_gone(train)
    assert (scene.folder / "saved").exists() == obeys
    assert (scene.folder / "ended").exists() != obeys


def test_a_command_that_cannot_be_run_is_named_and_the_end_comes_all_the_same(scene):
    launcher = scene.launch(STARTER, grace_s=0.3, ask=["/nowhere/squeue"])
    scene.pid("train")
    launcher.terminate()
    assert launcher.wait(20) == 137
    assert b"it cannot be asked" in launcher.stderr.read()


def test_a_killed_launcher_and_supervisor_end_it_too(scene, eventually):
    launcher = scene.launch(STARTER, ask=["/nowhere/squeue"])
    scene.pid("train")
    supervisor = scene.supervisor(launcher)
    for pid in (launcher.pid, supervisor):
        os.kill(pid, signal.SIGKILL)
    eventually((scene.folder / "ended").exists)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_loader_workers_are_left_alone_until_train_py_has_ended(scene, number):
    """SIGTERM and Ctrl-C would end them, and then the training before it has saved."""
    text = """
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: (note("hit"), sys.exit()))
            note("worker")
            while not os.path.exists("go"):
                time.sleep(0.01)
            os._exit(0)
        def end(*_):
            time.sleep(0.5)
            note("saved")
            open("go", "w")
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        note("train")
        os.wait()
    """
    launcher = scene.launch(text)
    for name in ("worker", "train"):
        scene.pid(name)
    launcher.send_signal(number)
    assert launcher.wait(20) in (0, 130)
    assert (scene.folder / "saved").exists()
    assert not (scene.folder / "hit").exists()


def test_term_then_kill_after_the_grace(scene, is_gone):
    launcher = scene.launch(FAMILY.format(handler="signal.SIG_IGN"), grace_s=0.3, linger_s=0.3)
    pids = [scene.pid(name) for name in MEMBERS]
    launcher.terminate()
    assert launcher.wait(20) == 137
    assert is_gone(*pids)
    assert scene.ended() == [137, 9, False]


def test_term_to_the_supervisor_is_like_term_to_the_launcher(scene):
    launcher = scene.launch("note('train'); time.sleep(600)")
    scene.pid("train")
    supervisor = scene.supervisor(launcher)
    for signum in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGTERM):
        os.kill(supervisor, signum)
    assert launcher.wait(20) == 143
    assert scene.ended() == [143, 15, False]


def test_hup_is_nothing_under_nohup(scene, eventually):
    launcher = scene.launch(
        "note('train')\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint(signal.getsignal(1) == signal.SIG_IGN)",
        prefix=("nohup",),
        stdin=subprocess.DEVNULL,
    )
    train = scene.pid("train")
    supervisor = scene.supervisor(launcher)
    for pid in (launcher.pid, supervisor, train):
        os.kill(pid, signal.SIGHUP)
    (scene.folder / "go").touch()
    assert launcher.wait(20) == 0
    assert scene.log.read_text() == "True\n"


def test_ctrl_c_is_passed_on_once(scene):
    launcher = scene.launch(
        """
        note("train")
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            print("saved")
        """
    )
    scene.pid("train")
    launcher.send_signal(signal.SIGINT)
    out, err = launcher.communicate(timeout=20)
    assert (launcher.returncode, out) == (130, b"saved\n")
    assert b"Ctrl-C was passed on to train.py" in err
    assert scene.ended() == [130, None, True]


def test_a_second_ctrl_c_kills(scene, is_gone):
    launcher = scene.launch(
        """
        signal.signal(signal.SIGINT, lambda *_: note("asked"))
        if os.fork() == 0:
            note("worker")
            time.sleep(600)
        while not os.path.exists("worker"):
            time.sleep(0.01)
        note("train")
        while True:
            time.sleep(600)
        """
    )
    pids = [scene.pid("train"), scene.pid("worker")]
    launcher.send_signal(signal.SIGINT)
    scene.pid("asked")
    assert not is_gone(pids[0])
    launcher.send_signal(signal.SIGINT)
    assert launcher.wait(20) == 130
    assert is_gone(*pids)
    assert scene.ended() == [130, 9, True]


def test_usr1_and_usr2_reach_train_py_and_not_its_workers(scene, is_gone):
    launcher = scene.launch(
        """
        if os.fork() == 0:
            note("worker")
            time.sleep(600)
        signal.signal(signal.SIGUSR1, lambda *_: note("usr1"))
        signal.signal(signal.SIGUSR2, lambda *_: note("usr2"))
        while not os.path.exists("worker"):
            time.sleep(0.01)
        note("train")
        while not (os.path.exists("usr1") and os.path.exists("usr2") and os.path.exists("go")):
            time.sleep(0.01)
        """,
        linger_s=0.2,
    )
    train = scene.pid("train")
    launcher.send_signal(signal.SIGUSR1)
    launcher.send_signal(signal.SIGUSR2)
    assert (scene.pid("usr1"), scene.pid("usr2")) == (train, train)
    assert not is_gone(scene.pid("worker"))
    (scene.folder / "go").touch()
    assert launcher.wait(20) == 0


def test_a_signal_that_comes_before_train_py_runs_is_kept(scene, eventually):
    code = "note('train'); time.sleep(600)"
    launcher = scene.launch(code, stderr=subprocess.DEVNULL)
    eventually(lambda: _catches_term(launcher.pid))
    launcher.terminate()
    assert launcher.wait(20) == 143


def _catches_term(pid: int) -> bool:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt"))
    return bool(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


class Terminal:
    """A pseudo-terminal for a launcher, with what it showed."""

    def __init__(self, rows: int = 33, columns: int = 111) -> None:
        self.master, self.slave = os.openpty()
        termios.tcsetwinsize(self.slave, (rows, columns))
        tty.setraw(self.slave)

    def read(self) -> bytes:
        os.close(self.slave)
        shown = b""
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            if not data:
                os.close(self.master)
                return shown
            shown += data


def test_train_py_has_a_terminal_where_the_launcher_has_one(scene):
    terminal = Terminal()
    launcher = scene.launch(
        """
        print(os.isatty(0), os.isatty(1), os.isatty(2), tuple(os.get_terminal_size()))
        try:
            os.open("/dev/tty", os.O_RDWR)
        except OSError:
            print("nobody can be asked for a password")
        sys.stdout.write("\\r1 %\\r100 %\\n")
        """,
        stdout=terminal.slave,
        stderr=terminal.slave,
    )
    shown = terminal.read()
    assert launcher.wait(20) == 0
    assert shown == b"False True True (111, 33)\nnobody can be asked for a password\n\r1 %\r100 %\n"
    assert scene.log.read_bytes() == b"False True True (111, 33)\nnobody can be asked for a password\n100 %\n"


def test_a_changed_window_size_reaches_train_py(scene):
    terminal = Terminal()
    launcher = scene.launch(
        """
        signal.signal(signal.SIGWINCH, lambda *_: note("changed"))
        note("train")
        while not os.path.exists("changed"):
            time.sleep(0.01)
        print(tuple(os.get_terminal_size()))
        """,
        stdout=terminal.slave,
    )
    scene.pid("train")
    termios.tcsetwinsize(terminal.slave, (44, 99))
    launcher.send_signal(signal.SIGWINCH)  # the kernel does this for a shell's foreground job
    assert terminal.read() == b"(99, 44)\n"
    assert launcher.wait(20) == 0


def test_a_terminal_that_is_closed_does_not_stop_it_where_hup_is_ignored(scene, eventually):
    terminal = Terminal()
    launcher = scene.launch(
        "note('train')\nwhile not os.path.exists('go'): print('x' * 99); time.sleep(0.001)\nprint('end')",
        prefix=(
            "sh",
            "-c",
            'trap "" HUP; exec "$@"',
            "sh",
        ),  # nohup itself would turn the output away from the terminal
        stdin=subprocess.DEVNULL,
        stdout=terminal.slave,
        stderr=subprocess.DEVNULL,
    )
    scene.pid("train")
    os.close(terminal.slave)
    os.close(terminal.master)
    launcher.send_signal(signal.SIGHUP)
    size = scene.log.stat().st_size
    eventually(lambda: scene.log.stat().st_size > size + 10000)
    (scene.folder / "go").touch()
    assert launcher.wait(20) == 0
    assert scene.log.read_text().endswith("end\n")


ATTACHED = """
print("as in a shell:", signal.getsignal(signal.SIGINT) == signal.default_int_handler)
signal.signal(signal.SIGINT, lambda *_: note("interrupted"))
print(os.isatty(0), os.isatty(1), os.getpgrp() == os.getpgid(os.getppid()), flush=True)
note("train")
print(input().upper(), flush=True)
while not os.path.exists("interrupted"):
    time.sleep(0.01)
sys.exit(5)
"""


def test_attached_train_py_has_the_terminal_for_itself(scene):
    master, slave = os.openpty()
    launcher = scene.launch(
        ATTACHED,
        attach=True,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        preexec_fn=lambda: _make_controlling(slave),
    )
    os.close(slave)
    scene.pid("train")
    os.write(master, b"continue\n")
    shown = b""
    while b"CONTINUE" not in shown:
        shown += os.read(master, 1024)
    os.write(master, b"\x03")
    assert launcher.wait(20) == 5
    os.close(master)
    assert b"as in a shell: True" in shown
    assert b"True True True" in shown
    assert scene.ended() == [5, None, False]
    assert not scene.log.exists()


def _make_controlling(slave: int) -> None:
    import fcntl

    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


def test_attached_train_py_dies_with_a_killed_launcher(scene, eventually, is_gone):
    launcher = scene.launch(
        "signal.signal(15, signal.SIG_IGN); note('train'); time.sleep(600)",
        attach=True,
        grace_s=0.3,
        stdin=subprocess.DEVNULL,
    )
    train = scene.pid("train")
    launcher.kill()
    eventually(lambda: is_gone(train))


def test_an_attached_train_py_that_was_killed_leaves_the_terminal_as_it_was(scene):
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    launcher = scene.launch(
        "import tty; tty.setraw(0); note('train'); time.sleep(600)",
        attach=True,
        stdin=slave,
        preexec_fn=lambda: _make_controlling(slave),
    )
    scene.pid("train")
    assert termios.tcgetattr(slave) != before
    launcher.terminate()
    assert launcher.wait(20) == 143
    assert termios.tcgetattr(slave) == before
    os.close(slave)
    os.close(master)
