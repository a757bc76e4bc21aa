"""Settings that depend on the machine or the repository, made definite before the plan is laid out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from amt_hydra.machine import Machine
from amt_hydra.mapping import Channel
from amt_hydra.origins import Origin
from amt_hydra.settings import Settings

EMULATED = "this CPU emulates it"


@dataclass(frozen=True, slots=True)
class Resolved:
    """Settings with every `auto` decided, and who decided it."""

    settings: Settings
    origins: Mapping[str, Origin]


def resolve(
    settings: Settings, origins: Mapping[str, Origin], channels: Mapping[str, Channel], machine: Machine
) -> Resolved:
    """Decide devices, precision, workers and logger. Explicit values are never changed."""
    changes: dict[str, tuple[Any, Origin]] = {}
    gpus = len(usable_gpus(settings, machine))
    devices = max(1, gpus) if settings.ddp.devices == "auto" else settings.ddp.devices
    if settings.ddp.devices == "auto":
        seen = machine.gpus_source if machine.gpus is None else f"{gpus} GPUs visible"
        changes["ddp.devices"] = (devices, Origin("machine", seen))
    bf16 = settings.precision.name == "bf16-mixed" and origins["precision.name"].who == "documented"
    if bf16 and on_cpu(settings, machine) and not machine.cpu_bf16:
        changes["precision.name"] = ("32", Origin("machine", f"documented: bf16-mixed; {EMULATED}"))
    if settings.data.num_workers == "auto":
        workers, why = auto_workers(machine.cpus, devices, loaders(settings, channels))
        who = origins["data.num_workers"].who  # auto is a wish like any other: it has to reach the repository
        changes["data.num_workers"] = (workers, Origin(who, f"auto: {why}"))
    if settings.logger.kind == "auto":
        ready = machine.wandb.credentials or machine.wandb.mode == "offline"
        changes["logger.kind"] = ("wandb" if ready else "csv", Origin("machine", machine.wandb.source))
    for key, (value, _) in changes.items():
        settings = _with(settings, key, value)
    return Resolved(settings, {**origins, **{key: origin for key, (_, origin) in changes.items()}})


def usable_gpus(settings: Settings, machine: Machine) -> tuple[object, ...]:
    """The GPUs that train.py will see."""
    return () if settings.ddp.accelerator == "cpu" else machine.gpus or ()


def on_cpu(settings: Settings, machine: Machine) -> bool:
    """Whether the run is known to compute on the CPU: False where the GPUs cannot be told."""
    return settings.ddp.accelerator == "cpu" or machine.gpus == ()


def loaders(settings: Settings, channels: Mapping[str, Channel]) -> int:
    """DataLoaders per rank."""
    if settings.repo.loaders == "one":
        return 1
    local, sub = batch_part(settings, channels, "local"), batch_part(settings, channels, "sub")
    return max(1, local // sub) if local and sub else 1


def batch_part(settings: Settings, channels: Mapping[str, Channel], part: str) -> int | None:
    """batch.sub or batch.local: the setting, else the repository's own value, else None."""
    value = getattr(settings.batch, part)
    own = channels[f"batch.{part}"].current if f"batch.{part}" in channels else None
    return value if value is not None else own if isinstance(own, int) else None


def wandb_mode(settings: Settings, channels: Mapping[str, Channel], machine: Machine) -> str:
    """The mode that W&B runs in: the setting, else what the repository passes itself, else what wandb finds."""
    own = channels["logger.mode"].current if "logger.mode" in channels else None
    return settings.logger.mode or (own if isinstance(own, str) else machine.wandb.mode)


def auto_workers(cpus: int, ranks: int, loaders_per_rank: int) -> tuple[int, str]:
    """Loader processes per loader that the CPUs leave room for, and the sum that says so."""
    workers = max(0, (cpus - ranks) // (ranks * loaders_per_rank))
    return workers, f"({cpus} CPUs - {ranks} ranks) / ({ranks} ranks x {loaders_per_rank} loaders)"


def _with(settings: Settings, key: str, value: Any) -> Settings:
    section, _, name = key.rpartition(".")
    return replace(settings, **{section: replace(getattr(settings, section), **{name: value})})
