"""Runs for Slurm: what a job has to say, its time, and the ranks in it."""

import os

import pytest
from stand import Stand, of

from amt_hydra.checks.base import Finding
from amt_hydra.slurm.allocation import Allocation
from amt_hydra.sweep.points import Point, plan_point

pytest_plugins = ["desks"]

JOB = Allocation("7", nodes=1, tasks=2)


def submitted(stand: Stand, *words: str) -> Point:
    """The point of `-m hydra/launcher=slurm WORDS`, planned for its job."""
    own = (f"repo.path={stand.repository}", *words)
    return plan_point(own, dict(os.environ), stand.folder, None, to_submit=True)


def told(point: Point, check: str) -> list[Finding]:
    return [finding for finding in point.findings if finding.id == check]


# JobIsSized


@pytest.mark.parametrize("words", [("ddp=auto",), (), ("ddp=gpu1", "ddp.accelerator=auto")])
def test_a_job_that_does_not_say_what_it_computes_on_is_refused_with_those_that_do(
    stand: Stand, words: tuple[str, ...]
) -> None:
    point = submitted(stand, *words)
    (finding,) = told(point, "JobIsSized")
    assert point.action == "refused"
    assert "says nothing to Slurm" in finding.message
    assert [way.rpartition("ddp=")[2] for way in finding.fix] == ["gpu1", "gpus4", "cpu1"]
    assert all(" -m " in f"{way} " and "hydra/launcher=slurm" in way for way in finding.fix)


@pytest.mark.parametrize("group", ["gpu1", "gpus4", "nodes2x8", "cpu2"])
def test_a_group_that_names_its_devices_is_planned_whatever_this_machine_has(public: Stand, group: str) -> None:
    point = submitted(public, f"ddp={group}", "slurm.hours=24", "batch.sub=1", "batch.local=1")
    assert told(point, "JobIsSized") == told(point, "DevicesExist") == []
    assert point.action == "start", point.why


# TimeLimitIsSeen


def test_a_job_whose_time_is_up_before_it_trains_is_refused(stand: Stand) -> None:
    point = submitted(stand, "ddp=cpu1", "slurm.hours=0.05", "slurm.signal=180")
    (finding,) = told(point, "TimeLimitIsSeen")
    assert finding.severity == "error"
    assert "slurm.hours=0.05 is 3 min, and slurm.signal=180 s before its end" in finding.message
    assert "slurm.hours=0.22" in finding.fix[0]


@pytest.mark.parametrize(("hours", "warned"), [("0.16", True), ("0.17", False), ("24", False)])
def test_ten_minutes_are_what_submitit_takes_for_the_time_limit(stand: Stand, hours: str, warned: bool) -> None:
    point = submitted(stand, "ddp=cpu1", f"slurm.hours={hours}")
    assert [finding.severity for finding in told(point, "TimeLimitIsSeen")] == ["warning"] * warned
    assert point.action == "start"


# RanksFitJob


@pytest.mark.parametrize(
    ("job", "said"), [(None, "we are in no Slurm job"), (JOB, "there is no srun here")], ids=["no job", "no srun"]
)
def test_srun_where_there_is_none_is_refused(stand: Stand, job: Allocation | None, said: str) -> None:
    stand.machine(job=job, slurm=())
    (finding,) = of(stand.pre("launch.ranks=srun", "ddp=cpu2"), "RanksFitJob")
    assert (finding.severity, finding.message) == ("error", f"launch.ranks=srun, and {said}")
    assert stand.follow(finding.fix[0]).subject.settings.launch.ranks == "lightning"


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (Allocation("7", 1, 1), ("ddp=cpu2",)),
        (Allocation("7", 1, 4), ("ddp=cpu2", "ddp.nodes=2")),
        (Allocation("7", 2, 3), ("ddp=cpu2", "ddp.nodes=2")),
    ],
)
def test_more_ranks_than_the_job_has_tasks_would_wait_for_ever(
    stand: Stand, job: Allocation, words: tuple[str, ...]
) -> None:
    stand.machine(job=job, slurm=("srun",))
    (finding,) = of(stand.pre("launch.ranks=srun", *words), "RanksFitJob")
    assert finding.severity == "error"
    assert "some ranks would wait for ever" in finding.message


def test_ranks_that_the_job_has_tasks_for_pass(stand: Stand) -> None:
    stand.machine(job=JOB, slurm=("srun",))
    pre = stand.pre("launch.ranks=srun", "ddp=cpu2")
    assert of(pre, "RanksFitJob") == []
    assert pre.subject.plan.argv[:4] == ("srun", "--overlap", "--nodes=1", "--ntasks-per-node=2")


def test_in_a_job_where_lightning_starts_the_ranks_it_says_so(stand: Stand) -> None:
    stand.machine(job=JOB)
    (finding,) = of(stand.pre("ddp=cpu2"), "RanksFitJob")
    assert (finding.severity, finding.message.partition(":")[0]) == ("info", "in Slurm job 7")
