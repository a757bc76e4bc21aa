"""Whole-process time of `inspect` on a repository of the public code's size, beside the program's own start-up."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_ROUNDS = 15
_FLAGS = 70
_MODULES = 45
_PRESETS = 90
_LINES = 8500  # of all modules together
_TRAIN = """\
import argparse
import os

import pytorch_lightning as pl
import torch
from config.config import shared_cfg
from config.data_presets import data_preset_single_cfg
{imports}
parser = argparse.ArgumentParser()
parser.add_argument("exp_id", type=str)
{flags}
args = parser.parse_args()
last = os.path.join(shared_cfg["WANDB"]["save_dir"], "p", args.exp_id, "checkpoints", "last.ckpt")
{reads}
model = pl.LightningModule()
if os.path.exists(last):
    model.load_state_dict(torch.load(last)["state_dict"], strict=False)
pl.Trainer().fit(model)
"""
_BLOCK = """\
class Layer{n}:
    def __init__(self, width, depth={n}):
        self.width, self.depth = width, depth
        self.table = {{"a": [width, depth], "b": {{"c": width * 2, "d": "text"}}}}

    def forward(self, x, mask=None):
        for step in range(self.depth):
            if mask is not None and step % 2:
                x = self.mix(x, mask[step]) + self.table["a"][0]
            else:
                x = x * self.table["b"]["c"]
        return x

"""


def write(root: Path) -> Path:
    """Write a repository as large as the public one: flags, presets, modules and lines."""
    source = root / "amt" / "src"
    for folder in ("config", "model"):
        (source / folder).mkdir(parents=True)
    blocks = _LINES // _MODULES // _BLOCK.count("\n")
    for number in range(_MODULES):
        text = "".join(_BLOCK.format(n=n) for n in range(blocks))
        (source / "model" / f"part{number}.py").write_text("import math\nimport torch\n" + text)
    (source / "train.py").write_text(
        _TRAIN.format(
            imports="\n".join(f"from model.part{n} import Layer0 as Layer{n}" for n in range(_MODULES)),
            flags="\n".join(
                f'parser.add_argument("-f{n}", "--flag-{n}", type=int, default={n})' for n in range(_FLAGS)
            ),
            reads="\n".join(f'shared_cfg["S{n % 9}"]["key_{n}"] = args.flag_{n}' for n in range(_FLAGS)),
        )
    )
    sections = "".join(f'    "S{n}": {{' + "".join(f'"key_{k}": {k}, ' for k in range(12)) + "},\n" for n in range(9))
    (source / "config" / "config.py").write_text(
        f'shared_cfg = {{\n    "WANDB": {{"save_dir": "../logs"}},\n{sections}}}\n'
    )
    presets = "".join(f'    "set{n}": {{"eval_vocab": [None], "train_split": "train"}},\n' for n in range(_PRESETS))
    (source / "config" / "data_presets.py").write_text(f"data_preset_single_cfg = {{\n{presets}}}\n")
    return root


def median(command: list[str], cwd: Path) -> float:
    """Median seconds of a command."""
    seconds = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        subprocess.run(command, cwd=cwd, check=True, capture_output=True, env={**os.environ, "HOME": str(cwd)})
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[_ROUNDS // 2]


def main() -> None:
    """Print what inspect takes beyond the program's start, in seconds and as a ratio to it."""
    roots = [Path(argument).resolve() for argument in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder)
        bundled = median([sys.executable, "-m", "amt_hydra", "conventions"], where)
        for root in roots or [write(where / "r")]:
            taken = median([sys.executable, "-m", "amt_hydra", "inspect", "--json", str(root)], where)
            beyond, ratio = (taken - bundled) * 1000, taken / bundled
            print(f"inspect {root.name:<20} {taken * 1000:5.0f} ms, {beyond:4.0f} ms beyond start-up ({ratio:.2f} x)")


if __name__ == "__main__":
    main()
