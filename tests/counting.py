"""A small trainer that counts and saves by torch, a mapping for it, and sweeps of it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

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
            time.sleep(float(os.environ.get("PACE", "0.1")))
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


def make_lab(tmp_path: Path) -> Lab:
    """Write the repository and its mapping into a folder."""
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
