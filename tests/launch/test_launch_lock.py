"""The lock: exclusive under a race, stale only by proof, clear when broken."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from amt_hydra.errors import REFUSED, AmtError
from amt_hydra.launch import lock as lock_module
from amt_hydra.launch.lock import Lock, inspect, refusal
from amt_hydra.launch.lock_content import Holder, LockContent
from amt_hydra.launch.processes import start_mark
from amt_hydra.launch.slurm_job import SlurmJob

ROOT = Path(__file__).resolve().parents[2]


def dead_pid() -> int:
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def put(path: Path, **changes) -> dict:
    """Write a lock file of this process with `changes`."""
    content = {**json.loads(LockContent.of_this_process().text()), **changes}
    path.write_text(json.dumps(content))
    return content


def stale(path: Path) -> dict:
    return put(path, holders=[{"pid": dead_pid(), "start": "1"}])


def fake_slurm(folder: Path, monkeypatch, squeue: str, cluster: str = "main") -> None:
    for name, script in (("squeue", squeue), ("scontrol", f"echo 'ClusterName             = {cluster}'")):
        program = folder / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_it_is_there_while_held_and_gone_afterwards(tmp_path):
    path = tmp_path / "deep" / "down" / "x.lock"
    assert inspect(path) is None
    with Lock(path) as lock:
        assert lock.path == path
        holder = inspect(path)
        assert (holder.host, holder.pids, holder.job) == (socket.gethostname(), (os.getpid(),), None)
        assert holder.since.endswith("Z")
        assert list(path.parent.iterdir()) == [path]
    assert list(path.parent.iterdir()) == []
    with Lock(path), pytest.raises(RuntimeError), Lock(path.with_name("other")):
        raise RuntimeError
    assert list(path.parent.iterdir()) == []


def test_a_held_lock_is_refused_by_name_and_with_the_command_that_unlocks(tmp_path):
    path = tmp_path / "it's.lock"
    with Lock(path):
        with pytest.raises(AmtError) as error, Lock(path):
            pass
        assert error.value.code == REFUSED
        assert f"pid {os.getpid()} on {socket.gethostname()} since 20" in error.value.message
        assert f"ps -p {os.getpid()}" in error.value.fix[0]
        assert f"""rm '{tmp_path}/it'"'"'s.lock'""" in error.value.fix[0]
        assert path.exists()


def test_a_dead_holder_is_replaced(tmp_path):
    path = tmp_path / "x.lock"
    stale(path)
    assert inspect(path) is None
    with Lock(path):
        assert inspect(path).pids == (os.getpid(),)
        assert list(tmp_path.iterdir()) == [path]
    assert list(tmp_path.iterdir()) == []


def test_a_zombie_is_dead(tmp_path, eventually):
    path = tmp_path / "x.lock"
    child = subprocess.Popen(["sleep", "600"])
    put(path, holders=[{"pid": child.pid, "start": start_mark(child.pid)}])
    assert inspect(path).pids == (child.pid,)
    child.kill()
    eventually(lambda: Path(f"/proc/{child.pid}/stat").read_text().split()[2] == "Z")
    with Lock(path):
        pass
    child.wait()


def test_a_recycled_pid_is_not_the_holder(tmp_path):
    path = tmp_path / "x.lock"
    put(path, holders=[{"pid": os.getpid(), "start": "1"}])
    with Lock(path):
        pass


@pytest.mark.parametrize("content", ["", '{"token": "x"', '{"pid": 1}', "null"])
def test_a_broken_lock_file_is_refused_clearly(tmp_path, monkeypatch, content):
    path = tmp_path / "x.lock"
    path.write_text(content)
    with pytest.raises(AmtError, match="the lock file cannot be read") as error, Lock(path):
        pass
    assert f"rm {path}" in error.value.fix[0]
    assert inspect(path) == Holder("", (), "", None)
    assert path.read_text() == content


def test_another_host_is_never_stale_by_itself(tmp_path):
    path = tmp_path / "x.lock"
    put(path, host="elsewhere", holders=[{"pid": dead_pid(), "start": "1"}], started="2001-01-01T00:00:00Z")
    with pytest.raises(AmtError, match="on elsewhere since 2001") as error, Lock(path):
        pass
    assert "ssh elsewhere ps -p" in error.value.fix[0]


@pytest.mark.parametrize("change", [{"pidns": "pid:[1]"}, {"machine": "another of that name"}])
def test_a_container_or_a_namesake_is_never_stale_by_itself(tmp_path, change):
    path = tmp_path / "x.lock"
    put(path, holders=[{"pid": dead_pid(), "start": "1"}], **change)
    with pytest.raises(AmtError), Lock(path):
        pass


def test_a_machine_that_started_anew_has_no_holders(tmp_path):
    path = tmp_path / "x.lock"
    put(path, boot="before")
    with Lock(path):
        pass


JOB = {"id": "77", "restarts": 0, "cluster": ""}


@pytest.mark.parametrize(
    ("squeue", "is_stale"),
    [
        ("exit 0", True),
        ("echo 77 RUNNING", False),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", True),
        ("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1", False),
        ("exit 1", False),
    ],
)
def test_slurm_says_whether_the_job_ended(tmp_path, monkeypatch, squeue, is_stale):
    fake_slurm(tmp_path, monkeypatch, squeue)
    path = tmp_path / "x.lock"
    put(path, host="node7", slurm=JOB)
    assert (inspect(path) is None) == is_stale


def test_without_slurm_a_job_is_not_known_to_have_ended(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "x.lock"
    put(path, host="node7", slurm=JOB)
    assert inspect(path).job == "77"
    assert "Slurm job 77" in refusal(path, inspect(path)).message


def test_a_living_process_here_is_not_stale_whatever_slurm_says(tmp_path, monkeypatch):
    fake_slurm(tmp_path, monkeypatch, "exit 0")
    path = tmp_path / "x.lock"
    put(path, slurm=JOB)
    assert inspect(path) is not None


def test_job_ids_of_another_cluster_mean_nothing_here(tmp_path, monkeypatch):
    fake_slurm(tmp_path, monkeypatch, "exit 0", cluster="main")
    path = tmp_path / "x.lock"
    put(path, host="node7", slurm={**JOB, "cluster": "other"})
    assert inspect(path) is not None
    put(path, host="node7", slurm={**JOB, "cluster": "main"})
    assert inspect(path) is None


def test_c08_a_requeued_job_replaces_its_own_earlier_attempt(tmp_path, monkeypatch):
    fake_slurm(tmp_path, monkeypatch, "echo 77 RUNNING")
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "2")
    path = tmp_path / "x.lock"
    put(path, host="node7", slurm={**JOB, "restarts": 1})
    assert inspect(path) is None
    put(path, host="node7", slurm={**JOB, "restarts": 2})
    assert inspect(path) is not None


def test_a_job_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "?")
    with Lock(tmp_path / "x.lock"):
        assert inspect(tmp_path / "x.lock").job == "77"
    assert SlurmJob.of_environment({"SLURM_JOB_ID": ""}) is None


def test_hand_over_adds_a_holder_and_the_lock_stays_while_that_lives(tmp_path):
    path = tmp_path / "x.lock"
    child = subprocess.Popen(["sleep", "600"])
    with Lock(path) as lock:
        lock.hand_over(child.pid)
        assert inspect(path).pids == (os.getpid(), child.pid)
    assert inspect(path).pids == (os.getpid(), child.pid)
    with pytest.raises(AmtError), Lock(path):
        pass
    child.kill()
    child.wait()
    content = json.loads(path.read_text())
    put(path, holders=[{**content["holders"][0], "start": "1"}, content["holders"][1]])  # as if we were dead too
    with Lock(path) as lock:
        lock.hand_over(child.pid)  # a process that has ended is no holder
        assert inspect(path).pids == (os.getpid(),)
    assert not path.exists()


def test_a_lock_that_is_not_ours_any_more_is_left_alone(tmp_path):
    path = tmp_path / "x.lock"
    with Lock(path) as lock:
        other = put(path, host="elsewhere")
        with pytest.raises(AmtError, match="was removed"):
            lock.hand_over(os.getpid())
    assert json.loads(path.read_text()) == {**other}
    path.unlink()
    with Lock(path):
        path.unlink()
    assert not path.exists()


def test_a_fork_of_the_holder_does_not_release_it(tmp_path):
    path = tmp_path / "x.lock"
    lock = Lock(path)
    with lock:
        pid = os.fork()
        if pid == 0:
            lock.__exit__(None, None, None)
            os._exit(0)
        os.waitpid(pid, 0)
        assert path.exists()


def test_without_hard_links_it_is_still_exclusive(tmp_path, monkeypatch):
    def no_links(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(lock_module.os, "link", no_links)
    with Lock(tmp_path / "x.lock"):
        with pytest.raises(AmtError), Lock(tmp_path / "x.lock"):
            pass
        assert inspect(tmp_path / "x.lock").pids == (os.getpid(),)


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(AmtError, match="cannot be written"), Lock(tmp_path / "file" / "x.lock"):
        pass


TAKER = """
import os, sys, time
from pathlib import Path
from amt_hydra.errors import AmtError
from amt_hydra.launch.lock import Lock
path, start, inside = map(Path, sys.argv[1:])
print(flush=True)
while not start.exists():
    time.sleep(0.001)
try:
    with Lock(path):
        os.close(os.open(inside, os.O_CREAT | os.O_EXCL))  # fails if another is inside
        print("won", flush=True)
        sys.stdin.read()
        inside.unlink()
except AmtError as error:
    print("refused" if "is locked by pid" in error.message else error.message)
"""


@pytest.mark.parametrize("before", ["free", "stale", "stale, and its claimant died", "stale, and a chain of them died"])
@pytest.mark.parametrize("attempt", range(2))
def test_of_many_takers_exactly_one_wins(tmp_path, before, attempt):
    path, start, inside = tmp_path / "x.lock", tmp_path / "start", tmp_path / "inside"
    if before != "free":
        claim = path.with_name(f"x.lock.{stale(path)['token']}")
        for _ in range(before.count("its") + 2 * before.count("chain")):
            claim = claim.with_name(f"{claim.name}.{stale(claim)['token']}")
    takers = [
        subprocess.Popen(
            [sys.executable, "-c", TAKER, path, start, inside],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for _ in range(6)
    ]
    for taker in takers:
        taker.stdout.readline()
    start.touch()
    said = [taker.stdout.readline() for taker in takers]
    for taker in takers:
        taker.communicate(timeout=20)
    assert sorted(said) == [b"refused\n"] * 5 + [b"won\n"]
    assert [taker.returncode for taker in takers] == [0] * 6
    assert sorted(tmp_path.iterdir()) == [start]


def test_a_killed_holder_leaves_a_lock_that_the_next_one_takes(tmp_path):
    path, start, inside = tmp_path / "x.lock", tmp_path / "start", tmp_path / "inside"
    start.touch()
    command = [sys.executable, "-c", TAKER, path, start, inside]
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    with subprocess.Popen(command, **options) as first:
        assert [first.stdout.readline(), first.stdout.readline()] == [b"\n", b"won\n"]
        first.send_signal(signal.SIGKILL)
    inside.unlink()
    with subprocess.Popen(command, **options) as second:
        assert [second.stdout.readline(), second.stdout.readline()] == [b"\n", b"won\n"]
        second.stdin.close()
    assert not path.exists()
