"""Runs of the bundled repository in processes of their own, several runs to a process: start-up is what costs."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "amt_hydra" / "reference" / "src"
VOCADITO = Path(__file__).resolve().parents[3] / "shared" / "data" / "vocadito"

DRIVER = """
import contextlib, io, json, os, sys
import train
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


Runs = Callable[..., list[Run]]


@pytest.fixture(scope="session")
def train_runs() -> Runs:
    """Run train.py once per argument list, in order, in one fresh process; an entry may be (argv, environment)."""

    def runs(*entries: list[str] | tuple[list[str], dict[str, str]]) -> list[Run]:
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

    return runs


@pytest.fixture
def reference_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the repository's modules importable for one test, and forget them afterwards: their names are common."""
    monkeypatch.syspath_prepend(str(SRC))
    ours = {path.stem for path in SRC.glob("*.py")}
    before = {name: sys.modules.pop(name) for name in ours if name in sys.modules}
    yield
    for name in ours:
        sys.modules.pop(name, None)
    sys.modules.update(before)


@pytest.fixture
def vocadito() -> Path:
    if not VOCADITO.is_dir():
        pytest.skip("the recording vocadito_1 is not beside this checkout")
    return VOCADITO
