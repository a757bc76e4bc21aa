"""What the X-ray of a checkpoint yields. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TensorFact:
    """Name, shape and dtype ("float32", "bfloat16", …) of one tensor of the model's state_dict."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Monitor:
    """State of one ModelCheckpoint callback."""

    monitor: str | None
    best_path: str | None
    """best_model_path as written when the checkpoint was saved: the file may have moved since."""
    best_score: float | None
    current_score: float | None
    """The monitored value at this very checkpoint."""


@dataclass(frozen=True, slots=True)
class Xray:
    """One checkpoint file, looked at without torch and without executing any of its pickles."""

    path: Path
    """As asked for; absolute."""
    size: int
    """Bytes, of the file a link leads to."""
    mtime: float
    link: Path | None
    """What the path resolves to where it is a symbolic link, else None."""
    whole: bool
    """True where the file is a complete torch.save archive whose pickle could be read to its end."""
    problem: str | None
    """Why it is not whole, in words for a user ("cut short: …", "legacy (non-zip) format: …", "missing")."""
    global_step: int | None = None
    epoch: int | None = None
    lightning_version: str | None = None
    optimizer_groups: tuple[tuple[Mapping[str, object], ...], ...] = ()
    """Per optimizer, per parameter group: its plain values (lr, initial_lr, weight_decay, …)."""
    schedulers: tuple[Mapping[str, object], ...] = ()
    """Per scheduler: its plain values (last_epoch, base_lrs, _last_lr, …)."""
    monitors: tuple[Monitor, ...] = ()
    hyper_parameters: Mapping[str, object] = field(default_factory=dict)
    """The plain values; anything else is its repr-like placeholder, e.g. "<task.TaskManager>"."""
    tensors: tuple[TensorFact, ...] = ()
    refused_globals: tuple[str, ...] = ()
    """What torch.load(weights_only=True) refuses by default in the pickle, e.g. "utils.task_manager.TaskManager"."""
    refused_opcodes: tuple[str, ...] = ()
    """Pickle opcodes that weights_only does not know: none, unless torch.save was asked for another protocol."""

    @property
    def weights_only(self) -> bool:
        """Whether torch.load(weights_only=True), the default since torch 2.6, takes the file without an allow-list."""
        return self.whole and not self.refused_globals and not self.refused_opcodes

    @property
    def score(self) -> float | None:
        """The monitored value at this checkpoint, where one was kept."""
        return next((m.current_score for m in self.monitors if m.current_score is not None), None)
