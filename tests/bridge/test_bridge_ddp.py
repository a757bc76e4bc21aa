"""Two ranks that Lightning itself starts, on CPUs: the same plan in both, and no rank that waits for the other."""

from pathlib import Path

import pytest
from bridge_runs import Ended, Trained
from tensors import same
from trainable import write

RANKS = ("-g", "2", "-st", "ddp_find_unused_parameters_true", "-vit", "2")
WORKERS = {"shared_cfg.DATAIO.num_workers": 2, "shared_cfg.DATAIO.prefetch_factor": 2}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return Trained(write(tmp_path_factory.mktemp("ranks") / "it's two, 二つ"))


@pytest.fixture(scope="module")
def first(trained: Trained) -> Ended:
    return trained.well("a", "-it", "4", *RANKS, config=WORKERS, last={}, seed={"seed": 1})


@pytest.fixture(scope="module")
def resumed(trained: Trained, first: Ended) -> Ended:
    resume = {"ckpt": str(trained.folder("a") / "last.ckpt"), "pickled": True}
    return trained.well("a", "-it", "6", *RANKS, config=WORKERS, last={}, resume=resume)


def test_both_ranks_report_the_plans_hash(first: Ended) -> None:
    for rank in (0, 1):
        assert first.events(rank)[0] == {"event": "plan", "rank": rank, "hash": first.hash}
        assert f"rank {rank}: plan {first.hash}" in first.out
        assert first.events(rank)[-1]["event"] == "end"


def test_values_reach_both_ranks(first: Ended) -> None:
    for rank in (0, 1):
        assert first.patched(rank)["shared_cfg.DATAIO.num_workers"] == "2 (was 0)"
    assert first.out.count("loaders: 2 of 2 clips, 2 workers each") == 2


def test_a_resume_goes_on_in_both(trained: Trained, resumed: Ended) -> None:
    assert all("resume" in resumed.patched(rank) for rank in (0, 1))
    saved = trained.saved("a")
    assert saved["global_step"] == saved["lr_schedulers"][0]["last_epoch"] == 6
    assert not list(trained.folder("a").glob("last-v*"))


def test_a_warm_start_loads_in_both(trained: Trained, resumed: Ended) -> None:
    source = trained.folder("a") / "last.ckpt"
    warmstart = {"ckpt": str(source), "min_coverage": 1.0, "pickled": True}
    run = trained.well("b", "-it", "2", "-lr", "1e-30", *RANKS, last={}, warmstart=warmstart)
    assert all("warmstart" in run.patched(rank) for rank in (0, 1))
    assert same(trained.saved("b")["state_dict"], trained.load(source)["state_dict"])


def test_a_refusal_ends_both(trained: Trained, resumed: Ended) -> None:
    source = trained.folder("a") / "last.ckpt"
    warmstart = {"ckpt": str(source), "min_coverage": 1.1, "pickled": True}
    run = trained("c", "-it", "2", *RANKS, last={}, warmstart=warmstart)
    assert run.code == 78
    assert [run.events(rank)[-1]["event"] for rank in (0, 1)] == ["refused", "refused"]
    assert not list(trained.folder("c").glob("*.ckpt"))


def test_a_bad_gradient_ends_both(trained: Trained) -> None:
    run = trained("d", "-it", "4", *RANKS, grad_finite={}, TOY_NAN_AT="1", AMT_DEBUG_GRAD_FINITE="1")
    assert run.code == 1
    for rank in (0, 1):
        assert f"the gradient of head.bias is not finite at step 1 on rank {rank} (1 of 4 gradients)" in run.err


def test_epoch_metrics_that_one_rank_reduces_first_meet_no_other_collective(tmp_path: Path) -> None:
    """Rank 0's progress bar reduces them at the epoch's end; the others do later."""
    changes = {
        "enable_progress_bar=False": "enable_progress_bar=True",
        "        return loss\n": '        self.log("train_loss", loss, on_epoch=True, prog_bar=True, sync_dist=True)\n'
        "        return loss\n",
    }
    trained = Trained(write(tmp_path / "logs", changes=changes))
    trained.well("a", "-it", "4", *RANKS, last={})
    assert trained.saved("a")["global_step"] == 4


def test_what_rank_0_alone_lacks_ends_both(trained: Trained, tmp_path: Path) -> None:
    """A file may well be loaded on rank 0 only, so that nothing is missing elsewhere: the other would wait for ever."""
    run = trained("e", "-it", "2", *RANKS, unpickle={"ckpt": str(tmp_path / "never loaded.ckpt")})
    assert run.code == 78
    first, second = (run.events(rank)[-1]["message"] for rank in (0, 1))
    assert first.startswith("the training begins, and this was never applied: unpickle")
    assert second.startswith("the training begins, and another rank lacks a part of the plan")
