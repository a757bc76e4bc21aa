"""A small trainer that counts, a mapping for it, and sweeps of it.

It saves what torch has saved once, with other numbers in it: there are hundreds of it, and torch takes seconds to come.
"""

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
import struct
import sys
import time
import zipfile

parser = argparse.ArgumentParser()
parser.add_argument("exp_id")
parser.add_argument("-p", "--project", default="x")
parser.add_argument("--max-steps", type=int, default=6)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--init-ckpt", default=None)
args = parser.parse_args()
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "logs", args.project, args.exp_id)
last = os.path.join(folder, "checkpoints", "last.ckpt")
NUMBERS = b"J" + struct.pack("<i", 10**6), b"G" + struct.pack(">d", 0.123456789)
os.makedirs(os.path.dirname(last), exist_ok=True)



def save(step, file):
    # The template, whose pickle has the two NUMBERS, with this step and the seed as its score.
    new = b"J" + struct.pack("<i", step), b"G" + struct.pack(">d", args.seed / 4)
    with zipfile.ZipFile("../template.ckpt") as template, zipfile.ZipFile(file, "w") as out:
        for name in template.namelist():
            content = template.read(name)
            for old, this in zip(NUMBERS, new):
                content = content.replace(old, this)
            out.writestr(name, content)


def saved(file):
    with zipfile.ZipFile(file) as ckpt:
        content = ckpt.read("template/data.pkl")
    return struct.unpack_from("<i", content, content.index(b"global_step") + len(b"global_stepq") + 2)[0]


class Trainer:
    def fit(self, ckpt_path=None):
        step = saved(ckpt_path) if ckpt_path else 0
        began = time.time()
        if args.init_ckpt and not ckpt_path:
            print("weights of", args.init_ckpt)
        while step < args.max_steps:
            if os.path.exists(f"../bad-{args.seed}"):
                sys.exit(3)
            time.sleep(float(os.environ.get("PACE", "0.1")))
            step += 1
            save(step, last + ".part")
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
        """All that still runs for it: commands that name the folder, and those that stand in it."""
        found = []
        for process in psutil.process_iter(["cmdline", "cwd", "status"]):
            words = [*(process.info["cmdline"] or ()), process.info["cwd"] or ""]
            if process.info["status"] != psutil.STATUS_ZOMBIE and any(str(self.folder) in word for word in words):
                found.append(process)
        return found


def write_template(file: Path) -> None:
    """A checkpoint as Lightning lays one out. Its step and its score are those that the trainer looks for."""
    import torch

    kept = {"monitor": "f", "best_model_score": 0.123456789, "current_score": 0.123456789, "best_model_path": ""}
    state = {"state_dict": {"w": torch.zeros(2)}, "global_step": 10**6, "epoch": 0, "optimizer_states": []}
    state |= {"callbacks": {"ModelCheckpoint{'monitor': 'f'}": kept}, "pytorch-lightning_version": "2.4.0"}
    torch.save(state, file)


def make_lab(tmp_path: Path) -> Lab:
    """Write the repository and its mapping into a folder."""
    source = tmp_path / "code" / "src"
    source.mkdir(parents=True)
    (source / "train.py").write_text(TRAIN)
    write_template(tmp_path / "code" / "template.ckpt")
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
