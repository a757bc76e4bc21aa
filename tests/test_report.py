"""What people and programs are shown."""

import io
import json
import math
import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from amt_hydra.checkpoint.facts import Monitor, Xray
from amt_hydra.commands import Typed
from amt_hydra.errors import INTERRUPTED
from amt_hydra.outcome import Outcome
from amt_hydra.preflight import Preflight, preflight
from amt_hydra.report import console
from amt_hydra.report.data import plain, preflight_data, xray_data


@pytest.fixture
def planned(here: Path) -> Callable[..., Preflight]:
    def run(*words: str) -> Preflight:
        return preflight(Typed("train", words), os.environ, here)

    return run


def shown(pre: Preflight, outcome: Outcome) -> str:
    out = console.console()
    out.file = io.StringIO()
    console.show_outcome(outcome, Path("/records/1"), pre, out)
    return str(out.file.getvalue())


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_json_does_not_know_is_text(number: float) -> None:
    assert json.loads(json.dumps(plain({"a": [number]}), allow_nan=False)) == {"a": [str(number)]}


def test_paths_and_tuples_are_text_and_lists() -> None:
    assert plain({"a": (Path("/x"), {1}, None, True)}) == {"a": ["/x", [1], None, True]}


def test_a_set_is_in_order_and_what_json_does_not_know_of_a_score_is_text() -> None:
    assert plain({"b", "a", "c"}) == ["a", "b", "c"]
    monitor = Monitor("loss", None, None, current_score=math.nan)
    ray = Xray(Path("/a.ckpt"), 1, 0.0, None, whole=True, problem=None, monitors=(monitor,))
    assert xray_data(ray)["score"] == "nan"


def test_a_plan_as_data_says_who_decided_each_value(planned: Callable[..., Preflight]) -> None:
    data = preflight_data(planned("repo=reference", "precision=fp32", "seed=7"))["settings"]
    assert (data["seed"]["value"], data["seed"]["by"], data["seed"]["where"]) == (7, "override", "command line")
    precision = data["precision.name"]
    assert (precision["value"], precision["where"], precision["documented"]) == ("32", "precision=fp32", "bf16-mixed")


def test_commands_and_messages_are_never_wrapped(
    planned: Callable[..., Preflight], capsys: pytest.CaptureFixture[str]
) -> None:
    pre = planned("repo=reference", f"data.home={'x' * 300}")
    console.show_plan(pre, console.console())
    lines = capsys.readouterr().out.splitlines()
    (command,) = [line for line in lines if " train.py " in line]
    words = shlex.split(command)
    assert words[words.index("--data-home") + 1].endswith("x" * 300)
    assert "\x1b[" not in "".join(lines)


def table(pre: Preflight, width: int) -> list[str]:
    out = console.console()
    out.file, out.width = io.StringIO(), width
    console.show_plan(pre, out)
    lines = str(out.file.getvalue()).splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("setting "))
    return lines[first + 1 : lines.index("command")]


def test_the_table_of_a_plan_is_narrow(planned: Callable[..., Preflight], here: Path) -> None:
    pre = planned("repo=reference", "experiment=quick", "precision=fp32", "seed=3", "paths.outputs=/o")
    keys = [decision.key for decision in pre.subject.plan.decisions]
    wide = {line.split()[0]: line.split()[1:] for line in table(pre, 160)}
    assert wide.keys() <= set(keys)  # one line a row
    assert wide["seed"] == ["3", "override", "--seed"]
    assert wide["precision.name"] == ["32", "bf16-mixed", "override", "--precision"]
    assert wide["max_steps"][1] == "experiment=quick"
    assert wide["optimizer.name"][1] == "documented"
    assert wide["optimizer.scheduler"][1].startswith("src/train.py:")
    narrow = table(pre, 80)
    assert all(len(line.rstrip()) <= 80 for line in narrow)
    heads = [number for number, line in enumerate(narrow) if not line.startswith(" ")]
    assert [narrow[number].split()[0] for number in heads] == list(wide)
    assert all(after - before <= 2 for before, after in pairwise(heads))


def test_no_value_of_a_plan_is_cut(planned: Callable[..., Preflight]) -> None:
    path = "/" + "/".join(f"folder{number}" for number in range(20))
    rows = table(planned("repo=reference", f"paths.outputs={path}"), 80)
    begin = next(number for number, row in enumerate(rows) if row.startswith("paths.outputs"))
    column = rows[begin].index("/folder0")
    assert "".join(row[column:].split()[0] for row in rows[begin:] if row[column:].strip()) == path


BEST = Path("/runs/a b/best.ckpt")
TRAINED = Outcome(0, "trained", 10, 0.5, BEST, 1.0, resumable=True)


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line[line.index(": ") + 2 :]) for line in text.splitlines() if " -m amt_hydra " in line]


def test_what_to_do_after_a_run(planned: Callable[..., Preflight], here: Path) -> None:
    (here / "outputs" / "melody" / "a b2").mkdir(parents=True)
    pre = planned("repo=reference", "exp_id=a b", "init=warmstart", f"init.ckpt={BEST}", "++max_steps=10", "seed=5")
    train_on, warm = commands(shown(pre, TRAINED))
    kept = ["repo=reference", "exp_id=a b", "seed=5", "init=resume", "max_steps=20"]
    assert train_on == ["python", "-m", "amt_hydra", *kept]
    kept = ["repo=reference", "++max_steps=10", "seed=5", "init=warmstart", f"init.ckpt={BEST}", "exp_id=a b3"]
    assert warm == ["python", "-m", "amt_hydra", *kept]


def test_a_forced_scratch_run_is_continued_without_the_force(
    planned: Callable[..., Preflight], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMT_FORCE_SCRATCH", "1")
    found = commands(shown(planned("repo=reference"), TRAINED))
    assert [words[:3] for words in found] == [["env", "-u", "AMT_FORCE_SCRATCH"]] * 2


def test_an_interrupted_run_goes_on_to_the_steps_it_was_given(planned: Callable[..., Preflight]) -> None:
    stopped = replace(TRAINED, code=INTERRUPTED, best_checkpoint=None)
    (train_on,) = commands(shown(planned("repo=reference", "max_steps=900"), stopped))
    assert train_on[3:] == ["repo=reference", "max_steps=900", "init=resume"]


@pytest.mark.parametrize(
    ("code", "step", "goal", "offered"),
    [
        (INTERRUPTED, 65, 2000, "max_steps=2000"),
        (INTERRUPTED, None, 2000, "max_steps=2000"),
        (143, 175, 400, "max_steps=400"),
        (0, 175, 400, "max_steps=400"),  # ended well, and before its goal
        (0, 175, -1, "max_steps=-1"),
        (0, 400, 400, "max_steps=800"),
        (INTERRUPTED, 400, 400, "max_steps=800"),  # as it was saying goodbye: 400 more, or there is no step left
    ],
)
def test_a_resume_keeps_the_users_own_goal_until_it_is_reached(
    planned: Callable[..., Preflight], code: int, step: int | None, goal: int, offered: str
) -> None:
    stopped = replace(TRAINED, code=code, step=step, best_checkpoint=None)
    (train_on,) = commands(shown(planned("repo=reference", f"max_steps={goal}"), stopped))
    assert [word for word in train_on if word.startswith("max_steps")] == [offered]
    assert "init=resume" in train_on


def test_a_force_given_by_an_override_is_dropped(planned: Callable[..., Preflight]) -> None:
    found = commands(shown(planned("repo=reference", "extra.env.AMT_FORCE_SCRATCH=1", "extra.env.A=b"), TRAINED))
    assert len(found) == 2
    for words in found:
        assert "extra.env.A=b" in words
        assert not any("AMT_FORCE_SCRATCH=" in word for word in words)


def test_without_a_last_ckpt_no_resume_is_proposed(planned: Callable[..., Preflight]) -> None:
    (warm,) = commands(shown(planned("repo=reference"), replace(TRAINED, resumable=False)))
    assert "init=warmstart" in warm


def test_a_run_that_failed_points_at_its_log_where_there_is_one(planned: Callable[..., Preflight]) -> None:
    failed = Outcome(1, "train.py ended with exit code 1", None, None, None, 1.0, resumable=False)
    assert "less /records/1/output.log" in shown(planned("repo=reference"), failed)
    assert "less" not in shown(planned("repo=reference", "launch.attach=true"), failed)
