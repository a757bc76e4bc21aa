"""Sweeps that really run, killed and started again. The trainer is a small one: it counts, and saves by torch."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from filelock import FileLock

TRAIN = """\
import argparse
import json
import os
import sys
import time

import torch

parser = argparse.ArgumentParser()
parser.add_argument("exp_id")
parser.add_argument("-p", "--project", default="x")
parser.add_argument("--max-steps", type=int, default=6)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--init-ckpt", default=None)
args = parser.parse_args()
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "logs", args.project, args.exp_id)
last = os.path.join(folder, "checkpoints", "last.ckpt")
os.makedirs(os.path.dirname(last), exist_ok=True)


class Trainer:
    def fit(self, ckpt_path=None):
        step = torch.load(ckpt_path)["global_step"] if ckpt_path else 0
        began = time.time()
        if args.init_ckpt and not ckpt_path:
            print("weights of", args.init_ckpt)
        while step < args.max_steps:
            if os.path.exists(f"../bad-{args.seed}"):
                sys.exit(3)
            time.sleep(0.1)
            step += 1
            score = torch.tensor(args.seed / 4)
            kept = {"monitor": "f", "best_model_score": score, "current_score": score, "best_model_path": ""}
            state = {"state_dict": {"w": torch.zeros(2)}, "global_step": step, "epoch": 0, "optimizer_states": []}
            state["callbacks"] = {"ModelCheckpoint{'monitor': 'f'}": kept}
            state["pytorch-lightning_version"] = "2.4.0"
            torch.save(state, last + ".part")
            with open(os.path.join(folder, "steps.txt"), "a") as steps:
                steps.write(f"{step}\\n")
            os.replace(last + ".part", last)
        with open(os.path.join(folder, "times.json"), "w") as out:
            gpu = os.environ.get("CUDA_VISIBLE_DEVICES")
            json.dump({"from": began, "to": time.time(), "gpu": gpu}, out)


Trainer().fit(ckpt_path=last if os.path.exists(last) else None)
"""
KEPT = {"exp_id": "flag:exp_id", "project": "flag:project", "seed": "flag:seed", "max_steps": "flag:max_steps"}


@dataclass(frozen=True)
class Lab:
    """A folder to stand in, with a repository and a mapping for it."""

    folder: Path
    environ: dict[str, str]

    def command(self, words: Sequence[str]) -> list[str]:
        own = ["repo=counting", f"repo.path={self.folder / 'code'}", f"repo.python={sys.executable}", "max_steps=6"]
        return [sys.executable, "-m", "amt_hydra", "-m", *own, "checks.ignore.DocumentedDefaults=a toy", *words]

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self.command(words),
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return self.done(self.command(words))

    def done(self, command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """A command of this user's, run to its end."""
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def steps(self) -> dict[str, list[int]]:
        """Per point, the steps that it trained, in their order."""
        files = (self.folder / "code" / "logs").glob("melody/*/steps.txt")
        return {file.parent.name: [int(line) for line in file.read_text().split()] for file in sorted(files)}

    def processes(self) -> list[psutil.Process]:
        """All that still runs for it."""
        found = []
        for process in psutil.process_iter(["cmdline"]):
            if any(str(self.folder) in word for word in process.info["cmdline"] or ()):
                found.append(process)
        return found


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    source = tmp_path / "code" / "src"
    source.mkdir(parents=True)
    (source / "train.py").write_text(TRAIN)
    (source / "config.py").write_text("shared_cfg = {}\n")
    (source / "data_presets.py").write_text("data_preset_single_cfg = {}\n")
    mapping = tmp_path / "conf" / "repo" / "counting.yaml"
    mapping.parent.mkdir(parents=True)
    means = "".join(f"  {key}: [{means}]\n" for key, means in KEPT.items()) + "  init: {ckpt: [flag:init_ckpt]}\n"
    mapping.write_text(f"kind: counting\nruns: {tmp_path / 'code' / 'logs'}\nmeans:\n{means}")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AMT_", "WANDB_", "SLURM_"))}
    kept["TMPDIR"] = str(tmp_path)  # leases of its own, beside those of other tests
    return Lab(tmp_path, {**kept, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})


def states(lab: Lab) -> list[str]:
    """What `status` says of the points."""
    command = [sys.executable, "-m", "amt_hydra", "status", "--json"]
    done = subprocess.run(
        command, cwd=lab.folder, env=lab.environ, capture_output=True, text=True, timeout=60, check=True
    )
    return [point["state"] for point in json.loads(done.stdout)]


def until(met: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


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


@pytest.mark.parametrize("at", [3, 9])
def test_a_sweep_whose_launcher_is_killed_loses_nothing_and_trains_nothing_twice(lab: Lab, at: int) -> None:
    """SIGKILL in the first point, and in the second."""
    launcher = lab.start("seed=1,2,3")
    until(lambda: sum(map(len, lab.steps().values())) >= at)
    launcher.kill()
    launcher.communicate()
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


def test_a_pool_whose_launcher_is_killed_leaves_no_lease_and_no_orphan(lab: Lab) -> None:
    words = ("seed=1,2,3,4", "hydra/launcher=gpu_pool", "hydra.launcher.gpus=[0,1]")
    launcher = lab.start(*words)
    until(lambda: len(lab.steps()) == 2)
    launcher.kill()
    launcher.communicate()
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
