"""Starts train.py through the bridge as the launcher does, with a plan written by hand."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainable import Trainable

ROOT = Path(__file__).resolve().parents[2]
ENTRY = ROOT / "amt_hydra" / "bridge" / "run.py"
_NOT_INHERITED = ("AMT_", "WANDB_", "SLURM_", "MASTER_", "RANK", "LOCAL_", "NODE_", "WORLD_", "PYTHON", "PL_")


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str
    plan: Path

    def events(self, rank: int = 0) -> list[dict[str, Any]]:
        """What a rank reported; nothing where it left no report."""
        file = self.plan.with_name(f"{self.plan.stem}-rank{rank}.jsonl")
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.is_file() else []

    def patched(self, rank: int = 0) -> dict[str, str]:
        return {event["what"]: event["detail"] for event in self.events(rank) if event["event"] == "patched"}

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.plan.read_bytes()).hexdigest()[:12]

    @property
    def all(self) -> str:
        return self.out + self.err


def start(
    train: Path,
    plan: Path,
    *argv: str,
    config: Mapping[Path, Mapping[str, object]] | None = None,
    added: Mapping[str, Mapping[str, object]] | None = None,
    checkpoints: Path | None = None,
    python: tuple[str, ...] = (),
    **variables: str,
) -> Ended:
    """`python bridge/run.py ARGV` in train.py's folder; keys of `config` are dotted."""
    values = [
        {"file": str(file), "key": key.split("."), "value": value}
        for file, keys in (config or {}).items()
        for key, value in keys.items()
    ]
    document = {
        "schema": 1,
        "root": str(train.parent),
        "train": str(train),
        "checkpoints": str(checkpoints or train.parent / "checkpoints"),
        "config": values,
        "capabilities": added or {},
    }
    plan.parent.mkdir(parents=True, exist_ok=True)
    plan.write_text(json.dumps(document), encoding="utf-8")
    return started(train.parent, plan, *argv, python=python, **variables)


def started(folder: Path, plan: Path, *argv: str, python: tuple[str, ...] = (), **variables: str) -> Ended:
    """The same with a plan that is there, or is not."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_NOT_INHERITED)}
    done = subprocess.run(
        [sys.executable, *python, str(ENTRY), *argv],
        cwd=folder,
        env={**kept, "OMP_NUM_THREADS": "1", "AMT_BRIDGE_PLAN": str(plan), **variables},
        capture_output=True,
        timeout=120,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), plan)


@dataclass(frozen=True)
class Trained:
    """A repository that trains, started through the bridge."""

    repository: Trainable
    variables: Mapping[str, str] = field(default_factory=dict)

    def __call__(
        self,
        exp_id: str,
        *argv: str,
        config: Mapping[str, object] | None = None,
        folder: Path | None = None,
        **added: Any,
    ) -> Ended:
        """Capabilities by name; those in capitals are environment variables. metrics.csv instead of W&B always."""
        variables = {name: value for name, value in added.items() if name.isupper()}
        wanted = {"csv": {}, **{name: value for name, value in added.items() if not name.isupper()}}
        number = len(list(self.repository.root.glob("plans/*/*.json")))
        source = self.repository.source
        return start(
            source / "train.py",
            self.repository.root / "plans" / str(number) / "bridge.json",
            *(exp_id, "-p", "x", "-pr", "32", "-g", "1", *argv),
            config={source / "config" / "config.py": config or {}},
            added={name: value for name, value in wanted.items() if value is not None},
            checkpoints=folder or self.folder(exp_id),
            **{**self.variables, **variables},
        )

    def folder(self, exp_id: str) -> Path:
        return self.repository.checkpoints(exp_id, "x")

    def well(self, exp_id: str, *argv: str, **how: Any) -> Ended:
        """A run that ends well, or else shows what it said."""
        run = self(exp_id, *argv, **how)
        assert run.code == 0, run.all
        return run

    def saved(self, exp_id: str, name: str = "last.ckpt") -> dict[str, Any]:
        return self.load(self.folder(exp_id) / name)

    def load(self, path: Path) -> dict[str, Any]:
        """A checkpoint, with the class of the repository's own that it holds."""
        return self.repository.load(path)
