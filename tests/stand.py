"""A desk to stand at: a folder, an environment, and the command line run up to the launch."""

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from repos import Checkpoints

from amt_hydra.checks.base import Finding
from amt_hydra.commands import Typed
from amt_hydra.line import parse
from amt_hydra.machine import Machine, Wandb
from amt_hydra.preflight import Preflight, preflight

MACHINE = Machine(
    cpus=64,
    cpus_source="all 64 of this machine",
    cpu_bf16=True,
    gpus=(),
    gpus_source="no NVIDIA driver",
    shm_bytes=None,
    slurm=(),
    wandb=Wandb(credentials=True, source="WANDB_API_KEY", mode="online"),
)


@dataclass(frozen=True)
class Stand:
    """`folder` is where the user stands; `repository` is the one to train; its runs lie in `runs`."""

    folder: Path
    repository: Path
    runs: Path
    checkpoint: Checkpoints
    monkeypatch: pytest.MonkeyPatch
    words: tuple[str, ...] = ()
    """Given with every command."""

    def experiment(self, exp_id: str = "base") -> Path:
        """The checkpoint folder of an experiment."""
        return self.runs / "melody" / exp_id / "checkpoints"

    def last(self, exp_id: str = "base", step: int = 1000, score: float | None = 0.5) -> Path:
        """Leave a whole last.ckpt in an experiment."""
        return self.checkpoint(self.experiment(exp_id) / "last.ckpt", step, score)

    def machine(self, **facts: object) -> None:
        """Let the machine be another: its facts are given here, not read."""
        found = replace(MACHINE, **facts)  # type: ignore[arg-type]
        self.monkeypatch.setattr("amt_hydra.preflight.read_machine", lambda *_, **__: found)

    def pre(self, *words: str, **variables: str) -> Preflight:
        """Everything but the launch of `python -m amt_hydra repo.path=REPOSITORY WORDS`."""
        return self._pre((f"repo.path={self.repository}", *self.words, *words), variables, ())

    def follow(self, way: str, **variables: str) -> Preflight:
        """Do what a way out says: its command, read as a shell would, up to the launch."""
        words = shlex.split(way[way.index("env -u" if "env -u" in way else "python -m amt_hydra") :])
        unset = []
        while words[0] == "env":
            unset.append(words[2])
            words = words[3:]
        assert words[:3] == ["python", "-m", "amt_hydra"]
        return self._pre(words[3:], variables, unset)

    def _pre(self, argv: Sequence[str], variables: Mapping[str, str], unset: Sequence[str]) -> Preflight:
        line = parse(argv)
        with self.monkeypatch.context() as shell:
            for name, value in variables.items():
                shell.setenv(name, value)
            for name in unset:
                shell.delenv(name, raising=False)
            return preflight(Typed(line.verb, line.words, line.config_dir), dict(os.environ), self.folder)


def recorded(stand: Stand, **values: object) -> Path:
    """Leave the record of a launch with these settings; "__" stands for a dot."""
    folder = stand.folder / "outputs" / "melody" / "base" / "launches" / "20260101T000000Z"
    folder.mkdir(parents=True)
    settings = {key.replace("__", "."): {"value": value, "repository": None} for key, value in values.items()}
    (folder / "record.json").write_text(json.dumps({"settings": settings}))
    return folder / "record.json"


def of(pre: Preflight, check: str) -> list[Finding]:
    """The findings of one check."""
    return [f for f in pre.findings if f.id == check]


def errors(pre: Preflight) -> list[str]:
    return [f"{f.id}: {f.message}" for f in pre.stopped]


def refused(pre: Preflight) -> tuple[str, tuple[str, ...]]:
    """Message and ways out of the one refusal of a run's identity, which stops it."""
    (finding,) = of(pre, "IdentityHolds")
    assert finding in pre.stopped
    return finding.message, finding.fix


def way(ways: tuple[str, ...], label: str) -> str:
    """The way out whose label starts so."""
    found = [w for w in ways if w.startswith(label)]
    assert len(found) == 1, f"{label!r} among {ways}"
    return found[0]


def tree(folder: Path) -> Mapping[str, tuple[int, int, int, bytes | str]]:
    """All that lies below a folder, byte for byte: mode, size, time of change, content."""
    found: dict[str, tuple[int, int, int, bytes | str]] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_size, status.st_mtime_ns, content)
    return found


def option(argv: tuple[str, ...], name: str) -> str:
    """What train.py's command line gives an option."""
    return argv[argv.index(name) + 1]


def numbers(text: str) -> set[int]:
    return {int(n) for n in re.findall(r"\d+", text)}
