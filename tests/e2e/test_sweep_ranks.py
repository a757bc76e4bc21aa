"""Runs of two ranks under a sweep, two such runs at once: on CPUs, with gloo."""

import json
from pathlib import Path

import pytest
from desk import Desk
from trainable import Trainable, write

RANKS = ("hydra/launcher=gpu_pool", "hydra.launcher.gpus=[0,1,2,3]", "max_steps=4", "val_interval=2")
"""The GPUs are names: what is shared out here is how many run at once."""


def launches(desk: Desk) -> list[Path]:
    return sorted((desk.folder / "outputs" / "melody").glob("*/launches/[!.]*/record.json"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """The bundled repository, which needs nothing from the bridge."""
    desk = Desk(tmp_path_factory.mktemp("plain ranks, 二つ"))
    words = ("ddp=cpu2", "optimizer.warmup_steps=1", "data.num_workers=0", "seed=1,2")
    run = desk("-m", "repo=reference", *RANKS, *words, TMPDIR=str(desk.folder))
    assert run.code == 0, run.out + run.err
    return desk


def test_c01_c02_c03_two_runs_of_two_ranks_at_once_have_a_folder_and_a_record_each(plain: Desk) -> None:
    """C01: the ranks run train.py and no sweep; C02: no folder per rank; C03: each pair met at a port of its own."""
    records = [json.loads(file.read_text()) for file in launches(plain)]
    assert [record["outcome"]["step"] for record in records] == [4, 4]
    assert len({file.parents[2] for file in launches(plain)}) == 2
    folders = sorted(entry.name for entry in (plain.folder / "outputs" / "melody").iterdir() if entry.is_dir())
    assert folders == sorted(file.parents[2].name for file in launches(plain))
    assert not list(plain.folder.glob("multirun*"))
    first, second = (record["started"] for record in records)
    assert min(records[0]["outcome"]["ended"], records[1]["outcome"]["ended"]) > max(first, second), (
        "one after the other"
    )


def test_ranks_under_the_bridge_report_one_plan_each(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "bridged ranks")
    desk.folder.mkdir()
    repository: Trainable = write(desk.folder / "code")
    words = ("ddp=cpu2", "ddp.strategy=ddp_find_unused_parameters_true", "precision=fp32", "optimizer.warmup_steps=2")
    run = desk(
        "-m", "repo=yourmt3", f"repo.path={repository.root}", *RANKS, *words, "optimizer.lr=1e-3,1e-4",
        OMP_NUM_THREADS="1", TMPDIR=str(desk.folder),
    )  # fmt: skip
    assert run.code == 0, run.out + run.err
    hashes = []
    for record in launches(desk):
        ranks = [json.loads((record.parent / f"bridge-rank{rank}.jsonl").read_text().split("\n")[0]) for rank in (0, 1)]
        assert len({rank["hash"] for rank in ranks}) == 1
        hashes.append(ranks[0]["hash"])
        exp_id = record.parents[2].name
        assert repository.load(repository.checkpoints(exp_id) / "last.ckpt")["global_step"] == 4
    assert len(hashes) == len(set(hashes)) == 2
