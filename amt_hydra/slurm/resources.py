"""What a job asks Slurm for, as it follows from the settings of its run. Pure."""

import hashlib
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from amt_hydra.machine import Machine
from amt_hydra.mapping import Channel
from amt_hydra.plan import Starter
from amt_hydra.resolve import loaders
from amt_hydra.settings import Settings
from amt_hydra.slurm.step import asking

AUTO_WORKERS = 4
"""Loader processes that data.num_workers=auto is given CPUs for: the job does not exist yet, whose CPUs would decide.
A rank of this family is seldom starved by four."""
JUDGED_MINUTES = 10
"""submitit takes a signal within the last ten minutes of a job for its time limit, and so of all of a shorter one."""


@dataclass(frozen=True, slots=True)
class Resources:
    """One job's. Points that ask for the same are submitted as one array."""

    nodes: int
    tasks_per_node: int
    """One for each rank."""
    cpus_per_task: int
    gpus_per_node: int
    minutes: int
    """Time limit."""
    signal_s: int
    partition: str | None
    account: str | None
    qos: str | None
    constraint: str | None
    mem_gb: int | None
    setup: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    requeues: int

    @property
    def owner(self) -> str:
        """Who starts the processes that train: one party only."""
        ranks = self.nodes * self.tasks_per_node
        if ranks == 1:
            return "one process, started by the job"
        sizes = f"{self.nodes} nodes x {self.tasks_per_node} tasks per node"
        return f"srun starts {ranks} ranks ({sizes} = {self.nodes} nodes x {self.tasks_per_node} devices)"

    @property
    def gpu_hours(self) -> float:
        """Of one job, if it takes all its time."""
        return self.nodes * self.gpus_per_node * self.minutes / 60

    def __str__(self) -> str:
        gpus = f", {self.gpus_per_node} GPUs per node" if self.gpus_per_node else ""
        time = f"{self.minutes // 60}:{self.minutes % 60:02d} hours"
        return f"{self.owner}; {self.cpus_per_task} CPUs per task{gpus}, {time}"


def resources(settings: Settings, channels: Mapping[str, Channel]) -> Resources:
    """What the run asks for. Devices that are left to the machine count as one: a check refuses them."""
    ddp, slurm = settings.ddp, settings.slurm
    devices = ddp.devices if isinstance(ddp.devices, int) else 1
    return Resources(
        nodes=ddp.nodes,
        tasks_per_node=devices,
        cpus_per_task=slurm.cpus_per_task or 1 + _workers(settings, channels) * loaders(settings, channels),
        gpus_per_node=0 if ddp.accelerator == "cpu" else devices,
        minutes=max(1, math.ceil(slurm.hours * 60)),
        signal_s=slurm.signal,
        partition=slurm.partition or None,
        account=slurm.account or None,
        qos=slurm.qos or None,
        constraint=slurm.constraint or None,
        mem_gb=slurm.mem_gb,
        setup=slurm.setup,
        options=tuple(sorted(slurm.options.items())),
        requeues=slurm.requeues,
    )


def machine_to_come(machine: Machine, asked: Resources) -> Machine:
    """The machine that a job will have: what this one cannot know of it is left open, and looked at again there."""
    cpus = asked.cpus_per_task * asked.tasks_per_node
    return replace(
        machine,
        cpus=cpus,
        cpus_source=f"the job asks for {asked.tasks_per_node} x {asked.cpus_per_task}",
        gpus=None if asked.gpus_per_node else (),
        gpus_source="the job asks for them" if asked.gpus_per_node else "the job asks for none",
        shm_bytes=None,
        job=None,
        to_come=True,
    )


def starter(settings: Settings, machine: Machine, experiment: Path) -> Starter:
    """Who starts the ranks: srun, where launch.ranks says so; else Lightning, which needs nothing."""
    devices = settings.ddp.devices
    if settings.launch.ranks != "srun" or not isinstance(devices, int):
        return Starter()
    job = machine.job
    # What the job was asked for, else what this machine has of it: another one may have less.
    cpus = job.cpus_per_task if job and job.cpus_per_task else max(1, machine.cpus // devices)
    mark = hashlib.sha256(os.fsencode(experiment)).hexdigest()[:8]
    name = f"amt-{mark}"  # no two runs are in one experiment, so no two steps of a job have one name
    # Not inherited: srun takes none of the job's own numbers. Overlapping, as the job may itself be a step of srun's.
    words = (
        "srun",
        "--overlap",
        f"--nodes={settings.ddp.nodes}",
        f"--ntasks-per-node={devices}",
        f"--cpus-per-task={cpus}",
        "--kill-on-bad-exit=1",
        "--unbuffered",
        "--disable-status",  # Ctrl-C then reaches the ranks at once
        f"--job-name={name}",
    )
    return Starter(words, asking(job.job if job else "", name))


def _workers(settings: Settings, channels: Mapping[str, Channel]) -> int:
    own = channels["data.num_workers"].current if "data.num_workers" in channels else None
    asked = settings.data.num_workers
    if asked == "auto":
        return AUTO_WORKERS
    return asked if asked is not None else own if isinstance(own, int) else 0
