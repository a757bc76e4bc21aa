"""Launches as processes: Ctrl-C, a killed launcher, two at once, a train.py that does nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from desk import TINY, Desk, environment

TRAIN = """\
import argparse, os, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("exp_id", type=str)
parser.add_argument("-p", "--project", type=str, default="melody")
parser.add_argument("--save-dir", type=str, default="../logs")
parser.add_argument("--seconds", type=float, default=0)
args = parser.parse_args()
print("hello from", args.exp_id, args.project, args.save_dir, flush=True)
time.sleep(args.seconds)
trainer = None
if trainer:
    trainer.fit(None, ckpt_path=None)
"""


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository in the home layout whose train.py trains nothing and ends well."""
    root = tmp_path_factory.mktemp("idle repository")
    (root / "src").mkdir()
    (root / "src" / "train.py").write_text(TRAIN)
    (root / "src" / "config.py").write_text("shared_cfg = {}\n")
    (root / "src" / "data_presets.py").write_text("data_preset_single_cfg = {'synthetic': {}}\n")
    return root


def started(desk: Desk, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "amt_hydra", *words],
        cwd=desk.folder,
        env=environment(desk.folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def until(condition: Callable[[], bool], seconds: float = 120) -> bool:
    """Poll: these are bounds for a machine that is busy, not expectations of speed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return condition()


def processes(marker: str) -> list[int]:
    """Pids whose command line holds `marker`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if marker in command and "train.py" in command and state != "Z":
                found.append(int(entry.name))
    return found


@pytest.fixture
def running(desk: Desk, idle: Path) -> Iterator["subprocess.Popen[str]"]:
    process = started(desk, "exp_id=sleeper", f"repo.path={idle}", "extra.flags.seconds=600")
    assert until(lambda: bool(processes("sleeper")))
    yield process
    process.kill()
    process.wait()
    assert until(lambda: not processes("sleeper"))


def test_exit_0_without_a_new_step_is_reported_as_failed(desk: Desk, idle: Path) -> None:
    run = desk("exp_id=nothing", f"repo.path={idle}")
    assert run.code == 65
    assert "trained nothing" in run.out
    (launch,) = desk.launches("nothing")
    assert json.loads((launch / "record.json").read_text())["outcome"]["train_code"] == 0


def test_with_json_stdout_is_one_document_whatever_train_py_prints(desk: Desk, idle: Path) -> None:
    run = desk("exp_id=document", f"repo.path={idle}", "--json")
    assert run.code == 65
    assert json.loads(run.out)["code"] == 65
    assert "hello from document" in run.err


def test_c19_a_secret_of_the_environment_reaches_no_file_of_ours(desk: Desk, idle: Path) -> None:
    secret = "0123456789abcdef0123456789abcdef01234567"
    desk("exp_id=secretive", f"repo.path={idle}", WANDB_API_KEY=secret)
    files = [p for p in desk.folder.rglob("*") if p.is_file()]
    assert files
    assert not [p for p in files if secret.encode() in p.read_bytes()]


def test_two_launches_of_one_experiment_do_not_run_at_once(
    desk: Desk, idle: Path, running: "subprocess.Popen[str]"
) -> None:
    run = desk("exp_id=sleeper", f"repo.path={idle}")
    assert run.code == 78
    assert "is being trained" in run.err
    assert str(running.pid) in run.err


def test_a_killed_launcher_leaves_no_orphan_and_no_lock(
    desk: Desk, idle: Path, running: "subprocess.Popen[str]"
) -> None:
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert until(lambda: not processes("sleeper"))
    assert desk("plan", "exp_id=sleeper", f"repo.path={idle}").code == 0


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_real_training_with_loader_workers_saves_the_step_that_it_is_at_and_resumes(
    desk: Desk, signum: signal.Signals, code: int
) -> None:
    """Workers would die of the signal, and the training of that, before it has saved."""
    exp_id = f"stopped-{code}"
    words = (f"exp_id={exp_id}", "max_steps=4000", *(w for w in TINY if "num_workers" not in w), "data.num_workers=2")
    last = desk.checkpoints(exp_id) / "last.ckpt"
    process = started(desk, *words)
    assert until(last.exists)
    process.send_signal(signum)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == code, output
    assert not processes(exp_id)
    seen = desk("checkpoint", str(last), "--json")
    step = json.loads(seen.out)[0]["global_step"]
    assert f"stopped by {signum.name} after step {step}" in output
    run = desk(*words, "init=resume", f"max_steps={step + 4}")
    assert run.code == 0, run.err + run.out
    assert f"trained steps {step} to {step + 4}" in run.out
