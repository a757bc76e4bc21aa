"""What is found in an experiment's folder, and in those around it."""

import math
import os
from pathlib import Path

import pytest
from stand import Stand, of

from amt_hydra.checkpoint import Monitor, Xray
from amt_hydra.cli import main
from amt_hydra.errors import USAGE
from amt_hydra.runstate import describe, nearby, place

pytest_plugins = ["desks"]


def test_an_experiment_lies_below_runs_and_project(stand: Stand) -> None:
    where = stand.pre("exp_id=mine", "project=songs").subject.plan.place
    assert where.experiment == stand.runs / "songs" / "mine"
    assert where.checkpoints == stand.runs / "songs" / "mine" / "checkpoints"
    assert where.last.name == "last.ckpt"
    assert where.lock.parent == where.experiment.parent  # it must stay put when the experiment is moved aside


def test_c04_the_folder_of_runs_is_meant_from_the_folder_of_train_py(stand: Stand) -> None:
    assert stand.pre().subject.plan.place.runs == stand.repository / "logs"  # "../logs" from src/


def test_a_flag_of_the_users_says_where_runs_go_however_it_is_spelt(stand: Stand) -> None:
    for name in ("save_dir", "save-dir"):
        plan = stand.pre(f"extra.flags.{name}=elsewhere").subject.plan
        assert plan.place.runs == stand.repository / "src" / "elsewhere"
        assert "elsewhere" in plan.argv


def test_the_template_may_be_another(stand: Stand) -> None:
    where = stand.pre("repo.checkpoints={runs}/ckpt/{project}-{exp_id}/last").subject.plan.place
    assert where.experiment == stand.runs / "ckpt" / "melody-base"
    assert where.checkpoints == stand.runs / "ckpt" / "melody-base" / "last"


@pytest.mark.parametrize(
    "template", ["{runs}/{name}/{exp_id}", "{runs}/{project}/all", "{runs/{exp_id}", "{}/{exp_id}"]
)
def test_a_template_that_is_none_is_named(stand: Stand, capsys: pytest.CaptureFixture[str], template: str) -> None:
    assert main([f"repo.path={stand.repository}", f"repo.checkpoints='{template}'"]) == USAGE
    err = capsys.readouterr().err
    assert "repo.checkpoints=" in err
    assert "{runs}, {project}, {exp_id}" in err


def test_a_newer_last_v1_is_found_and_shown(stand: Stand) -> None:
    """Code that saves without resuming leaves last.ckpt frozen beside last-v1.ckpt."""
    stand.last(step=1000)
    stand.checkpoint(stand.experiment() / "last-v1.ckpt", step=1500)
    pre = stand.pre("init=resume", "max_steps=2000")
    assert "newest checkpoint: last-v1.ckpt at global_step 1500, not last.ckpt" in pre.subject.identity.evidence
    (finding,) = of(pre, "LastIsCurrent")
    assert "500 steps would be trained again" in finding.message


def test_what_is_no_checkpoint_is_not_counted(stand: Stand) -> None:
    stand.experiment().mkdir(parents=True)
    for name in ("last.ckpt.old", "notes.txt", "last.CKPT"):
        (stand.experiment() / name).write_text("")
    assert stand.pre().subject.state.found == ()


@pytest.mark.parametrize("name", ["[x]*?", "a b", "日本", "it's", "x=1,y=2", "-".join("abc")])
def test_names_with_glob_characters_are_names(stand: Stand, name: str) -> None:
    """[x] would match an x, and * everything: another experiment's checkpoints would be offered, or none."""
    stand.checkpoint(stand.runs / name / "one" / "checkpoints" / "best.ckpt", score=0.5)
    stand.checkpoint(stand.runs / "x" / "decoy" / "checkpoints" / "best.ckpt", score=0.9)
    state = stand.pre(f"project={name}", f"exp_id={name}", "init=warmstart").subject.state
    assert [ray.path.parts[-4:-2] for ray in state.nearby] == [(name, "one")]


def test_nearby_ranks_by_score_then_by_time_and_takes_what_holds_weights(stand: Stand) -> None:
    for exp_id, score, age in (
        ("a", 0.2, 0),
        ("b", 0.9, 50),
        ("old", None, 100),
        ("new", None, 10),
        ("nan", math.nan, 1),
    ):
        file = stand.checkpoint(stand.experiment(exp_id) / "x.ckpt", score=score)
        os.utime(file, (1e9 - age, 1e9 - age))
    stand.checkpoint(stand.experiment("empty") / "x.ckpt", weights=False, score=1.0)
    stand.checkpoint.cut(stand.experiment("cut") / "x.ckpt")
    where = stand.pre().subject.plan.place
    names = [ray.path.parts[-3] for ray in nearby(where, "max")]
    assert names == ["b", "a", "nan", "new", "old"]
    assert [ray.path.parts[-3] for ray in nearby(where, "min")][:2] == ["a", "b"]


def test_nearby_is_looked_for_only_where_one_has_to_be_proposed(stand: Stand) -> None:
    stand.last("other")
    assert stand.pre().subject.state.nearby == ()
    assert stand.pre("init=warmstart", f"init.ckpt={stand.last('other')}").subject.state.nearby == ()


def test_an_experiments_place_is_worked_out_for_any_exp_id(stand: Stand) -> None:
    settings = stand.pre().subject.settings
    assert place(settings, Path("/runs"), "first").checkpoints == Path("/runs/melody/first/checkpoints")


def test_a_checkpoint_is_described_by_step_and_score_or_by_what_is_wrong() -> None:
    ray = Xray(Path("/a/last.ckpt"), 1, 0.0, None, whole=True, problem=None, global_step=7)
    assert describe(ray) == "last.ckpt (global_step 7)"
    broken = Xray(Path("/a/last.ckpt"), 1, 0.0, None, whole=False, problem="cut short: no end")
    assert describe(broken) == "last.ckpt (cut short: no end)"
    scored = Xray(Path("/a/x.ckpt"), 1, 0.0, None, True, None, monitors=(Monitor("m", None, None, 0.5),))
    assert describe(scored) == "x.ckpt (no global_step, score 0.5000)"
