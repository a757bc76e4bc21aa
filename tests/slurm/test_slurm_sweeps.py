"""Sweeps on a real Slurm: submitted, failed, cancelled, preempted, tried again."""

import contextlib
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from cluster import Cluster
from counting import Lab, states, until

SLURM = ("hydra/launcher=slurm", "ddp=cpu1", "slurm.hours=1")
WHOLE = list(range(1, 7))


def verb(farm: Lab, *words: str) -> "subprocess.CompletedProcess[str]":
    return farm.done([sys.executable, "-m", "amt_hydra", *words])


def points(farm: Lab) -> list[dict[str, object]]:
    return list(json.loads(verb(farm, "status", "--json").stdout))


def ended(cluster: Cluster) -> bool:
    return not cluster.jobs()


def test_three_points_are_waited_for_and_nothing_is_left_to_do(farm: Lab, cluster: Cluster) -> None:
    run = farm.run("seed=1,2,3", *SLURM, "slurm.wait=true")
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 ended well, 0 failed" in run.stdout
    assert "one process, started by the job; 1 CPUs per task, 1:00 hours" in run.stderr
    assert list(farm.steps().values()) == [WHOLE] * 3
    again = farm.run("seed=1,2,3", *SLURM)
    assert again.returncode == 0
    assert "this is 0 runs: 3 done" in again.stderr
    assert not cluster.jobs()


def test_c08_c11_twenty_points_are_one_array_even_where_their_launcher_was_killed(farm: Lab, cluster: Cluster) -> None:
    """C11: all points are in the queue, a ledger is written; C08: folders depend on neither job nor time.

    The launcher is killed at a random moment, before sbatch, after it or after all; the same command makes up for it.
    """
    farm = replace(farm, environ={**farm.environ, "PACE": "0.05"})
    words = ("seed=range(1,21)", *SLURM, "max_steps=2")
    moment = random.SystemRandom().uniform(3, 9)
    launcher = farm.start(*words)
    with contextlib.suppress(subprocess.TimeoutExpired):
        launcher.wait(moment)
    launcher.kill()
    launcher.communicate(timeout=60)
    until(lambda: not [one for one in farm.processes() if "sbatch" in one.name()])
    run = farm.run(*words)
    assert run.returncode == 0, f"killed after {moment:.2f} s: {run.stderr}"
    found = points(farm)
    assert {point["state"] for point in found} <= {"running", "queued", "done"}, moment
    assert len({str(point["job"]).split("_")[0] for point in found}) == 1, f"an array, {moment}"
    assert [str(point["job"]).split("_")[1] for point in found] == [str(task) for task in range(20)]
    again = farm.run(*words)
    assert again.returncode == 0
    assert " start" not in again.stderr.splitlines()[-1], "none is submitted twice"
    until(lambda: ended(cluster), 240)
    assert states(farm) == ["done"] * 20, moment
    assert list(farm.steps().values()) == [[1, 2]] * 20, moment


def test_a_job_that_fails_is_named_and_tried_again(farm: Lab) -> None:
    bad = farm.folder / "code" / "bad-1"
    bad.touch()
    run = farm.run("seed=1,2", *SLURM, "slurm.wait=true")
    assert run.returncode == 3
    assert "1 ended well, 1 failed" in run.stdout
    assert "(exit code 3): train.py ended with exit code 3" in run.stdout
    assert states(farm) == ["failed", "done"]
    bad.unlink()
    assert verb(farm, "retry", "failed").returncode == 0
    until(lambda: states(farm) == ["done", "done"])
    assert list(farm.steps().values()) == [WHOLE] * 2
    assert "nothing to do" in verb(farm, "retry", "failed").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("slurm.cpus_per_task=100",),
            "sbatch refused: Batch job submission failed: More processors requested than permitted",
        ),
        (("slurm.partition=mian",), "slurm.partition=mian: there is no mian; there are main, short"),
        (("slurm.partition=short,mian",), "slurm.partition=short,mian: there is no mian; there are main, short"),
        (("slurm.options.nope=1",), "sbatch refused: unrecognized option '--nope=1'"),
        (("slurm.partition=short", "slurm.hours=2"), "beyond the limit of slurm.partition=short, 1 hours"),
        (("slurm.options.time=5",), "slurm.options.time: this follows from other settings"),
        (("ddp=auto",), "ddp.accelerator=auto says nothing to Slurm"),
        (("slurm.hours=0.01",), "it would never train"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(
    farm: Lab, cluster: Cluster, words: tuple[str, ...], said: str
) -> None:
    run = farm.run("seed=1,2", *SLURM, *words)
    assert run.returncode == 78, run.stdout + run.stderr
    assert said in run.stderr
    assert "  -> " in run.stderr
    assert not [file for file in (farm.folder / "outputs").rglob("*") if file.is_file()]
    assert not cluster.jobs()


def test_ctrl_c_while_points_are_submitted_leaves_none_in_the_queue_and_no_ledger(farm: Lab, cluster: Cluster) -> None:
    """sbatch is a script here that does what the real one does, and then hangs: Slurm has the jobs already."""
    real, bin_ = shutil.which("sbatch"), farm.folder / "bin"
    bin_.mkdir()
    (bin_ / "sbatch").write_text(f'#!/bin/sh\n{real} "$@"\nexec sleep 600\n')
    (bin_ / "sbatch").chmod(0o755)
    farm = replace(farm, environ={**farm.environ, "PATH": f"{bin_}:{farm.environ['PATH']}", "PACE": "100"})
    launcher = farm.start("seed=1,2", *SLURM)
    until(lambda: len(cluster.jobs()) == 2)
    time.sleep(0.5)
    launcher.send_signal(signal.SIGINT)
    launcher.communicate(timeout=60)
    assert launcher.returncode == 130
    until(lambda: ended(cluster))
    assert not list((farm.folder / "outputs").rglob("ledger.jsonl"))
    assert not list((farm.folder / "outputs").rglob("*.pkl"))


def test_where_the_queue_cannot_be_seen_nothing_is_submitted_again(farm: Lab, cluster: Cluster) -> None:
    farm = replace(farm, environ={**farm.environ, "PACE": "100"})
    assert farm.run("seed=1", *SLURM).returncode == 0
    bin_ = farm.folder / "bin"
    bin_.mkdir()
    (bin_ / "squeue").write_text("#!/bin/sh\nexit 1\n")
    (bin_ / "squeue").chmod(0o755)
    blind = replace(farm, environ={**farm.environ, "PATH": f"{bin_}:{farm.environ['PATH']}"})
    run = blind.run("seed=1", *SLURM)
    assert run.returncode == 78
    assert "squeue does not answer: what is queued already cannot be told" in run.stderr
    assert len(cluster.jobs()) == 1
    for word in ("queued", str(points(farm)[0]["exp_id"])):
        run = verb(blind, "cancel", word)
        assert run.returncode == 78
        assert "squeue does not answer: what is queued cannot be told, and not cancelled" in run.stderr
    until(lambda: states(blind) == ["running"])  # by its lock


def test_a_failure_under_fail_fast_cancels_the_others(farm: Lab, cluster: Cluster) -> None:
    farm = replace(farm, environ={**farm.environ, "PACE": "1"})
    (farm.folder / "code" / "bad-1").touch()
    run = farm.run("seed=1,2", *SLURM, "slurm.wait=true", "sweep.fail_fast=true", "max_steps=600")
    assert run.returncode == 3, run.stderr
    assert "0 ended well, 2 failed" in run.stdout
    assert ended(cluster)


def test_a_run_that_was_requeued_often_enough_ends(farm: Lab, cluster: Cluster) -> None:
    """The signal is sent by hand, as Slurm sends it before the time limit."""
    farm = replace(farm, environ={**farm.environ, "PACE": "0.5"})
    assert farm.run("seed=1", *SLURM, "max_steps=600", "slurm.requeues=1").returncode == 0
    for launched in (1, 2):
        until(lambda n=launched: len(list(farm.folder.glob("outputs/melody/*/launches/*/record.json"))) == n)  # type: ignore[misc]
        steps = len(next(iter(farm.steps().values()), []))
        until(lambda n=steps: len(next(iter(farm.steps().values()), [])) > n + 1)  # type: ignore[misc]
        cluster("scancel", "--signal=USR2", "--batch", str(points(farm)[0]["job"]))
    until(lambda: ended(cluster))
    (point,) = points(farm)
    assert point["state"] == "failed"
    assert str(point["said"]).startswith("not requeued: it was 1 times (slurm.requeues), and is at step")


def test_what_is_cancelled_has_saved_and_goes_on_when_it_is_tried_again(farm: Lab, cluster: Cluster) -> None:
    slow, fast = (replace(farm, environ={**farm.environ, "PACE": pace}) for pace in ("0.5", "0.02"))
    assert slow.run("seed=1,2", *SLURM, "max_steps=60").returncode == 0
    until(lambda: len(farm.steps()) == 2)
    first, second = points(farm)
    done = verb(farm, "cancel", str(first["signature"]))
    assert done.returncode == 0, done.stderr
    until(lambda: states(farm)[0] == "stopped")
    assert states(farm)[1] == "running"
    cluster("scancel", str(second["job"]))
    until(lambda: ended(cluster))
    assert states(farm) == ["stopped", "stopped"]
    assert verb(fast, "retry", str(first["sweep"])).returncode == 0
    until(lambda: states(farm) == ["done", "done"])
    for trained in farm.steps().values():
        assert sorted(set(trained)) == list(range(1, 61))
        assert len(trained) <= 61, "a signal may fall between a step and its checkpoint"


def test_what_a_job_asks_for_is_what_sbatch_is_told(farm: Lab, cluster: Cluster) -> None:
    """And nothing else: a setup of the user's runs first, and an option without a setting of its own is passed on."""
    words = ("slurm.setup=['export PACE=0.01', 'echo \"set, up\"']", "slurm.options.comment=two words")
    more = ("slurm.partition=short", "slurm.mem_gb=1", "slurm.cpus_per_task=2", "slurm.signal=90", "slurm.hours=0.5")
    run = farm.run("seed=1", *SLURM[:2], *words, *more, "slurm.wait=true")
    assert run.returncode == 0, run.stderr
    (jobs,) = (farm.folder / "outputs" / "sweeps").glob("*/jobs")
    (script,) = jobs.glob("*_submission.sh")
    lines = script.read_text().splitlines()
    asked = dict(line.removeprefix("#SBATCH --").split("=", 1) for line in lines if re.match("#SBATCH .*=", line))
    names = ("partition", "mem", "cpus-per-task", "nodes", "ntasks-per-node", "time", "signal")
    told = {name: asked[name] for name in names}
    assert told == {
        "partition": "short",
        "mem": "1GB",
        "cpus-per-task": "2",
        "nodes": "1",
        "ntasks-per-node": "1",
        "time": "30",
        "signal": "B:USR2@90",
    }
    assert "wckey" not in asked
    (job,) = jobs.glob("*_log.out")
    assert job.read_text().startswith("set, up")
    assert "Comment=two words" in cluster("scontrol", "-o", "show", "job")


def test_a_job_that_left_no_word_is_told_of_by_slurm(farm: Lab, cluster: Cluster) -> None:
    """By its controller, as no accounting runs here. One is killed, the other cancelled before it began."""
    farm = replace(farm, environ={**farm.environ, "PACE": "100"})
    assert farm.run("seed=1", *SLURM).returncode == 0
    until(lambda: states(farm) == ["running"])
    cluster("scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        assert farm.run("seed=2", *SLURM).returncode == 0
        assert states(farm) == ["running", "queued"]
        assert verb(farm, "cancel", "queued").returncode == 0
        (job,) = (one for one in farm.processes() if "submitit.core._submit" in one.info["cmdline"])
        job.kill()
        until(lambda: ended(cluster))
        until(lambda: not farm.processes())
    finally:
        cluster("scontrol", "update", "PartitionName=main", "State=UP")
    told = [(point["state"], str(point["said"]).partition(": ")[2]) for point in points(farm)]
    assert told == [("failed", "failed"), ("waiting", "cancelled")]


def test_c10_a_preempted_task_of_an_array_goes_on_by_itself(farm: Lab, cluster: Cluster) -> None:
    """By Slurm, which requeues it; the other one is left alone. The warm-start is not started anew."""
    weights = farm.folder / "weights.ckpt"
    weights.touch()
    assert farm.run("seed=3", *SLURM, "slurm.wait=true").returncode == 0
    (found,) = (farm.folder / "code" / "logs").glob("melody/*/checkpoints/last.ckpt")
    found.rename(weights)
    words = ("init=warmstart", f"init.ckpt={weights}", "exp_id=warm", "max_steps=60")
    run = farm.run("seed=1,2", *SLURM, *words)
    assert run.returncode == 0, run.stderr
    until(lambda: min(map(len, farm.steps().values()), default=0) > 5 and len(farm.steps()) == 3)
    first, _ = (point for point in points(farm) if str(point["exp_id"]).startswith("warm"))
    cluster("scontrol", "requeue", str(first["job"]))
    until(lambda: ended(cluster), 180)
    warm = {name: steps for name, steps in farm.steps().items() if name.startswith("warm")}
    for name, trained in warm.items():
        assert sorted(set(trained)) == list(range(1, 61)), name
        assert len(trained) <= 61
    records = sorted((farm.folder / "outputs" / "melody" / str(first["exp_id"])).glob("launches/*/record.json"))
    assert [json.loads(file.read_text())["identity"]["actual"] for file in records] == ["warmstart", "resume"]


def test_c12_a_job_that_got_no_further_is_not_requeued(farm: Lab, cluster: Cluster) -> None:
    """The signal is sent by hand, as Slurm sends it before the time limit."""
    farm = replace(farm, environ={**farm.environ, "PACE": "100"})
    assert farm.run("seed=1", *SLURM).returncode == 0
    until(lambda: bool(list(farm.folder.glob("outputs/melody/*/launches/*/record.json"))))
    (point,) = points(farm)
    cluster("scancel", "--signal=USR2", "--batch", str(point["job"]))
    until(lambda: ended(cluster))
    (point,) = points(farm)
    assert (point["state"], point["said"]) == (
        "failed",
        "not requeued: it began at step 0, and is at step 0 when its time is up",
    )


def test_a_machine_that_goes_down_loses_what_it_had_not_saved_and_nothing_else(farm: Lab, cluster: Cluster) -> None:
    farm = replace(farm, environ={**farm.environ, "PACE": "0.3"})
    assert farm.run("seed=1", *SLURM, "max_steps=150").returncode == 0
    until(lambda: bool(farm.steps()))
    cluster.stop_node()
    try:
        until(lambda: "down" in cluster("sinfo", "-h", "-o", "%T"), 40)
        assert states(farm) in (["queued"], ["running"])
    finally:
        cluster.start_node()
    until(lambda: ended(cluster), 240)
    assert states(farm) == ["done"]
    (trained,) = farm.steps().values()
    assert sorted(set(trained)) == list(range(1, 151))
    assert len(trained) <= 151
