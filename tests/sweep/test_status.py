"""The verb status, and what a ledger holds."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from stand import Stand

from amt_hydra.cli import main
from amt_hydra.errors import USAGE
from amt_hydra.launch.lock import Lock
from amt_hydra.slurm.place import Submitted
from amt_hydra.sweep import ledger
from amt_hydra.sweep.ledger import Entry
from amt_hydra.sweep.standing import Standing, standings

pytest_plugins = ["desks"]


def entry(stand: Stand, goal: int | None = 2000) -> Entry:
    folder = stand.experiment().parent
    records = stand.folder / "outputs" / "melody" / "base" / "launches"
    lock = folder.with_name(".base.lock")
    return Entry(
        sweep="sweep",
        exp_id="base",
        signature="12345678",
        command="python -m amt_hydra",
        words=(),
        asked=ledger.Asked("local", None, None, stand.folder),
        place=None,
        goal=goal,
        mode="max",
        records=records,
        checkpoints=stand.experiment(),
        lock=lock,
    )


def standing(one: Entry) -> Standing:
    (found,) = standings([one], {})
    return found


def ended(stand: Stand, outcome: dict[str, object] | None) -> None:
    folder = stand.folder / "outputs" / "melody" / "base" / "launches" / "20260101T000000Z"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "record.json").write_text(json.dumps({} if outcome is None else {"outcome": outcome}))


def test_a_point_that_was_not_started(stand: Stand) -> None:
    assert standing(entry(stand)).state == "waiting"


def test_one_that_reached_its_goal(stand: Stand) -> None:
    stand.last(step=2000)
    found = standing(entry(stand))
    assert (found.state, found.step, found.best) == ("done", 2000, 0.5)
    assert standing(entry(stand, goal=3000)).state == "stopped"


def test_one_that_was_killed_before_its_first_checkpoint(stand: Stand) -> None:
    ended(stand, None)
    assert standing(entry(stand)).state == "stopped"


def test_one_that_failed_says_how(stand: Stand) -> None:
    stand.last(step=10)
    ended(stand, {"code": 3, "verdict": "train.py ended with exit code 3"})
    found = standing(entry(stand))
    assert (found.state, found.said) == ("failed", "train.py ended with exit code 3")


@pytest.mark.parametrize("code", [130, 143, 129])
def test_one_that_was_asked_to_end_is_stopped(stand: Stand, code: int) -> None:
    stand.last(step=10)
    ended(stand, {"code": code, "verdict": "interrupted"})
    assert standing(entry(stand)).state == "stopped"


def test_one_without_a_goal_is_done_when_it_ended_well(stand: Stand) -> None:
    stand.last(step=10)
    ended(stand, {"code": 0, "verdict": "trained"})
    assert standing(entry(stand, goal=-1)).state == "done"
    ended(stand, {"code": 1, "verdict": "died"})
    assert standing(entry(stand, goal=-1)).state == "failed"


def test_one_that_is_being_trained(stand: Stand) -> None:
    stand.last(step=2000)
    it = entry(stand)
    with Lock(it.lock):
        found = standing(it)
    assert (found.state, found.said.partition(" ")[0]) == ("running", "pid")
    assert standing(it).state == "done"


def submitted(stand: Stand, job: str | None = "7") -> Entry:
    return replace(entry(stand), place=Submitted("amt-a", None, job))


def slurm(tmp_path: Path, **said: str) -> dict[str, str]:
    """A PATH on which Slurm's commands print what is said; the others are not there."""
    for name, text in said.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\nprintf '%s' '{text}'\n")
        program.chmod(0o755)
    return {"PATH": str(tmp_path)}


def test_where_scripted_slurm_does_not_answer_nothing_is_said_of_its_queue(stand: Stand, tmp_path: Path) -> None:
    (now,) = standings([submitted(stand)], slurm(tmp_path))
    assert (now.state, now.in_queue) == ("waiting", None)
    assert now.said == "squeue does not answer: it may be queued"


@pytest.mark.parametrize(
    ("said", "state", "told"),
    [
        ("7|OUT_OF_MEMORY", "failed", "out of memory"),
        ("7|CANCELLED by 0", "waiting", "cancelled"),
        ("", "failed", "it is gone, and left no word"),
    ],
)
def test_a_job_that_left_no_word_by_scripted_slurm(
    stand: Stand, tmp_path: Path, said: str, state: str, told: str
) -> None:
    (now,) = standings([submitted(stand)], slurm(tmp_path, squeue="", sacct=said))
    assert (now.state, now.said) == (state, f"Slurm job 7: {told}")


def test_a_point_of_two_sweeps_has_one_job_by_scripted_slurm(stand: Stand, tmp_path: Path) -> None:
    there = slurm(tmp_path, squeue="7|PENDING|amt-a|Resources|")
    both = standings([submitted(stand), entry(stand)], there)
    assert [(now.state, now.job) for now in both] == [("queued", "7")] * 2


def test_a_damaged_line_of_a_ledger_is_left_out(tmp_path: Path) -> None:
    whole = {"exp_id": "a", "signature": "s", "command": "c", "goal": 1, "mode": "max", "words": [], "slurm": None}
    whole |= {
        "records": "r",
        "checkpoints": "k",
        "lock": "l",
        "launcher": "local",
        "gpus": None,
        "config_dir": None,
        "cwd": "w",
    }
    file = tmp_path / "sweeps" / "1234" / "ledger.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(whole) + '\n{"exp_id": "b"}\n[]\n{"exp')
    assert [one.exp_id for one in ledger.read(tmp_path)] == ["a"]


def test_where_there_is_no_sweep(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 0
    assert f"no sweep has a ledger in {here / 'outputs'}" in capsys.readouterr().out
    assert main(["status", "--json", "--watch"]) == USAGE
    assert main(["plan", "--watch"]) == USAGE
    assert main(["status", "seed=1"]) == USAGE
