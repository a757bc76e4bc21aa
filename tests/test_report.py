"""What people and programs are shown."""

import io
import json
import math
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from amt_hydra.commands import Typed
from amt_hydra.outcome import Outcome
from amt_hydra.preflight import Preflight, preflight
from amt_hydra.report import console
from amt_hydra.report.data import plain, preflight_data


@pytest.fixture
def planned(here: Path) -> Callable[..., Preflight]:
    def run(*words: str) -> Preflight:
        return preflight(Typed("train", words), None, os.environ, here)

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


def test_what_to_do_after_a_run(planned: Callable[..., Preflight]) -> None:
    pre = planned("repo=reference", "exp_id=a b", "init.overwrite=true", "+max_steps=10")
    text = shown(pre, Outcome(0, "trained", 10, 0.5, Path("/runs/a b/best.ckpt"), 1.0))
    train_on, warm = (shlex.split(line.partition(": ")[2]) for line in text.splitlines() if " -m amt_hydra " in line)
    assert train_on[3:] == ["repo=reference", "exp_id=a b", "init=resume", "max_steps=20"]
    kept = ["repo=reference", "+max_steps=10"]
    assert warm[3:] == [*kept, "init=warmstart", "init.ckpt=/runs/a b/best.ckpt", "exp_id=a b2"]


def test_a_run_that_failed_points_at_its_log(planned: Callable[..., Preflight]) -> None:
    text = shown(planned("repo=reference"), Outcome(1, "train.py ended with exit code 1", None, None, None, 1.0))
    assert "less /records/1/output.log" in text
