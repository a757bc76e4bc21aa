"""A sweep planned whole: what becomes of each point, and when nothing is started."""

import contextlib
import json
import os
from pathlib import Path

import pytest
from stand import Stand, tree

from amt_hydra.cli import main
from amt_hydra.errors import REFUSED, USAGE, AmtError
from amt_hydra.launch.lock import Lock
from amt_hydra.sweep import ledger
from amt_hydra.sweep.points import Point
from amt_hydra.sweep.run import Sweep, sweep

pytest_plugins = ["desks"]


def plan(stand: Stand, *words: str) -> list[Point]:
    """The points of `plan -m WORDS`, refused or not."""
    task = Sweep(dict(os.environ), stand.folder, None, only_plan=True, json=True)
    with contextlib.suppress(AmtError):  # it says how many are refused; the points say why
        sweep((f"repo.path={stand.repository}", *words), task)
    return task.planned


def left(stand: Stand, point: Point, step: int, signature: str | None = None) -> Path:
    """What a launch of the point left: its last.ckpt, and its record."""
    folder = stand.folder / "outputs" / "melody" / point.exp_id / "launches" / "20260101T000000Z"
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(json.dumps({"signature": signature or point.signature, "settings": {}}))
    return stand.last(point.exp_id, step=step)


def test_points_have_names_of_their_own_that_stay_the_same(stand: Stand) -> None:
    points = plan(stand, "seed=1,2", "exp_id=mine", "max_steps=9999")
    assert [point.action for point in points] == ["start", "start"]
    assert len({point.exp_id for point in points}) == 2
    assert all(point.exp_id == f"mine_{point.signature}" for point in points)
    again = plan(stand, "exp_id=mine", "seed=2,3", "max_steps=8888", "data.num_workers=0")
    assert again[0].exp_id == points[1].exp_id


def test_c16_a_points_folder_is_its_name_and_eight_digits_whatever_its_overrides_are(stand: Stand) -> None:
    name = "n" * 191  # names have 200 bytes, nine of which are the signature's
    points = plan(stand, "seed=1,2", f"exp_id={name}", f"extra.env.NOTE=/a/{'b' * 300}/c", "max_steps=9999")
    for point in points:
        assert point.action == "start", point.why
        assert point.exp_id == f"{name}_{point.signature}"
        assert (len(point.exp_id), len(point.signature)) == (200, 8)
        assert stand.follow(str(point.command(None))).stopped == ()
    for point in plan(stand, "seed=1,2", f"exp_id={name}n"):
        assert point.action == "refused"
        assert point.why.endswith("as a point is named, it must be at most 200 bytes long")


def test_the_command_of_a_point_is_the_run_of_this_point(stand: Stand) -> None:
    (point, _) = plan(stand, "seed=1,2", "max_steps=9999")
    pre = stand.follow(str(point.command(None)))
    assert (pre.subject.settings.seed, pre.subject.settings.exp_id) == (1, point.exp_id)
    assert pre.signature == point.signature
    assert pre.stopped == ()


def test_what_is_done_is_skipped_and_what_stopped_goes_on(stand: Stand) -> None:
    words = ("seed=1,2,3", "max_steps=2000")
    first, second, _ = plan(stand, *words)
    left(stand, first, step=2000)
    left(stand, second, step=1500)
    points = plan(stand, *words)
    assert [(point.action, point.step) for point in points] == [("done", 2000), ("continue", 1500), ("start", None)]
    assert points[0].score == 0.5
    pre = stand.follow(str(points[1].command(None)))
    assert (pre.subject.identity.actual, pre.subject.identity.start_step, pre.stopped) == ("resume", 1500, ())


def test_a_warm_start_that_stopped_is_resumed_and_not_started_again(stand: Stand) -> None:
    given = stand.checkpoint(stand.folder / "given.ckpt")
    words = ("seed=1,2", "max_steps=2000", "init=warmstart", f"init.ckpt={given}")
    first, _ = plan(stand, *words)
    left(stand, first, step=1500)
    point = plan(stand, *words)[0]
    assert point.action == "continue"
    assert not [word for word in point.words if word.startswith("init.ckpt")]
    assert stand.follow(str(point.command(None))).subject.identity.actual == "resume"


def test_a_run_of_another_training_under_that_name_is_never_gone_on_with(stand: Stand) -> None:
    first, _ = plan(stand, "seed=1,2", "max_steps=2000")
    left(stand, first, step=1500, signature="00000000")
    points = plan(stand, "seed=1,2", "max_steps=2000")
    assert [point.action for point in points] == ["refused", "start"]
    assert [finding.id for finding in points[0].findings if finding.severity == "error"] == ["IdentityHolds"]


def test_one_that_is_being_trained_is_left_alone(stand: Stand) -> None:
    first, _ = plan(stand, "seed=1,2", "max_steps=2000")
    lock = stand.follow(str(first.command(None))).subject.plan.place.lock
    with Lock(lock):
        assert [point.action for point in plan(stand, "seed=1,2", "max_steps=2000")] == ["running", "start"]


@pytest.mark.parametrize(
    "word", ["data.num_workers=0,1", "max_steps=2000,3000", "optimizer.lr=1e-4,0.0001", "seed=1,1", "logger=csv,wandb"]
)
def test_points_that_are_the_same_training_are_refused(stand: Stand, word: str) -> None:
    points = plan(stand, word)
    assert [point.action for point in points] == ["refused", "refused"]
    assert [point.why.partition(":")[0] for point in points] == [f"the same training as point {n}" for n in (2, 1)]
    assert ("max_steps, which says how far it goes" in points[0].why) == word.startswith("max_steps")


def test_ranks_multiply_a_batch_that_nobody_set(public: Stand) -> None:
    one, two, four = plan(public, "ddp=cpu1,cpu2", "seed=1") + plan(public, "ddp=cpu1", "ddp.nodes=4", "seed=1")
    assert len({one.signature, two.signature, four.signature}) == 3
    assert one.signature == plan(public, "seed=1")[0].signature
    shared = plan(public, "ddp=cpu1", "seed=1", "batch.sub=1", "batch.local=4")
    shared += plan(public, "ddp=cpu2", "seed=1", "batch.sub=1", "batch.local=2")
    assert shared[0].signature == shared[1].signature


def test_c04_a_relative_path_is_meant_from_where_the_user_stands(stand: Stand) -> None:
    stand.checkpoint(stand.folder / "given.ckpt")
    points = plan(stand, "seed=1,2", "init=warmstart", "init.ckpt=given.ckpt")
    assert [point.action for point in points] == ["start", "start"]


def test_one_refused_point_keeps_all_from_starting(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    before = tree(stand.folder)
    assert main(["-m", f"repo.path={stand.repository}", "seed=1,2", "batch.sub=5,6", "batch.local=12"]) == REFUSED
    said = capsys.readouterr().err
    assert said.count("BatchDivides") == 2
    assert "2 of 4 points are refused: none was started" in said
    assert tree(stand.folder) == before


def test_more_points_than_are_meant(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "-m", f"repo.path={stand.repository}", "seed=range(0,4)", "max_steps=9", "sweep.max_points=3"]
    assert main([*words]) == REFUSED
    said = " ".join(capsys.readouterr().err.split())
    assert "this would start 4 runs, and sweep.max_points is 3" in said
    assert "sweep.max_points=4" in said
    assert main([*words[:-1], "sweep.max_points=4"]) == 0


def test_what_is_done_does_not_count_as_a_point_to_start(stand: Stand) -> None:
    first, _ = plan(stand, "seed=1,2", "max_steps=2000")
    left(stand, first, step=2000)
    assert [p.action for p in plan(stand, "seed=1,2", "max_steps=2000", "sweep.max_points=1")] == ["done", "start"]


def test_a_plan_as_json_is_one_document(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "-m", "--json", f"repo.path={stand.repository}", "seed=1,2"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [point["action"] for point in document["points"]] == ["start", "start"]


def test_many_points_are_planned_in_workers_as_they_are_here(stand: Stand) -> None:
    many = plan(stand, "seed=range(0,7)", "max_steps=9999")
    few = plan(stand, "seed=0,6", "max_steps=9999")
    assert [many[0].exp_id, many[6].exp_id] == [point.exp_id for point in few]
    assert {point.action for point in many} == {"start"}


@pytest.mark.parametrize(
    ("words", "said", "way"),
    [
        (["hydra/launcher=basic"], "hydra/launcher=basic: hydra/launcher is one of gpu_pool, local, slurm", "=local"),
        (["hydra/launcher=gpu_pol"], "hydra/launcher=gpu_pol: hydra/launcher is one of", "hydra/launcher=gpu_pool"),
        (["+hydra/launcher=slurm"], "+hydra/launcher=slurm: hydra/launcher is one of", "hydra/launcher=slurm"),
        (["~hydra/launcher"], "~hydra/launcher: hydra/launcher is one of", "hydra/launcher=local"),
        (["hydra.launcher.nope=1"], "hydra.launcher.nope: hydra/launcher=local has no such setting", "seed=1,2"),
        (
            ["hydra.launcher.gpus=[0]"],
            "hydra.launcher.gpus: hydra/launcher=local has no such",
            "hydra/launcher=gpu_pool",
        ),
        (["hydra/launcher=gpu_pool", "hydra.launcher.gpus=0,1"], "hydra.launcher.gpus=0,1 is no list", "gpus=[0,1]'"),
        (["hydra/launcher=slurm", "+hydra.launcher.partition=a"], "a job's settings are slurm.* and ddp.*", "=slurm"),
    ],
)
def test_a_launcher_that_would_start_points_unplanned_is_refused_and_so_is_what_it_does_not_have(
    stand: Stand, capsys: pytest.CaptureFixture[str], words: list[str], said: str, way: str
) -> None:
    own = [f"repo.path={stand.repository}", "seed=1,2"]
    assert main(["plan", "-m", *own, *words]) == USAGE
    err = capsys.readouterr().err
    assert said in " ".join(err.split())
    command = next(line for line in err.splitlines() if "-> python" in line)
    assert command.endswith(way)
    assert not any(word.lstrip("+~").split("=")[0] == "hydra.launcher.nope" for word in command.split())


def test_the_ledger_of_a_sweep_has_the_same_place_tomorrow(stand: Stand) -> None:
    one = ledger.path_of(plan(stand, "seed=1,2", "max_steps=9"))
    assert one == ledger.path_of(plan(stand, "seed=2,1", "max_steps=19"))
    assert one != ledger.path_of(plan(stand, "seed=1,3", "max_steps=9"))


def test_a_way_out_of_a_refused_point_does_not_go_by_its_name(stand: Stand) -> None:
    points = plan(stand, "seed=1,2", "batch.sub=5", "batch.local=12")
    ways = [way for finding in points[0].findings for way in finding.fix if way.startswith("python")]
    assert ways
    assert not [way for way in ways if points[0].signature in way]


def test_a_sweep_over_nothing(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "-m", f"repo.path={stand.repository}", "exp_id=glob(nothing*)"]) == USAGE
    assert "the sweep has no point" in capsys.readouterr().err


def test_gpus_that_are_no_list(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "-m", f"repo.path={stand.repository}", "seed=1,2", "hydra/launcher=gpu_pool"]
    assert main([*words, "hydra.launcher.gpus=5"]) == USAGE
    assert "hydra.launcher.gpus=[5]" in capsys.readouterr().err
    assert main([*words, "hydra.launcher.gpus=[a/b]"]) == USAGE
    assert main([*words, "hydra.launcher.gpus=[5]"]) == 0
    capsys.readouterr()
    assert main([*words, "hydra.launcher.gpus=[5,5]", "ddp.devices=2", "ddp.accelerator=cpu"]) == REFUSED
    assert "ddp.devices=2, and the pool has 1 GPUs" in capsys.readouterr().err


def test_a_sweep_is_never_planned_in_parts(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "-m", f"repo.path={stand.repository}", "seed=1,2", "hydra.sweeper.max_batch_size=1"]
    assert main(words) == USAGE
    assert "max_batch_size" in capsys.readouterr().err


def test_a_refused_sweep_as_json_is_one_document(stand: Stand, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "-m", "--json", f"repo.path={stand.repository}", "seed=1,1"]) == REFUSED
    document = json.loads(capsys.readouterr().out)
    assert (len(document["points"]), document["error"]["code"]) == (2, REFUSED)
