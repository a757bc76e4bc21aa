"""The bundled repository's place, and runs of it in processes of their own, several to a process: start-up costs."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SRC = Path(__file__).resolve().parents[2] / "amt_hydra" / "reference" / "src"
DRIVER = """
import contextlib, io, json, os, signal, sys
import callbacks, train

on_batch_end = callbacks.StopOnSignal.on_train_batch_end
def with_signal(self, trainer, *args):
    if str(trainer.global_step) == os.environ.get("SIGTERM_AT_STEP"):
        os.kill(os.getpid(), signal.SIGTERM)
    on_batch_end(self, trainer, *args)
callbacks.StopOnSignal.on_train_batch_end = with_signal

for argv, env in json.load(sys.stdin):
    os.environ.update(env)
    sys.argv = ["train.py", *argv]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = train.main()
        except SystemExit as error:
            code = error.code
    for name in env:
        del os.environ[name]
    print("RUN " + json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)
"""


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str

    @property
    def identity(self) -> str:
        return next(line for line in self.out.splitlines() if line.startswith("identity: "))


def clean_env(**more: str) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AMT_", "WANDB", "SLURM_"))}
    return env | {"OMP_NUM_THREADS": "1", "NETRC": "/nonexistent", **more}


def train_process(*argv: str, **env: str) -> Run:
    """Run train.py once, as a user does."""
    done = subprocess.run(
        [sys.executable, "train.py", *argv], cwd=SRC, env=clean_env(**env), capture_output=True, text=True, check=False
    )
    return Run(done.returncode, done.stdout, done.stderr)


def train_runs(*entries: list[str] | tuple[list[str], dict[str, str]]) -> list[Run]:
    """Run train.py once per argument list, in order, in one fresh process; an entry may be (argv, environment)."""
    pairs = [entry if isinstance(entry, tuple) else (entry, {}) for entry in entries]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps(pairs),
        cwd=SRC,
        env=clean_env(),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line[4:] for line in done.stdout.splitlines() if line.startswith("RUN ")]
    assert len(lines) == len(pairs), done.stderr
    return [Run(*json.loads(line)) for line in lines]
