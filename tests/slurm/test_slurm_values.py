"""What is pure about Slurm: what a job asks for, which job a point has, and what its jobs told."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from stand import Stand

from amt_hydra.errors import Never
from amt_hydra.slurm import attempts
from amt_hydra.slurm.allocation import Allocation
from amt_hydra.slurm.place import Submitted
from amt_hydra.slurm.queue import Queued, ends, partitions, queue
from amt_hydra.slurm.resources import Resources
from amt_hydra.slurm.submit import Cluster
from amt_hydra.sweep.points import plan_point

pytest_plugins = ["desks"]


def asked(stand: Stand, *words: str) -> Resources:
    own = (f"repo.path={stand.repository}", "batch.sub=1", "batch.local=1", *words)
    asks = plan_point(own, dict(os.environ), stand.folder, None, to_submit=True).asks
    assert asks is not None
    return asks


# Resources


@pytest.mark.parametrize(
    ("group", "nodes", "tasks", "gpus"),
    [("cpu1", 1, 1, 0), ("cpu2", 1, 2, 0), ("gpu1", 1, 1, 1), ("gpus4", 1, 4, 4), ("nodes2x8", 2, 8, 8)],
)
def test_a_task_for_each_rank_and_a_gpu_for_each_task(
    stand: Stand, group: str, nodes: int, tasks: int, gpus: int
) -> None:
    found = asked(stand, f"ddp={group}")
    assert (found.nodes, found.tasks_per_node, found.gpus_per_node) == (nodes, tasks, gpus)


@pytest.mark.parametrize(("workers", "cpus"), [("7", 8), ("0", 1), ("auto", 5)])
def test_a_cpu_for_the_rank_and_for_each_of_its_loader_processes(stand: Stand, workers: str, cpus: int) -> None:
    assert asked(stand, "ddp=gpus2", f"data.num_workers={workers}").cpus_per_task == cpus
    assert asked(stand, "ddp=gpus2", f"data.num_workers={workers}", "slurm.cpus_per_task=3").cpus_per_task == 3


def test_the_gpu_hours_of_a_job_are_those_of_all_its_gpus(stand: Stand) -> None:
    assert asked(stand, "ddp=nodes2x4", "slurm.hours=1.5").gpu_hours == 12
    assert asked(stand, "ddp=cpu2", "slurm.hours=1.5").gpu_hours == 0


def test_a_time_limit_is_whole_minutes_and_never_less_than_asked_for(stand: Stand) -> None:
    assert asked(stand, "ddp=cpu1", "slurm.hours=0.51").minutes == 31


@pytest.mark.parametrize("name", ["partition", "account", "qos", "constraint"])
def test_a_name_that_is_empty_is_not_asked_for(stand: Stand, name: str) -> None:
    """A shell's variable that was not set makes one: slurm.partition=$PARTITION."""
    assert getattr(asked(stand, "ddp=cpu1", f"slurm.{name}="), name) is None
    assert getattr(asked(stand, "ddp=cpu1", f"slurm.{name}=a"), name) == "a"


def test_who_starts_the_processes_is_one_party(stand: Stand) -> None:
    assert asked(stand, "ddp=gpu1").owner == "one process, started by the job"
    assert asked(stand, "ddp=nodes2x4").owner == (
        "srun starts 8 ranks (2 nodes x 4 tasks per node = 2 nodes x 4 devices)"
    )


# Submitted

JOB = Queued("12_3", "RUNNING", "amt-a", "None", "n1")


@pytest.mark.parametrize(
    ("place", "found"),
    [
        (Submitted("amt-a", 3, "12_3"), True),
        (Submitted("amt-a", 3, None), True),
        (Submitted("amt-a", 13, None), False),
        (Submitted("amt-b", 3, None), False),
        (Submitted("amt-a", None, None), True),
        (Submitted("amt-a", 3, "11_3"), False),
    ],
    ids=["by its id", "by its name", "another task", "another submission", "no array", "another id"],
)
def test_a_point_finds_its_job(place: Submitted, found: bool) -> None:
    assert place.found({"9": replace(JOB, id="9", name="else"), "12_3": JOB}) == (JOB if found else None)


# attempts


def test_starts_in_a_row_from_the_same_step_are_counted_for_one_job_alone(tmp_path: Path) -> None:
    records = tmp_path / "base" / "launches"
    for job, step in (("1", 0), ("2", 40), ("2", 40), ("1", 40), ("2", 40)):
        attempts.note(records, job=job, **{"from": step})
        attempts.note(records, job=job, code=1, verdict="died")
    told = attempts.read(records)
    assert [attempts.in_vain(told, "2", step) for step in (40, 50)] == [3, 0]
    assert [attempts.in_vain(told, "1", step) for step in (40, 0)] == [1, 0]


def test_what_cannot_be_noted_ends_no_training(tmp_path: Path) -> None:
    (tmp_path / "base").write_text("a file where the folder would be")
    attempts.note(tmp_path / "base" / "launches", job="1")
    assert attempts.read(tmp_path / "base" / "launches") == []


# Allocation


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        ({}, None),
        ({"SLURM_JOB_ID": "7"}, Allocation("7", 1, None)),
        ({"SLURM_JOB_ID": "7", "SLURM_NNODES": "2", "SLURM_NTASKS": "8"}, Allocation("7", 2, 8)),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_NTASKS_PER_NODE": "4"}, Allocation("7", 2, 8)),
        ({"SLURM_JOB_ID": "7", "SLURM_NTASKS_PER_NODE": "4(x2)"}, Allocation("7", 1, None)),
    ],
)
def test_the_job_that_a_process_is_in(environ: dict[str, str], found: Allocation | None) -> None:
    assert Allocation.of_environment(environ) == found


# Slurm's words, from scripts that print what real ones printed (22.05.8): no accounting runs here.


class Recorded:
    """A PATH on which Slurm's commands print what they are told to; those that are told nothing fail."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {"PATH": str(folder)}

    def says(self, name: str, text: str) -> None:
        (self.folder / f"{name}.out").write_text(text)
        program = self.folder / name
        program.write_text(f'#!/bin/sh\nexec /bin/cat "{program}.out"\n')
        program.chmod(0o755)


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


SACCT = """\
1|TIMEOUT
2|COMPLETED
3|FAILED
4|CANCELLED by 0
5|REQUEUED
6_0|COMPLETED
6_1|OUT_OF_MEMORY
9|NODE_FAIL
10|CANCELLED by 0
11_[0-3]|CANCELLED by 0
"""
SCONTROL = """\
JobId=3 JobName=a JobState=FAILED Reason=NonZeroExitCode Restarts=0 ExitCode=3:0
JobId=5 JobName=a JobState=PENDING Reason=BeginTime Restarts=1 ExitCode=0:0
JobId=6 ArrayJobId=6 ArrayTaskId=1 JobName=a JobState=FAILED Reason=NonZeroExitCode ExitCode=5:0
JobId=8 ArrayJobId=6 ArrayTaskId=0 JobName=a JobState=COMPLETED Reason=None ExitCode=0:0
JobId=10 ArrayJobId=10 ArrayTaskId=0-1 JobName=a JobState=CANCELLED Reason=JobHeldUser ExitCode=0:0
"""


def test_how_jobs_ended_by_recorded_accounting(recorded: Recorded) -> None:
    recorded.says("sacct", SACCT)
    jobs = ["1", "2", "3", "4", "5", "6_0", "6_1", "9", "10_1", "11_2", "77"]
    assert ends(recorded.environ, jobs) == {
        "1": "its time limit",
        "2": "completed",
        "3": "failed",
        "4": "cancelled",
        "6_0": "completed",
        "6_1": "out of memory",
        "9": "its machine failed",
        "10_1": "cancelled",
        "11_2": "cancelled",
    }


@pytest.mark.parametrize("accounting", [None, ""], ids=["sacct fails", "sacct knows nothing"])
def test_how_jobs_ended_by_a_recorded_controller(recorded: Recorded, accounting: str | None) -> None:
    if accounting is not None:
        recorded.says("sacct", accounting)
    recorded.says("scontrol", SCONTROL)
    found = ends(recorded.environ, ["3", "5", "6_0", "6_1", "10_0", "77"])
    assert found == {"3": "failed", "6_0": "completed", "6_1": "failed", "10_0": "cancelled"}


def test_where_no_slurm_answers_nothing_is_known(recorded: Recorded) -> None:
    assert ends(recorded.environ, ["1"]) == {}
    assert queue(recorded.environ) is None
    assert partitions(recorded.environ) is None


def test_the_limits_of_recorded_partitions(recorded: Recorded) -> None:
    line = "PartitionName={} Default={} DefaultTime=NONE MaxTime={} State=UP\n"
    rows = [("main", "YES", "1-02:30:00"), ("short", "NO", "01:00:00"), ("long", "NO", "UNLIMITED")]
    recorded.says("scontrol", "".join(line.format(*row) for row in rows))
    assert partitions(recorded.environ) == {"main": 1590, "": 1590, "short": 60, "long": None}


def test_more_points_than_an_array_may_have_are_several(recorded: Recorded, stand: Stand) -> None:
    recorded.says("scontrol", "MaxArraySize            = 2\nPartitionName=a Default=YES MaxTime=01:10:00\n")
    there = Cluster(recorded.environ)
    words = [(f"repo.path={stand.repository}", "ddp=cpu1", f"seed={seed}") for seed in range(5)]
    points = [plan_point(one, dict(os.environ), stand.folder, None, to_submit=True) for one in words]
    numbered = there.numbered(points, "mark")
    places = [numbered[point.exp_id] for point in points]
    assert [place.task for place in places] == [0, 1, 0, 1, None]
    assert len({place.name for place in places}) == 3


def test_the_limit_that_is_offered_is_taken(recorded: Recorded, stand: Stand) -> None:
    recorded.says("scontrol", "PartitionName=a Default=YES MaxTime=01:10:00\nPartitionName=b MaxTime=00:30:00\n")
    there, own = Cluster(recorded.environ), (f"repo.path={stand.repository}", "ddp=cpu1")

    def never(*words: str) -> Never | None:
        return there.never(plan_point((*own, *words), dict(os.environ), stand.folder, None, to_submit=True))

    told = never("slurm.hours=2")
    assert told is not None
    assert told.new == ("slurm.hours=1.1666",)
    assert never(*told.new) is None
    assert never("slurm.hours=1", "slurm.partition=a,b") is None, "Slurm takes the one that has room"
    told = never("slurm.hours=1", "slurm.partition=b")
    assert told is not None
    assert told.new == ("slurm.hours=0.5",)


def test_a_recorded_queue(recorded: Recorded) -> None:
    recorded.says("squeue", "12_3|RUNNING|amt-a|None|n1\n13|PENDING|amt-b|Resources|\nslurm_load_jobs: a warning\n")
    found = queue(recorded.environ)
    assert found is not None
    assert [str(job) for job in found.values()] == [
        "Slurm job 12_3: running on n1",
        "Slurm job 13: pending (Resources)",
    ]
