"""Each identity by real training; every refusal with the disk untouched."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from desk import TINY, Desk
from tensors import same

Tree = Callable[[Path], dict[str, tuple[int, int, bytes]]]


def load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = torch.load(path, weights_only=True)
    return loaded


@pytest.fixture(scope="module")
def first(desk: Desk) -> Path:
    """A scratch run of 8 steps under a constant learning rate, uninterrupted."""
    run = desk("exp_id=first", "max_steps=8", "optimizer.scheduler=constant", *TINY)
    assert run.code == 0, run.err + run.out
    return desk.checkpoints("first")


def test_a_scratch_run_leaves_checkpoints_metrics_and_a_complete_record(desk: Desk, first: Path) -> None:
    assert load(first / "last.ckpt")["global_step"] == 8
    assert not (first / "last.ckpt").is_symlink()
    assert (first.parent / "metrics.csv").is_file()
    (launch,) = desk.launches("first")
    record = json.loads((launch / "record.json").read_text())
    assert record["identity"]["actual"] == "scratch"
    assert record["outcome"]["code"] == 0
    assert record["outcome"]["step"] == 8
    assert record["settings"]["max_steps"] == {
        "value": 8,
        "repository": 900,
        "by": "override",
        "where": "command line",
        "reaches": "--max-steps",
    }
    assert "max_steps: 8" in (launch / "config.yaml").read_text()
    assert "identity: scratch" in (launch / "output.log").read_text()


def test_c27_a_resume_continues_exactly_where_an_uninterrupted_run_is(desk: Desk, first: Path) -> None:
    words = ("exp_id=halves", "optimizer.scheduler=constant", *TINY)
    assert desk(*words, "max_steps=4").code == 0
    assert load(desk.checkpoints("halves") / "last.ckpt")["global_step"] == 4
    run = desk(*words, "max_steps=8", "init=resume")
    assert run.code == 0, run.err + run.out
    resumed, whole = load(desk.checkpoints("halves") / "last.ckpt"), load(first / "last.ckpt")
    assert resumed["global_step"] == whole["global_step"] == 8
    for part in ("optimizer_states", "lr_schedulers", "state_dict"):
        assert same(resumed[part], whole[part]), part
    assert len(desk.launches("halves")) == 2


def test_a_warm_start_has_the_weights_and_starts_at_step_0(desk: Desk, first: Path) -> None:
    source = first / "last.ckpt"
    # A learning rate too small to move a weight leaves the weights that it started with in its checkpoint.
    run = desk("exp_id=warm", "init=warmstart", f"init.ckpt={source}", "max_steps=4", "optimizer.lr=1e-30", *TINY)
    assert run.code == 0, run.err + run.out
    warm, source_state = load(desk.checkpoints("warm") / "last.ckpt"), load(source)
    statistics = ("running_mean", "running_var", "num_batches_tracked")  # batch-norm moves these at any learning rate
    learnt = [name for name in source_state["state_dict"] if not name.endswith(statistics)]
    assert len(learnt) > 10
    assert all(same(warm["state_dict"][name], source_state["state_dict"][name]) for name in learnt)
    assert warm["global_step"] == 4
    steps = {int(state["step"]) for state in warm["optimizer_states"][0]["state"].values()}
    assert steps == {4}


def test_the_sentence_that_everything_serves_works_after_the_first_run(desk: Desk, first: Path) -> None:
    run = desk("init=warmstart", "precision=bf16", "max_steps=4", *TINY)
    assert run.code == 0, run.err + run.out
    (launch,) = desk.launches("base")
    record = json.loads((launch / "record.json").read_text())
    assert record["identity"]["actual"] == "warmstart"
    assert Path(record["identity"]["checkpoint"]).parent == first
    assert record["settings"]["precision.name"]["value"] == "bf16-mixed"


def test_an_experiment_in_the_way_is_moved_aside_and_nothing_of_it_is_lost(desk: Desk, first: Path, tree: Tree) -> None:
    shutil.copytree(first.parent, first.parent.with_name("again"))
    before = tree(first.parent.with_name("again"))
    run = desk("exp_id=again", "max_steps=4", "init.overwrite=true", *TINY)
    assert run.code == 0, run.err + run.out
    (moved,) = first.parent.parent.glob("again.before-*")
    assert {name: content for name, (_, _, content) in tree(moved).items()} == {
        name: content for name, (_, _, content) in before.items()
    }
    assert load(desk.checkpoints("again") / "last.ckpt")["global_step"] == 4


def test_forced_scratch_moves_the_old_folder_aside_and_says_so(desk: Desk, first: Path) -> None:
    shutil.copytree(first.parent, first.parent.with_name("forced"))
    run = desk("exp_id=forced", "max_steps=4", *TINY, AMT_FORCE_SCRATCH="1")
    assert run.code == 0, run.err + run.out
    assert "AMT_FORCE_SCRATCH is on" in run.out
    assert list(first.parent.parent.glob("forced.before-*"))
    assert load(desk.checkpoints("forced") / "last.ckpt")["global_step"] == 4


@pytest.mark.parametrize(
    ("words", "variables", "facts"),
    [
        pytest.param(["exp_id=first"], {}, ["init=scratch", "last.ckpt", "would be a resume"], id="scratch-last"),
        pytest.param(
            ["exp_id=nope", "init=resume"], {}, ["no last.ckpt", "would be a scratch run"], id="resume-no-last"
        ),
        pytest.param(
            ["exp_id=first", "init=resume", "max_steps=8"],
            {},
            ["global_step 8", "max_steps is 8"],
            id="c21-no-step-left",
        ),
        pytest.param(
            ["exp_id=first", "init=resume", "max_steps=99", "init.ckpt=x.ckpt"],
            {},
            ["x.ckpt", "has no place in it"],
            id="resume-with-ckpt",
        ),
        pytest.param(
            ["exp_id=first", "init=resume", "max_steps=99"],
            {"AMT_FORCE_SCRATCH": "1"},
            ["AMT_FORCE_SCRATCH is on", "would be a scratch run"],
            id="resume-forced",
        ),
        pytest.param(
            ["exp_id=new", "init=warmstart", "init.ckpt=outputs/melody/first/checkpoints/last.ckpt"],
            {"AMT_FORCE_SCRATCH": "1"},
            ["AMT_FORCE_SCRATCH is on", "contradict"],
            id="warmstart-forced",
        ),
        pytest.param(
            ["exp_id=first", "init=warmstart", "init.ckpt=outputs/melody/first/checkpoints/last.ckpt"],
            {},
            ["precedence would decide"],
            id="warmstart-last",
        ),
        pytest.param(
            ["exp_id=new", "init=warmstart", "init.ckpt=gone.ckpt"],
            {},
            ["gone.ckpt", "missing"],
            id="warmstart-missing",
        ),
        pytest.param(
            ["exp_id=new", "init.ckpt=outputs/melody/first/checkpoints/last.ckpt"],
            {},
            ["init=scratch", "would make it a warm-start"],
            id="scratch-with-ckpt",
        ),
    ],
)
def test_a_refused_run_names_the_facts_and_leaves_the_tree_as_it_was(
    desk: Desk, first: Path, tree: Tree, words: list[str], variables: dict[str, str], facts: list[str]
) -> None:
    before = tree(desk.folder)
    run = desk(*words, *TINY, **variables)
    assert run.code == 78
    assert all(fact in run.err for fact in facts), run.err
    assert re.search(r"^  -> .*python -m amt_hydra", run.err, re.MULTILINE), run.err
    assert "Traceback" not in run.err + run.out
    assert tree(desk.folder) == before


def test_c24_a_last_ckpt_cut_short_never_becomes_a_scratch_run(desk: Desk, first: Path, tree: Tree) -> None:
    cut = first.parent.with_name("cut") / "checkpoints"
    shutil.copytree(first, cut)
    whole = (cut / "last.ckpt").read_bytes()
    (cut / "last.ckpt").write_bytes(whole[: len(whole) // 2])
    before = tree(desk.folder)
    run = desk("exp_id=cut", "init=resume", "max_steps=16", *TINY)
    assert run.code == 78
    assert "cut short" in run.err
    newest = max(cut.glob("epoch=*.ckpt"), key=lambda p: load(p)["global_step"])
    assert newest.name in run.err
    assert tree(desk.folder) == before
