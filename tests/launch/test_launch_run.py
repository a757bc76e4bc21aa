"""run(): what comes back, and where the output goes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from amt_hydra.errors import AmtError
from amt_hydra.launch.run import Ended, run


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def run_here(folder: Path, code: str, **options) -> Ended:
    return run(python(code), dict(os.environ), folder, folder / "log", None, **options)


@pytest.mark.parametrize("code", [0, 1, 3, 65, 78, 255])
def test_the_exit_code_is_that_of_train_py(tmp_path, code):
    ended = run_here(tmp_path, f"raise SystemExit({code})")
    assert (ended.code, ended.signal, ended.interrupted) == (code, None, False)
    assert ended.seconds >= 0


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT])
def test_death_by_a_signal_is_128_plus_its_number(tmp_path, signum):
    ended = run_here(tmp_path, f"import os, signal; signal.signal(2, signal.SIG_DFL); os.kill(os.getpid(), {signum})")
    assert (ended.code, ended.signal, ended.interrupted) == (128 + signum, signum, False)


def test_output_is_copied_byte_for_byte_in_order_to_stdout_and_log(tmp_path, capfdbinary):
    code = "import os; [os.write(1 + i % 2, bytes(range(256))) for i in range(100)]"
    run_here(tmp_path, code)
    assert capfdbinary.readouterr().out == bytes(range(256)) * 100
    written = (tmp_path / "log").read_bytes()
    # What a carriage return overwrites is left out of the log: bytes 11, 12 and the 246 before 13 of each line.
    assert written.count(bytes(range(14, 256))) == 100


def test_stdout_and_stderr_of_a_python_program_keep_their_order(tmp_path, capfd):
    code = "import sys\nfor i in range(50): print(i); print(i, file=sys.stderr)"
    run(python(code), {}, tmp_path, tmp_path / "log", None)
    assert capfd.readouterr().out.split() == [str(i // 2) for i in range(100)]


def test_environment_arguments_and_folder_arrive_unchanged(tmp_path):
    folder = tmp_path / "weird 'x\" = ,日本"
    folder.mkdir()
    code = "import os, sys; print(ascii([sys.argv[1:], dict(os.environ), os.getcwd()])); print(repr(sys.stdin.read()))"
    env = {"A": "b=c\nd", "日": "\udcff", "PYTHONUNBUFFERED": ""}
    ended = run([*python(code), "--x=\udcfe", "a b", ""], env, folder, folder / "log", None)
    argv, got, cwd = eval((folder / "log").read_text().splitlines()[0])
    assert ended.code == 0
    assert argv == ["--x=\udcfe", "a b", ""]
    assert {name: got[name] for name in env} == env
    assert "HOME" not in got
    assert cwd == str(folder)
    assert (folder / "log").read_text().splitlines()[1] == "''"


def test_c19_the_environment_of_train_py_is_not_visible_in_the_supervisor(scene):
    launcher = scene.launch("note('train'); time.sleep(600)", grace_s=1)
    train = scene.pid("train")
    supervisor = scene.supervisor(launcher)
    assert b"PYTHONPATH" in Path(f"/proc/{train}/environ").read_bytes()
    assert Path(f"/proc/{supervisor}/environ").read_bytes().replace(b"LD_LIBRARY_PATH", b"").count(b"=") <= 1
    assert b"script0.py" not in Path(f"/proc/{supervisor}/cmdline").read_bytes()
    launcher.terminate()


def test_fifty_megabytes_of_output(scene):
    code = "line = b'x' * 1023 + b'\\n'\nfor _ in range(50): sys.stdout.buffer.write(line * 1024)"
    launcher = scene.launch(code)
    out, _ = launcher.communicate(timeout=60)
    assert launcher.returncode == 0
    assert len(out) == 50 * 2**20
    assert scene.log.stat().st_size == 50 * 2**20


def test_progress_bars_leave_their_last_state_in_the_log(tmp_path, capfdbinary):
    code = """
import sys
for epoch in range(2):
    for i in range(1000):
        sys.stdout.write(f"\\rEpoch {epoch}: {i}")
        sys.stdout.flush()
    print()
print("done\\r\\nlast", end="")
"""
    run_here(tmp_path, code)
    assert (tmp_path / "log").read_bytes() == b"Epoch 0: 999\nEpoch 1: 999\ndone\nlast"
    assert capfdbinary.readouterr().out.count(b"\r") == 2001


def test_the_log_is_appended_to(tmp_path):
    run_here(tmp_path, "print(1)")
    run_here(tmp_path, "print(2)")
    assert (tmp_path / "log").read_text() == "1\n2\n"


@pytest.mark.parametrize("log", [Path("/dev/full"), Path("/nowhere/at/all")])
def test_a_log_that_cannot_be_written_is_said_once_and_the_training_goes_on(tmp_path, capfd, log):
    code = "import time\nfor i in range(30): print(i); time.sleep(0.01)"
    ended = run(python(code), dict(os.environ), tmp_path, log, None)
    out, err = capfd.readouterr()
    assert ended.code == 0
    assert out.split() == [str(i) for i in range(30)]
    assert err.count("cannot be written") == 1


def test_a_reader_that_leaves_does_not_end_the_training(scene):
    head = subprocess.Popen(["head", "-1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    launcher = scene.launch("for i in range(3000): print(i, flush=True)", stdout=head.stdin)
    head.stdin.close()
    head.stdin = None
    assert head.communicate(timeout=30)[0] == b"0\n"
    assert scene.ended() == [0, None, False]
    assert scene.log.read_text().split() == [str(i) for i in range(3000)]
    launcher.wait(20)


def test_a_reader_that_does_not_read_does_not_stop_the_training(scene):
    read_end, write_end = os.pipe()
    launcher = scene.launch("for _ in range(80): os.write(1, b'x' * 2**20)\nnote('done')", stdout=write_end)
    os.close(write_end)
    assert scene.pid("done")
    os.close(read_end)
    assert launcher.wait(30) == 0
    assert scene.log.stat().st_size == 80 * 2**20


def test_a_launcher_without_stdout_and_stderr(scene):
    launcher = scene.launch("print('x')", prefix=("sh", "-c", 'exec "$@" >&- 2>&-', "sh"))
    assert launcher.wait(20) == 0
    assert scene.log.read_text() == "x\n"


def test_a_missing_program_is_named_and_nothing_starts(tmp_path):
    with pytest.raises(AmtError, match=r"/no/such/python is not there"):
        run(["/no/such/python", "train.py"], {}, tmp_path, tmp_path / "log", None)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(AmtError, match=r"folder to run it in, .*gone, is not there"):
        run(python("0"), {}, tmp_path / "gone", tmp_path / "log", None)


def test_a_file_as_folder_and_a_file_that_is_no_program(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(AmtError, match="not a folder"):
        run(python("0"), {}, file, tmp_path / "log", None)
    with pytest.raises(AmtError, match="not accessible"):
        run([str(file)], {}, tmp_path, tmp_path / "log", None)
    file.chmod(0o755)
    with pytest.raises(AmtError, match="not a program"):
        run([str(file)], {}, tmp_path, tmp_path / "log", None)


def test_too_much_for_the_kernel_is_said(tmp_path):
    with pytest.raises(AmtError, match="exceed the limit"):
        run([*python("0"), "x" * 2**20], {}, tmp_path, tmp_path / "log", None)


def test_an_impossible_environment_name_is_said(tmp_path):
    with pytest.raises(AmtError, match="illegal environment variable name"):
        run(python("0"), {"A=B": ""}, tmp_path, tmp_path / "log", None)


def test_signal_handlers_are_as_before_afterwards(tmp_path):
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH)
    before = [signal.getsignal(number) for number in numbers]
    run_here(tmp_path, "0")
    with pytest.raises(AmtError):
        run(["/no/such"], {}, tmp_path, tmp_path / "log", None)
    assert [signal.getsignal(number) for number in numbers] == before


def test_no_file_descriptor_is_left_open(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        run_here(tmp_path, "0")
        with pytest.raises(AmtError):
            run(["/no/such"], {}, tmp_path, tmp_path / "log", None)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_train_py_inherits_no_file_descriptor(tmp_path):
    run_here(tmp_path, "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))")
    assert (tmp_path / "log").read_text() == "[0, 1, 2, 3]\n"  # 3 is the listing itself


def test_it_runs_in_a_thread_too(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        first, second = (pool.submit(run_here, tmp_path, f"raise SystemExit({n})") for n in (4, 5))
        assert (first.result().code, second.result().code) == (4, 5)


def test_what_a_quiet_grandchild_still_prints_is_waited_for(scene):
    launcher = scene.launch(
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1); print(\"late\")'])\nprint('early')"
    )
    assert launcher.communicate(timeout=20)[0].split() == [b"early", b"late"]
    assert launcher.returncode == 0


def test_a_grandchild_that_holds_the_output_for_ever_is_ended(scene, eventually, is_gone):
    launcher = scene.launch(
        """
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            note("holder")
            time.sleep(600)
        while not os.path.exists("holder"):
            time.sleep(0.01)
        sys.exit(7)
        """,
        linger_s=0.3,
    )
    assert launcher.wait(30) == 7
    assert is_gone(scene.pid("holder"))


def test_a_daemon_in_a_session_of_its_own_is_ended(scene, is_gone):
    launcher = scene.launch(
        """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for fd in range(3):
                    os.close(fd)
                note("daemon")
                time.sleep(600)
            os._exit(0)
        while not os.path.exists("daemon"):
            time.sleep(0.01)
        """,
        linger_s=0.3,
    )
    assert launcher.wait(30) == 0
    assert is_gone(scene.pid("daemon"))


def test_an_exception_in_the_launcher_ends_train_py(tmp_path):
    def give_up(*_: object) -> None:
        raise SystemExit(9)

    before = signal.signal(signal.SIGUSR1, give_up)
    try:
        with pytest.raises(SystemExit):
            run_here(
                tmp_path,
                f"""
import os, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: open("usr1", "w").close())
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
open("pid", "w").write(str(os.getpid()))
os.kill({os.getpid()}, signal.SIGUSR1)
time.sleep(600)
""",
                grace_s=5,
            )
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (tmp_path / "usr1").exists()  # the handler that was there before is called after it was passed on
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()
