"""Sweeps that really run, killed and started again. The trainer is a small one: it counts, and saves by torch."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest
from counting import Lab, states, until
from filelock import FileLock

WHOLE = list(range(1, 7))


def test_a_sweep_trains_every_point_once_and_has_nothing_left_to_do(lab: Lab) -> None:
    run = lab.run("seed=1,2")
    assert run.returncode == 0, run.stderr
    assert "2 ended well, 0 failed, 0 were done or running, 0 not started" in run.stdout
    assert list(lab.steps().values()) == [WHOLE, WHOLE]
    again = lab.run("seed=1,2,3")
    assert "1 ended well, 0 failed, 2 were done or running, 0 not started" in again.stdout
    assert list(lab.steps().values()) == [WHOLE, WHOLE, WHOLE]
    further = lab.run("seed=2", "max_steps=8")
    assert further.returncode == 0, further.stderr
    assert sorted(map(len, lab.steps().values())) == [6, 6, 8]
    assert max(lab.steps().values(), key=len) == list(range(1, 9))


def test_c17_a_point_that_fails_is_named_and_the_others_run(lab: Lab) -> None:
    (lab.folder / "code" / "bad-1").touch()
    run = lab.run("seed=1,2")
    assert run.returncode == 3
    assert "1 ended well, 1 failed, 0 were done or running, 0 not started" in run.stdout
    (failed,) = [line for line in run.stdout.splitlines() if line.startswith("failed")]
    assert "(exit code 3): train.py ended with exit code 3" in failed
    assert "-> alone: python -m amt_hydra repo=counting" in run.stdout
    assert states(lab) == ["failed", "done"]
    (lab.folder / "code" / "bad-1").unlink()
    assert lab.run("seed=1,2").returncode == 0
    assert list(lab.steps().values()) == [WHOLE, WHOLE]


def test_the_first_failure_ends_the_sweep_where_that_is_asked_for(lab: Lab) -> None:
    (lab.folder / "code" / "bad-1").touch()
    run = lab.run("seed=1,2", "sweep.fail_fast=true")
    assert run.returncode == 3
    assert "0 ended well, 1 failed, 0 were done or running, 1 not started" in run.stdout
    assert lab.steps() == {}


def test_a_launcher_that_is_killed_while_it_plans_leaves_nothing_running(lab: Lab) -> None:
    launcher = lab.start("seed=range(1,400)", "sweep.max_points=400")
    until(lambda: len(lab.processes()) > 2)  # those that plan
    launcher.kill()
    launcher.communicate(timeout=60)
    until(lambda: not lab.processes())
    assert not (lab.folder / "outputs").exists()


@pytest.mark.parametrize("at", [3, 9])
def test_a_sweep_whose_launcher_is_killed_loses_nothing_and_trains_nothing_twice(lab: Lab, at: int) -> None:
    """SIGKILL in the first point, and in the second."""
    launcher = lab.start("seed=1,2,3")
    until(lambda: sum(map(len, lab.steps().values())) >= at)
    launcher.kill()
    launcher.communicate(timeout=60)
    until(lambda: not lab.processes())
    assert states(lab) in (["stopped", "waiting", "waiting"], ["done", "stopped", "waiting"])
    ledger = next((lab.folder / "outputs" / "sweeps").glob("*/ledger.jsonl"))
    points = [json.loads(line)["exp_id"] for line in ledger.read_text().splitlines()]
    run = lab.run("seed=1,2,3")
    assert run.returncode == 0, run.stderr
    steps = lab.steps()
    assert sorted(steps) == sorted(points)
    assert states(lab) == ["done", "done", "done"]
    for trained in steps.values():
        assert sorted(set(trained)) == WHOLE
        assert len(trained) <= len(WHOLE) + 1, "a kill may fall between a step and its checkpoint"


def test_twelve_points_whose_launcher_and_one_job_are_killed_at_random_are_finished_by_the_same_command(
    lab: Lab,
) -> None:
    """And what `status` says is true whenever it is asked."""
    seed = random.SystemRandom().randrange(10**6)
    moments = random.Random(seed)
    words = ("seed=range(1,13)", "hydra/launcher=gpu_pool", "hydra.launcher.gpus=[0,1,2]")
    launcher = lab.start(*words)
    until(lambda: bool(lab.steps()))
    time.sleep(moments.uniform(0, 3))
    until(lambda: bool(trainers(lab)))
    trainers(lab)[0].kill()
    time.sleep(moments.uniform(0, 8))
    tell_the_truth(lab)
    launcher.kill()
    launcher.communicate(timeout=60)
    until(lambda: not lab.processes())
    before = tell_the_truth(lab)
    assert "running" not in before, seed
    run = lab.run(*words)
    assert run.returncode == 0, f"{seed}: {run.stderr}"
    assert tell_the_truth(lab) == ["done"] * 12, seed
    assert len(lab.steps()) == 12, seed
    for trained in lab.steps().values():
        assert sorted(set(trained)) == WHOLE, seed
        assert len(trained) <= len(WHOLE) + 1, f"{seed}: a kill may fall between a step and its checkpoint"
    assert sum(len(trained) > len(WHOLE) for trained in lab.steps().values()) <= 4, seed


def trainers(lab: Lab) -> list[psutil.Process]:
    return [one for one in lab.processes() if "train.py" in " ".join(one.info["cmdline"][:2])]


def tell_the_truth(lab: Lab) -> list[str]:
    """What `status` says, after it was held against what has been trained before and after it was asked."""
    before = lab.steps()
    told = lab.done([sys.executable, "-m", "amt_hydra", "status", "--json"])
    after = lab.steps()
    found = json.loads(told.stdout)
    for point in found:
        step, name = point["step"] or 0, point["exp_id"]
        assert max(before.get(name, [0])) - 1 <= step <= max(after.get(name, [0]))
        assert (point["state"] == "done") == (step == 6)
        if point["state"] == "waiting":
            assert name not in before
        if point["state"] == "running":
            assert point["holder"]["host"]
    return [point["state"] for point in found]


def test_retry_overwrites_once_and_then_goes_on(lab: Lab) -> None:
    """By the name that was typed, without the signature."""
    assert lab.run("seed=1", "exp_id=mine").returncode == 0
    launcher = lab.start("seed=1", "exp_id=mine", "init.overwrite=true", "max_steps=60")
    until(lambda: len(lab.steps()) == 2)  # the one that was moved aside is still there
    until(lambda: max(map(len, lab.steps().values())) > 8)
    launcher.send_signal(signal.SIGINT)
    launcher.communicate(timeout=60)
    fast = replace(lab, environ={**lab.environ, "PACE": "0.01"})
    assert fast.done([sys.executable, "-m", "amt_hydra", "retry", "mine"]).returncode == 0
    assert sorted(map(len, lab.steps().values())) in ([6, 60], [6, 61])


def test_ctrl_c_ends_the_point_and_the_sweep(lab: Lab) -> None:
    launcher = lab.start("seed=1,2", "max_steps=100")
    until(lambda: bool(lab.steps()))
    assert states(lab) == ["running", "waiting"]
    launcher.send_signal(signal.SIGINT)
    out = launcher.communicate(timeout=60)[0].decode()
    assert launcher.returncode == 130
    assert "0 ended well, 1 failed, 0 were done or running, 1 not started" in out
    assert len(lab.steps()) == 1
    assert not lab.processes()


def test_what_a_sweep_returns_to_any_sweeper_of_hydra(lab: Lab) -> None:
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom amt_hydra.sweep.run import Sweep\n"
        "task = Sweep(dict(os.environ), Path.cwd(), None, only_plan=False, json=True)\n"
        "print([r.return_value for r in task.launch([[*sys.argv[1:], f'seed={n}'] for n in (1, 2)], 0)])\n"
    )
    words = [word.replace(" ", "_") for word in lab.command(())[4:]]
    run = lab.done([sys.executable, "-c", code, *words])
    assert run.stdout.splitlines()[-1] == "[0.25, 0.5]", run.stderr


def test_a_pool_of_pretended_gpus_runs_points_side_by_side_each_on_its_own(lab: Lab) -> None:
    """The GPUs are names only: what is leased, and what a run is given, is all that this machine can show."""
    run = lab.run("seed=range(1,5)", "hydra/launcher=gpu_pool", "hydra.launcher.gpus=[0,1]")
    assert run.returncode == 0, run.stderr
    assert "4 ended well" in run.stdout
    times = {}
    for file in (lab.folder / "code" / "logs").glob("melody/*/times.json"):
        times[file.parent.name] = json.loads(file.read_text())
    assert sorted({entry["gpu"] for entry in times.values()}) == ["0", "1"]
    spans = sorted((entry["from"], entry["to"], entry["gpu"]) for entry in times.values())
    together = [(a, b) for a in spans for b in spans if a < b and b[0] < a[1]]
    assert together, "no two ran at the same time"
    assert all(a[2] != b[2] for a, b in together), "two ran on one GPU"


def test_the_others_run_where_one_of_a_pool_fails(lab: Lab) -> None:
    (lab.folder / "code" / "bad-1").touch()
    run = lab.run("seed=1,2,3", "hydra/launcher=gpu_pool", "hydra.launcher.gpus=[0,1]")
    assert run.returncode == 3
    assert "2 ended well, 1 failed, 0 were done or running, 0 not started" in run.stdout
    (lab.folder / "code" / "bad-1").unlink()
    again = lab.done([sys.executable, "-m", "amt_hydra", "retry", "failed"])
    assert again.returncode == 0, again.stderr
    assert states(lab) == ["done"] * 3
    assert {json.loads(file.read_text())["gpu"] for file in lab.folder.rglob("times.json")} <= {"0", "1"}


def test_a_pool_whose_launcher_is_killed_leaves_no_lease_and_no_orphan(lab: Lab) -> None:
    words = ("seed=1,2,3,4", "hydra/launcher=gpu_pool", "hydra.launcher.gpus=[0,1]")
    launcher = lab.start(*words)
    until(lambda: len(lab.steps()) == 2)
    launcher.kill()
    launcher.communicate(timeout=60)
    until(lambda: not lab.processes())
    assert lab.run(*words).returncode == 0
    assert states(lab) == ["done"] * 4
    for trained in lab.steps().values():
        assert sorted(set(trained)) == WHOLE


def test_no_gpu_to_pool(lab: Lab) -> None:
    run = lab.run("seed=1,2", "hydra/launcher=gpu_pool")
    assert run.returncode == 78
    assert "hydra/launcher=gpu_pool: no GPU is visible here" in run.stderr
    assert not (lab.folder / "outputs").exists()


def test_a_pool_that_is_leased_to_another_sweep_is_waited_for(lab: Lab) -> None:
    folder = lab.folder / f"amt_hydra-gpus-{os.getuid()}"
    folder.mkdir()
    theirs = FileLock(folder / "0.lock")
    with theirs:
        launcher = subprocess.Popen(
            lab.command(("seed=1", "hydra/launcher=gpu_pool", "hydra.launcher.gpus=[0]")),
            cwd=lab.folder,
            env=lab.environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert launcher.stderr is not None
        said = next(line for line in launcher.stderr if line.startswith("waiting"))
        assert "leased to another sweep" in said
        assert lab.steps() == {}
    launcher.communicate(timeout=60)
    assert launcher.returncode == 0
    assert list(lab.steps().values()) == [WHOLE]
