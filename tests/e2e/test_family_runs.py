"""The public layout trained for real, by itself and with the bridge: identity, values, batches, logging."""

import csv
import json

import pytest
from desk import Desk
from family import Family
from tensors import same
from trainable import write

NO_REFUSAL = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}


@pytest.fixture(scope="module")
def family(desk: Desk) -> Family:
    return Family(desk, write(desk.folder / "it's a fork, 音=x"))


@pytest.fixture(scope="module")
def whole(family: Family) -> None:
    """16 steps, uninterrupted, under a seed."""
    family.trained("exp_id=whole", "max_steps=16", "seed=1")


@pytest.fixture(scope="module")
def stopped(family: Family) -> None:
    """The same, 8 steps and then 8 more."""
    family.trained("exp_id=stopped", "max_steps=8", "seed=1")
    family.trained("exp_id=stopped", "max_steps=16", "seed=1", "init=resume")


# Identity.


def test_by_itself_what_it_calls_resuming_starts_over_with_old_weights(family: Family) -> None:
    line = ("alone", "-p", "x", "-s", "warm")
    assert family.repository.by_itself(*line, "-it", "4").code == 0
    again = family.repository.by_itself(*line, "-it", "8", **NO_REFUSAL)
    assert "Resuming from" in again.out
    folder = family.repository.checkpoints("alone", "x")
    assert family.load(folder / "last.ckpt")["global_step"] == 4
    assert (folder / "last-v1.ckpt").exists(), "the second run wrote another file"


def test_by_itself_it_dies_on_the_class_that_its_own_checkpoint_holds(family: Family) -> None:
    assert family.repository.by_itself("pickled", "-p", "x", "-it", "2").code == 0
    again = family.repository.by_itself("pickled", "-p", "x", "-it", "4")
    assert again.code != 0
    assert "weights_only" in again.out


def test_a_resume_equals_an_uninterrupted_run(family: Family, whole: None, stopped: None) -> None:
    one, two = (family.load(family.repository.checkpoints(e) / "last.ckpt") for e in ("whole", "stopped"))
    assert one["global_step"] == two["global_step"] == 16
    for key in ("state_dict", "optimizer_states", "lr_schedulers"):
        assert same(one[key], two[key]), key


def test_a_resume_goes_on_in_the_same_file(family: Family, stopped: None) -> None:
    names = {path.name for path in family.repository.checkpoints("stopped").iterdir()}
    assert "last.ckpt" in names
    assert not [name for name in names if name.startswith("last-v")]


def test_a_seed_decides_the_weights(family: Family, whole: None) -> None:
    same_seed = family.load(family.trained("exp_id=seed1", "max_steps=16", "seed=1") / "last.ckpt")
    other = family.load(family.trained("exp_id=seed2", "max_steps=16", "seed=2") / "last.ckpt")
    first = family.load(family.repository.checkpoints("whole") / "last.ckpt")
    assert same(first["state_dict"], same_seed["state_dict"])
    assert not same(first["state_dict"], other["state_dict"])


def test_a_warm_start_takes_the_weights_and_starts_at_step_0(family: Family, whole: None) -> None:
    source = family.repository.checkpoints("whole") / "last.ckpt"
    words = ("max_steps=1", "optimizer.lr=1e-30", "seed=5", "val_interval=1")
    warm = family.load(family.trained("exp_id=warm", "init=warmstart", f"init.ckpt={source}", *words) / "last.ckpt")
    cold = family.load(family.trained("exp_id=cold", *words) / "last.ckpt")
    assert warm["global_step"] == 1
    assert same(warm["state_dict"], family.load(source)["state_dict"])
    assert not same(cold["state_dict"], warm["state_dict"])
    assert "matched 4 tensors" in family.log("warm")


def test_a_checkpoint_of_another_model_is_refused_before_any_training(family: Family, whole: None) -> None:
    wider = write(
        family.desk.folder / "wider", changes={"Linear(4, 8)": "Linear(4, 9)", "Linear(8, 2)": "Linear(9, 2)"}
    )
    source = family.repository.checkpoints("whole") / "last.ckpt"
    run = Family(family.desk, wider)("exp_id=other", "max_steps=4", "init=warmstart", f"init.ckpt={source}")
    assert run.code == 78
    assert "init.min_coverage is 0.5" in run.out
    assert "mismatched 3 tensors" in run.out
    assert not list(wider.checkpoints("other").glob("*.ckpt"))


def test_a_forced_scratch_run_leaves_the_old_one_behind(family: Family) -> None:
    family.trained("exp_id=forced", "max_steps=4")
    family.trained("exp_id=forced", "max_steps=4", AMT_FORCE_SCRATCH="1")
    folder = family.repository.checkpoints("forced")
    assert family.load(folder / "last.ckpt")["global_step"] == 4
    (aside,) = folder.parent.parent.glob("forced.before-*")
    assert family.load(aside / "checkpoints" / "last.ckpt")["global_step"] == 4


# Values of config.py.


def test_the_warm_up_that_config_has_is_the_one_that_was_asked_for(family: Family, whole: None) -> None:
    assert family.repository.by_itself("warmup", "-p", "x", "-it", "2").code == 0
    (own,) = family.load(family.repository.checkpoints("warmup", "x") / "last.ckpt")["lr_schedulers"]
    (asked,) = family.load(family.repository.checkpoints("whole") / "last.ckpt")["lr_schedulers"]
    assert (own["total_iters"], asked["total_iters"]) == (8, 2)


def test_the_loaders_see_the_batch_and_the_workers_that_were_asked_for(family: Family) -> None:
    alone = family.repository.by_itself("bsz", "-p", "x", "-it", "1", "-bsz", "1", "3")
    assert "loaders: 2 of 2 clips, 0 workers each" in alone.out, "the flag reaches a copy only"
    family.trained("exp_id=bsz", "max_steps=2", "val_interval=2", "batch.sub=1", "batch.local=3", "data.num_workers=1",
                   "extra.config.shared_cfg.DATAIO.prefetch_factor=2")  # fmt: skip
    assert "loaders: 3 of 1 clips, 1 workers each" in family.log("bsz")


# Logging.


def test_without_a_key_it_dies_by_itself_and_writes_csv_files_with_the_bridge(family: Family, stopped: None) -> None:
    run = family("exp_id=nokey", "max_steps=2", "repo.bridge=false", "optimizer.warmup_steps=null",
                 "checkpoint.save_top_k=null")  # fmt: skip
    assert run.code not in (0, 78)
    assert (family.repository.checkpoints("stopped").parent / "metrics.csv").is_file()


def test_metrics_of_a_resume_are_joined_to_those_before(family: Family, stopped: None) -> None:
    with (family.repository.checkpoints("stopped").parent / "metrics.csv").open(newline="") as handle:
        rows = [row for row in csv.DictReader(handle) if row["validation/macro_onset_f"]]
    steps = [int(row["step"]) for row in rows]
    assert steps == sorted(steps)
    assert {3, 7, 11, 15} <= set(steps)


def test_wandb_offline_by_the_shells_variable(family: Family) -> None:
    run = family("exp_id=offline", "max_steps=2", "val_interval=2", "logger=wandb", WANDB_MODE="offline")
    assert run.code == 0, run.out + run.err
    assert "W&B offline" in run.out or "offline" in family.log("offline")
    assert list((family.repository.root / "amt" / "logs").rglob("*.wandb"))


# Debugging.


def test_a_gradient_that_is_not_finite_is_named_with_its_step(family: Family) -> None:
    nan = "extra.env.TOY_NAN_AT=3"
    family.trained("exp_id=silent", "max_steps=5", "val_interval=5", nan)  # by itself it goes on
    run = family("exp_id=loud", "max_steps=5", "val_interval=5", nan, "debug.grad_finite=true")
    assert run.code not in (0, 65)
    assert "the gradient of head.bias is not finite at step 3 on rank 0 (1 of 4 gradients)" in run.out


def test_anomaly_detection_stops_at_the_operation(family: Family) -> None:
    run = family("exp_id=anomaly", "max_steps=5", "extra.env.TOY_NAN_AT=3", AMT_DETECT_ANOMALY="1")
    assert run.code not in (0, 65)
    assert "returned nan values" in run.out


# Ranks.


def test_every_rank_goes_through_the_bridge_with_the_same_plan(family: Family) -> None:
    family.trained("exp_id=ranks", "max_steps=4", "ddp.devices=2", "ddp.strategy=ddp_find_unused_parameters_true")
    record = family.desk.launches("ranks")[-1]
    reports = [
        [json.loads(line) for line in (record / f"bridge-rank{rank}.jsonl").read_text().splitlines()] for rank in (0, 1)
    ]
    plans = [next(event["hash"] for event in events if event["event"] == "plan") for events in reports]
    assert plans[0] == plans[1]
    for events in reports:
        changed = {event["what"]: event["detail"] for event in events if event["event"] == "patched"}
        assert changed["shared_cfg.LR_SCHEDULE.warmup_steps"] == "2 (was 8)"
    saved = family.load(family.repository.checkpoints("ranks") / "last.ckpt")
    assert saved["global_step"] == 4
    assert saved["lr_schedulers"][0]["total_iters"] == 2
