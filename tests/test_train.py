"""The launch of a checked plan, with a train.py that prints what it is given and ends."""

import json
import math
import os
import re
from pathlib import Path

import pytest
from repos import home
from stand import Stand, tree

from amt_hydra import record
from amt_hydra.errors import TRAINED_NOTHING, AmtError
from amt_hydra.launch.lock import Lock
from amt_hydra.train import launch

pytest_plugins = ["desks"]

PRINTING = """\
import sys
print("argv", sys.argv[1:])
print("port", os.environ.get("MASTER_PORT"))
sys.exit(0)
"""


@pytest.fixture
def printing(stand: Stand) -> Stand:
    start = "model = pl.LightningModule()"
    home(stand.repository, changes={start: PRINTING + start, "import pytorch_lightning as pl\n": ""})
    return stand


def started(stand: Stand, *words: str) -> tuple[str, Path]:
    """Launch; return what train.py said, and the record folder. Such a run trains nothing, which is said."""
    outcome, folder = launch(stand.pre(*words), dict(os.environ))
    assert outcome.code == TRAINED_NOTHING
    return (folder / record.LOG).read_text(), folder


def test_train_py_gets_what_the_plan_shows(printing: Stand) -> None:
    plan = printing.pre("max_steps=7").subject.plan
    said, folder = started(printing, "max_steps=7")
    assert f"argv {list(plan.argv[2:])}" in said
    content = json.loads((folder / record.FILE).read_text())
    assert content["plan"]["argv"] == list(plan.argv)
    assert content["overrides"][1:] == ["max_steps=7"]
    assert content["outcome"]["code"] == TRAINED_NOTHING
    assert "trained nothing" in content["outcome"]["verdict"]


def test_c03_several_ranks_of_one_machine_meet_at_a_port_of_their_own(printing: Stand) -> None:
    assert "port None" in started(printing)[0]
    assert re.search(r"port \d+", started(printing, "ddp.devices=2")[0])
    assert "port 29511" in started(printing, "ddp.devices=2", "extra.env.MASTER_PORT=29511")[0]


def test_c19_a_launch_leaves_no_secret_of_the_environment_in_any_file(printing: Stand) -> None:
    secret = "s3cret-0123456789abcdef0123456789abcdef01234567"
    printing.monkeypatch.setenv("WANDB_API_KEY", secret)
    printing.monkeypatch.setenv("AMT_NOTE", f"my key is {secret}")
    _, folder = started(printing, f"extra.env.NOTE={secret}", "logger=csv")
    files = [p for p in printing.folder.rglob("*") if p.is_file()]
    assert folder / record.FILE in files
    assert not [str(p) for p in files if secret.encode() in p.read_bytes()]
    assert json.loads((folder / record.FILE).read_text())["environment"]["AMT_NOTE"] == "my key is ***"


def test_what_is_in_the_way_is_moved_aside_and_nothing_of_it_is_lost(printing: Stand) -> None:
    printing.last()
    before = {name: facts[3] for name, facts in tree(printing.runs / "melody" / "base").items()}
    started(printing, "init.overwrite=true")
    (moved,) = (printing.runs / "melody").glob("base.before-*")
    assert {name: facts[3] for name, facts in tree(moved).items()} == before


def test_where_the_record_cannot_be_written_the_old_experiment_is_moved_back(printing: Stand) -> None:
    printing.last()
    pre = printing.pre("init.overwrite=true")
    before = {name: facts[3] for name, facts in tree(printing.runs).items()}
    (printing.folder / "outputs").write_text("")  # it came in the way after the checks
    with pytest.raises(AmtError, match="the record cannot be written"):
        launch(pre, dict(os.environ))
    assert {name: facts[3] for name, facts in tree(printing.runs).items()} == before


def test_where_train_py_cannot_be_started_the_record_says_so(printing: Stand) -> None:
    pre = printing.pre("repo.python=/bin/sh")
    (printing.repository / "src").rename(printing.repository / "gone")
    with pytest.raises(AmtError):
        launch(pre, dict(os.environ))
    (folder,) = pre.subject.plan.records.iterdir()
    assert json.loads((folder / record.FILE).read_text())["outcome"]["verdict"].startswith("not started")


def test_checkpoints_that_changed_since_the_plan_stop_the_launch(printing: Stand) -> None:
    pre = printing.pre()
    printing.last()
    with pytest.raises(AmtError, match="changed while the run was being planned") as error:
        launch(pre, dict(os.environ))
    assert error.value.fix[0].startswith("plan it again: python -m amt_hydra")
    assert not (printing.folder / "outputs").exists()


def test_a_score_that_is_nan_is_no_change(printing: Stand) -> None:
    printing.last(step=1000, score=math.nan)
    assert "trained nothing" in launch(printing.pre("init=resume", "max_steps=2000"), dict(os.environ))[0].verdict


def test_c27_any_checkpoint_that_came_since_the_plan_stops_the_launch(printing: Stand) -> None:
    pre = printing.pre("init.overwrite=true")
    printing.checkpoint(printing.experiment() / "epoch=1.ckpt")
    with pytest.raises(AmtError, match="changed while"):
        launch(pre, dict(os.environ))


def test_an_experiment_that_is_being_trained_is_not_started_again(printing: Stand) -> None:
    pre = printing.pre()
    with Lock(pre.subject.plan.place.lock), pytest.raises(AmtError, match="locked by"):
        launch(pre, dict(os.environ))
    assert not (printing.folder / "outputs").exists()


def test_the_lock_is_gone_when_the_run_is(printing: Stand) -> None:
    started(printing)
    assert not printing.pre().subject.plan.place.lock.exists()
