"""Runs in Slurm jobs: what is asked for, and what a job has."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from amt_hydra.checks.base import Check, Finding, Subject
from amt_hydra.slurm.resources import JUDGED_MINUTES, resources


class JobIsSized(Check):
    """A job says what it computes on: ddp names the devices, and whether they are GPUs.

    Slurm gives what is asked for; what a run would find by itself on this machine says nothing about that one.
    """

    ignorable = False

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Nothing may be left to the machine."""
        if not subject.machine.to_come:
            return
        open_ = [key for key in ("devices", "accelerator") if _is_auto(subject, f"ddp.{key}")]
        if open_:
            drop = [f"ddp.{key}" for key in open_]
            yield self.error(
                f"ddp.{open_[0]}=auto says nothing to Slurm: name what the job shall ask for",
                *(_submitted(subject, f"ddp={option}", drop=drop) for option in ("gpu1", "gpus4", "cpu1")),
            )


class TimeLimitIsSeen(Check):
    """A job has time to train before it is asked to end, and its time limit is told from a preemption.

    submitit takes every signal in the last ten minutes of a job for the time limit.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare slurm.hours with slurm.signal, and with those ten minutes."""
        if not subject.machine.to_come:
            return
        asked = resources(subject.settings, subject.channels)
        hours = subject.settings.slurm.hours
        if asked.signal_s >= asked.minutes * 60:
            yield self.error(
                f"slurm.hours={hours:g} is {asked.minutes} min, and slurm.signal={asked.signal_s} s before its end the "
                "run is asked to stop: it would never train",
                _submitted(subject, f"slurm.hours={(asked.signal_s + 600) / 3600:.2g}"),
            )
        elif asked.minutes <= JUDGED_MINUTES:
            yield self.warning(
                f"slurm.hours={hours:g} is {asked.minutes} min: of a job of {JUDGED_MINUTES} min and less submitit "
                "takes every preemption for the time limit, and each counts among slurm.requeues",
                "slurm.hours=0.5, or more",
            )


class RanksFitJob(Check):
    """Ranks, tasks and machines of the Slurm job that we are in agree, and one party starts the processes.

    Where they do not, half the ranks wait for ever; where the trainer takes itself for a task of Slurm's, it waits for
    others that nobody starts.
    """

    ignorable = False

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare, and say who starts them."""
        job, ddp, ranks = subject.machine.job, subject.settings.ddp, subject.settings.launch.ranks
        if subject.machine.to_come:
            return
        alone = subject.typed.changed("launch.ranks=lightning")
        if ranks == "srun" and (job is None or "srun" not in subject.machine.slurm):
            what = "there is no srun here" if job is not None else "we are in no Slurm job"
            yield self.error(f"launch.ranks=srun, and {what}", alone)
        elif ranks == "srun" and job is not None:
            devices = ddp.devices if isinstance(ddp.devices, int) else 1
            asked = f"{ddp.nodes} nodes x {devices} devices"
            if job.nodes < ddp.nodes or (job.tasks is not None and job.tasks < ddp.nodes * devices):
                yield self.error(
                    f"{asked} are {ddp.nodes * devices} ranks, and Slurm job {job.job} has {job.nodes} nodes and "
                    f"{'no number of' if job.tasks is None else job.tasks} tasks: some ranks would wait for ever",
                    f"salloc --nodes={ddp.nodes} --ntasks-per-node={devices}",
                    *([alone] if ddp.nodes == 1 else []),
                )
        elif job is not None:
            yield self.info(
                f"in Slurm job {job.job}: Lightning starts the ranks itself, so what Slurm says of tasks (SLURM_*) is "
                "taken out of train.py's environment"
            )


def _submitted(subject: Subject, *new: str, drop: Sequence[str] = ()) -> str:
    return replace(subject.typed, verb="-m").changed("hydra/launcher=slurm", *new, drop=drop)


def _is_auto(subject: Subject, key: str) -> bool:
    return subject.decision(key).value == "auto" or subject.decision(key).origin.who == "machine"
