"""Settings against the machine: precision, GPUs, CPUs, disk, credentials."""

import os
import sys
from collections.abc import Iterator
from dataclasses import replace

from amt_hydra.checks.base import Check, Finding, Subject
from amt_hydra.commands import quote
from amt_hydra.resolve import auto_workers, loaders, on_cpu, wandb_mode
from amt_hydra.settings import NOT_ONLINE
from amt_hydra.version_rules import lacking

BF16_CAPABILITY = (8, 0)
"""First compute capability with bf16 arithmetic; older GPUs "support" it by emulation, and slowly."""

ROOM = 50 * 2**20
"""Bytes that should be free where the size of a checkpoint is unknown: those of a small model with its optimizer."""


class DevicesExist(Check):
    """The GPUs and machines asked for are there.

    A strategy that waits for more ranks than there are devices or nodes hangs, or dies after the start-up.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare ddp.devices with the GPUs that are visible."""
        gpus, ddp = subject.machine.gpus, subject.settings.ddp
        if subject.machine.to_come:
            return  # looked at in the job
        if ddp.nodes > 1 and subject.settings.launch.ranks != "srun":
            yield self.error(
                f"ddp.nodes={ddp.nodes}, but a launch here starts train.py on this machine alone: it would wait for "
                "the other nodes for ever",
                f"one machine: {subject.typed.changed('ddp.nodes=1')}",
                f"as a job: {replace(subject.typed, verb='-m').changed('hydra/launcher=slurm')}",
            )
        if ddp.accelerator == "cpu" or not isinstance(ddp.devices, int):
            return
        if gpus is None:
            if ddp.accelerator == "gpu":
                yield self.warning("GPUs cannot be counted here (no NVIDIA driver answers)")
        elif ddp.accelerator == "gpu" and not gpus:
            yield self.error("ddp asks for a GPU, and none is visible", subject.typed.changed("ddp=cpu1"))
        elif gpus and ddp.devices > len(gpus):
            yield self.error(
                f"ddp.devices={ddp.devices}, but {len(gpus)} GPUs are visible",
                subject.typed.changed(f"ddp.devices={len(gpus)}"),
            )


class PrecisionFits(Check):
    """The device computes in the precision asked for.

    bf16 needs compute capability 8.0; below it is emulated, slow, and reported as supported. So does a CPU without
    bf16 arithmetic. fp16 on a CPU is for trying things out.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Judge bf16 and fp16 on what is here."""
        own, machine = subject.effective("precision.name"), subject.machine
        if not isinstance(own, str | int):
            return
        name = str(own)
        if on_cpu(subject.settings, machine):
            if name.startswith("bf16") and not machine.cpu_bf16:
                yield self.warning(
                    f"precision {name} on this CPU is emulated, and some 15 times slower than 32",
                    subject.typed.changed("precision=fp32"),
                )
            elif name.startswith("16"):
                yield self.warning(f"precision {name} on a CPU is slow", subject.typed.changed("precision=fp32"))
            return
        devices = subject.settings.ddp.devices
        used = (machine.gpus or ())[: devices if isinstance(devices, int) else None]
        old = next((gpu for gpu in used if gpu.capability < BF16_CAPABILITY), None)
        if old is not None and name.startswith("bf16"):
            capability = ".".join(map(str, old.capability))
            yield self.error(
                f"precision {name} needs compute capability 8.0; GPU {old.index} ({old.name}) has {capability}",
                subject.typed.changed("precision=fp16"),
                subject.typed.changed("precision=fp32"),
            )


class WorkersFit(Check):
    """Loader processes fit the CPUs that the job really has.

    data.num_workers counts per GPU and loader. More processes than CPUs is the most frequent cause of a DDP hang.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Multiply, and compare with the job's CPUs."""
        workers, ranks = subject.whole_number("data.num_workers"), subject.settings.ddp.devices
        if not workers or not isinstance(ranks, int):
            return
        per_rank = loaders(subject.settings, subject.channels)
        total, cpus = workers * ranks * per_rank, subject.machine.cpus
        fitting, why = auto_workers(cpus, ranks, per_rank)
        if total > cpus:
            yield self.warning(
                f"data.num_workers={workers} makes {total} loader processes ({workers} x {ranks} ranks x {per_rank} "
                f"loaders); the job has {cpus} CPUs ({subject.machine.cpus_source}): {why} leaves {fitting}",
                subject.set_to("data.num_workers", fitting),
            )


class DiskSpace(Check):
    """The checkpoints that will be kept fit on the disk.

    A checkpoint cut short by a full disk is worse than none: last.ckpt is the one that is being written.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Multiply save_top_k and last.ckpt by the size of a checkpoint of this experiment, or of the warm-start's."""
        keep = subject.whole_number("checkpoint.save_top_k")
        sizes = [x.size for x in (*subject.state.found, subject.state.init) if x is not None and x.whole]
        free = subject.free[subject.plan.place.checkpoints]
        if not sizes and free < ROOM:
            yield self.warning(
                f"{free / 2**20:.1f} MiB are free in {subject.plan.place.checkpoints}, and no checkpoint tells yet how "
                "large the next will be",
                f"make room: less than {_mib(ROOM)} is hardly enough for one",
            )
        if keep is None or keep < 0 or not sizes:
            return
        there = 0 if subject.plan.moved_to else len(subject.state.found)
        more = 2 - there  # last.ckpt, and one while it is being written
        needed = max(0, keep + more) * max(sizes)
        if needed > free:
            fitting = free // max(sizes) - more
            yield self.error(
                f"{_mib(needed)} are needed for {keep} checkpoints and last.ckpt of {_mib(max(sizes))} each; "
                f"{_mib(free)} are free in {subject.plan.place.checkpoints}",
                f"make room for {_mib(needed - free)}",
                *([subject.set_to("checkpoint.save_top_k", fitting)] if fitting > 0 else []),
            )


class FoldersWritable(Check):
    """Records and checkpoints can be written.

    Better said now than after an hour, at the first checkpoint.
    """

    ignorable = False

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Ask for the nearest folder that exists; a file system without a free byte is full, or no place for files."""
        outputs, checkpoints = subject.settings.paths.outputs, subject.plan.place.checkpoints
        for key, folder in (("paths.outputs", outputs), ("checkpoints", checkpoints)):
            existing = next(p for p in (folder, *folder.parents) if os.path.lexists(p))
            way = f"make {existing} a folder that you can write to"
            ways = (
                [way, subject.typed.changed("paths.outputs=~/amt_outputs")] if folder.is_relative_to(outputs) else [way]
            )
            if not existing.is_dir():
                yield self.error(f"{key}: {existing} is in the way: it is no folder", *ways)
            elif not os.access(existing, os.W_OK | os.X_OK) or not subject.free[folder]:
                yield self.error(f"{key}: {existing} cannot be written to", *ways)


class InterpreterRuns(Check):
    """The interpreter of the repository is there, can be executed, and has torch and the Lightning that is imported.

    A virtual environment whose Python was upgraded away leaves a link to nothing; another environment than that of the
    training ends at its first import.
    """

    ignorable = False

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look at the file, and at what is installed for it where that is known."""
        ours = subject.typed.changed(f"repo.python={sys.executable}")
        if not (subject.python.is_file() and os.access(subject.python, os.X_OK)):
            yield self.error(f"repo.python={subject.python} cannot be executed", ours)
            return
        missing = " ".join(lacking(subject.versions, subject.repository.lightning))
        if missing:
            yield self.error(
                f"{subject.python} has no {missing.replace(' ', ' and no ')} ({subject.versions.source}): train.py "
                "would end at its first import",
                f"{quote(str(subject.python))} -m pip install {missing}",
                f"another interpreter: {subject.typed.changed('repo.python=<python>')}",
            )


class WandbReady(Check):
    """W&B has credentials where the job runs, or the run falls back to CSV files, said aloud.

    Without a key W&B ends the run before training, or leaves it empty.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Judge by the environment that the job will have."""
        wandb, kind = subject.machine.wandb, subject.settings.logger.kind
        if wandb_mode(subject.settings, subject.channels, subject.machine) in NOT_ONLINE:
            return
        if wandb.credentials:
            if wandb.problem:
                yield self.warning(f"W&B may refuse to start: {wandb.problem}", _offline(subject))
            return
        if "logger.kind" not in subject.channels or subject.channels["logger.kind"].carrier is None:
            yield self.warning(
                f"no W&B credentials ({wandb.source}), and this repository was not found to have a CSV logger: it may "
                "end at its start",
                "wandb login",
                _offline(subject),
            )
        elif kind == "wandb":
            yield self.warning(
                f"logger=wandb without W&B credentials ({wandb.source}): the run falls back to CSV files",
                "wandb login",
                subject.typed.changed("logger=csv"),
            )
        else:
            yield self.info(f"no W&B credentials ({wandb.source}): metrics go to metrics.csv")


def _offline(subject: Subject) -> str:
    """The command with W&B offline, by the means that counts there."""
    channel = subject.channels.get("logger.mode")
    if channel and channel.carrier:
        return subject.typed.changed("logger.mode=offline")
    return f"WANDB_MODE=offline {subject.typed}"


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"
