"""Time limits on a real Slurm, in real time; ranks under srun; allocations that somebody is in already."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from cluster import Cluster
from counting import until
from desk import TINY, Desk, Run, environment
from trainable import Trainable, write

STEPS = 220
PACE = "0.45"
"""Seconds a step: 99 s in all. A job of 2 min is asked to end after 30 to 90 s: Slurm looks once a minute."""
LIMITED = ("hydra/launcher=slurm", "slurm.hours=0.03", "slurm.signal=30", f"max_steps={STEPS}")
PACED = """\
        import time

        time.sleep(float(os.environ.get("PACE", 0)))
        if self.trainer.global_rank == 0:
            with open(os.environ["STEPS"], "a") as out:
                out.write(str(self.global_step + 1) + chr(10))
        return loss
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("limits, 二つ=2"))


@pytest.fixture(scope="module")
def family(desk: Desk) -> Trainable:
    return write(desk.folder / "code", changes={"        return loss\n": PACED})


def status(desk: Desk, cluster: Cluster) -> dict[str, dict[str, object]]:
    """By name without the signature."""
    told = json.loads(desk("status", "--json", **cluster.environ).out)
    return {str(point["exp_id"]).split("_")[0]: point for point in told}


def submit(desk: Desk, cluster: Cluster, family: Trainable, *words: str, **variables: str) -> None:
    own = ("repo=yourmt3", f"repo.path={family.root}", "precision=fp32", "optimizer.warmup_steps=2")
    run = desk("-m", *own, *words, OMP_NUM_THREADS="1", **cluster.environ, **variables)
    assert run.code == 0, run.out + run.err


def launches(desk: Desk, exp_id: str) -> list[dict[str, object]]:
    files = (desk.folder / "outputs" / "melody").glob(f"{exp_id}_*/launches/[!.]*/record.json")
    return [json.loads(file.read_text()) for file in sorted(files)]


def trained(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()]


@pytest.fixture(scope="module")
def limited(desk: Desk, family: Trainable, cluster: Cluster) -> dict[str, dict[str, object]]:
    """Runs that take longer than their jobs: on one task and on two, each to its end."""
    for exp_id, ddp in (("one", ("ddp=cpu1",)), ("two", ("ddp=cpu2", "ddp.strategy=ddp_find_unused_parameters_true"))):
        words = (f"exp_id={exp_id}", *ddp, *LIMITED, "val_interval=100", "logger=wandb", "logger.mode=offline")
        submit(desk, cluster, family, *words, PACE=PACE, STEPS=str(desk.folder / f"{exp_id}.txt"))
    until(lambda: not cluster.jobs(), 400)
    return status(desk, cluster)


@pytest.mark.parametrize("exp_id", ["one", "two"])
def test_at_the_time_limit_it_saves_is_requeued_and_every_step_is_trained_once(
    limited: dict[str, dict[str, object]], desk: Desk, exp_id: str
) -> None:
    point = limited[exp_id]
    assert (point["state"], point["step"]) == ("done", STEPS)
    assert trained(desk.folder / f"{exp_id}.txt") == list(range(1, STEPS + 1))


@pytest.mark.parametrize("exp_id", ["one", "two"])
def test_c09_it_comes_back_as_a_resume_in_the_same_folder_with_the_same_wandb_run(
    limited: dict[str, dict[str, object]], desk: Desk, family: Trainable, exp_id: str
) -> None:
    records = launches(desk, exp_id)
    assert [record["identity"]["actual"] for record in records] == ["scratch", "resume"]  # type: ignore[index]
    assert [record["outcome"]["code"] for record in records] == [143, 0], "saved and ended by itself"  # type: ignore[index]
    assert len({record["environment"]["SLURM_JOB_ID"] for record in records}) == 1, "one job, requeued"  # type: ignore[index]
    name = str(limited[exp_id]["exp_id"])
    assert len(list(family.checkpoints(name).glob("last*.ckpt"))) == 1
    runs = {path.name.rpartition("-")[2] for path in family.root.rglob("offline-run-*") if name in path.name}
    assert runs == {name}
    attempts = (desk.folder / "outputs" / "melody" / name / "attempts.jsonl").read_text().splitlines()
    assert sum("requeued" in line for line in attempts) == 1


def test_c06_srun_starts_the_ranks_and_nobody_else(limited: dict[str, dict[str, object]], desk: Desk) -> None:
    one, two = launches(desk, "one")[0], launches(desk, "two")[0]
    assert "srun" not in one["plan"]["argv"]  # type: ignore[index]
    assert two["plan"]["argv"][:4] == ["srun", "--overlap", "--nodes=1", "--ntasks-per-node=2"]  # type: ignore[index]


def test_ranks_under_srun_without_the_bridge_save_and_go_on_too(desk: Desk, cluster: Cluster) -> None:
    """The bundled repository, which saves by itself. The signal is sent by hand, as Slurm does."""
    words = ("repo=reference", "exp_id=bundled", *TINY, "ddp=cpu2", "slurm.hours=1", "max_steps=90")
    run = desk("-m", "hydra/launcher=slurm", *words, **cluster.environ)
    assert run.code == 0, run.out + run.err
    assert "srun starts 2 ranks (1 nodes x 2 tasks per node = 1 nodes x 2 devices)" in run.err
    assert cluster.jobs(), "the command returns while the job runs"
    until(lambda: (status(desk, cluster)["bundled"]["step"] or 0) >= 8, 120)  # type: ignore[operator]
    cluster("scancel", "--signal=USR2", "--batch", str(status(desk, cluster)["bundled"]["job"]))
    until(lambda: not cluster.jobs(), 240)
    assert status(desk, cluster)["bundled"]["state"] == "done"
    first, second = launches(desk, "bundled")
    assert first["outcome"]["code"] == 143, "ended by itself, and not killed"  # type: ignore[index]
    stopped = first["outcome"]["step"]  # type: ignore[index]
    assert 8 <= stopped < 90
    assert second["identity"]["start_step"] == stopped  # type: ignore[index]
    rows = csv.DictReader(next((desk.folder / "outputs" / "melody").glob("bundled_*/metrics.csv")).open())
    steps = [int(row["step"]) for row in rows if row.get("loss")]
    assert steps == sorted(set(steps)), "no row twice"


def test_a_job_is_checked_again_by_the_machine_that_it_got(desk: Desk, cluster: Cluster) -> None:
    """The GPUs of this Slurm are devices that no driver knows: only the job can find that out."""
    words = ("repo=reference", "exp_id=nogpu", *TINY, "ddp=gpu1", "slurm.hours=1", "slurm.wait=true")
    run = desk("-m", "hydra/launcher=slurm", *words, **cluster.environ)
    assert run.code == 78, run.out + run.err
    assert "1 GPUs per node" in run.err
    assert "not started, refused: ddp asks for a GPU, and none is visible" in run.out
    point = status(desk, cluster)["nogpu"]
    assert point["state"] == "failed"
    assert "none is visible" in str(point["said"])
    assert launches(desk, "nogpu") == []


def test_c07_inside_an_allocation_lightning_starts_the_ranks(desk: Desk, cluster: Cluster) -> None:
    """salloc describes tasks that nobody starts: what it says is taken out of train.py's environment."""
    words = ("repo=reference", *TINY, "ddp=cpu2", "exp_id=inside", "max_steps=4")
    run = inside(desk, cluster, "--ntasks-per-node=2", *words)
    assert run.code == 0, run.out + run.err
    assert "Lightning starts the ranks itself, so what Slurm says of tasks (SLURM_*) is taken out" in run.out
    assert "trained steps 0 to 4" in run.out


def test_ranks_of_srun_end_with_whoever_started_them(desk: Desk, cluster: Cluster) -> None:
    """srun that is killed leaves its ranks running: they would train on without a lock."""
    words = ("repo=reference", *TINY, "ddp=cpu2", "launch.ranks=srun", "exp_id=orphans", "max_steps=9999")
    assert "Granted" in cluster("salloc", "--no-shell", "--ntasks-per-node=2")
    (job,) = cluster.jobs()
    inside = {**cluster.environ, "SLURM_JOB_ID": job, "SLURM_NTASKS_PER_NODE": "2"}
    launcher = subprocess.Popen(
        [sys.executable, "-m", "amt_hydra", *words],
        cwd=desk.folder,
        env=environment(desk.folder, **inside),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    last = desk.checkpoints("orphans") / "last.ckpt"
    until(last.exists, 120)
    launcher.kill()
    launcher.wait()
    until(lambda: not ranks("orphans"))
    cluster("scancel", job)


def ranks(exp_id: str) -> list[int]:
    found = psutil.process_iter(["cmdline", "status"])
    return [one.pid for one in found if {"train.py", exp_id} <= {*(one.info["cmdline"] or ())}]


@pytest.mark.parametrize(
    ("asked", "words", "said"),
    [
        ("--ntasks-per-node=1", ("ddp=cpu2",), "1 nodes x 2 devices are 2 ranks, and Slurm job"),
        ("--ntasks=1", ("ddp=cpu2", "ddp.nodes=2"), "2 nodes x 2 devices are 4 ranks, and Slurm job"),
    ],
)
def test_c05_numbers_that_disagree_are_refused(
    desk: Desk, cluster: Cluster, asked: str, words: tuple[str, ...], said: str
) -> None:
    run = inside(desk, cluster, asked, "repo=reference", *TINY, "exp_id=odd", "launch.ranks=srun", *words)
    assert run.code == 78
    assert said in run.err
    assert not (desk.folder / "outputs" / "melody" / "odd").exists()


def inside(desk: Desk, cluster: Cluster, asked: str, *words: str) -> Run:
    """`python -m amt_hydra WORDS` typed in an allocation."""
    return desk(*words, within=("salloc", "--quiet", asked), **cluster.environ)
