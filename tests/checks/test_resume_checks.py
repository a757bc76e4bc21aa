"""A resume against the record of the launch before it."""

import json
from pathlib import Path

import pytest
from stand import Stand, of

pytest_plugins = ["desks"]


def recorded(stand: Stand, **values: object) -> Path:
    """Leave the record of a launch with these settings."""
    folder = stand.folder / "outputs" / "melody" / "base" / "launches" / "20260101T000000Z"
    folder.mkdir(parents=True)
    settings = {key.replace("__", "."): {"value": value, "repository": None} for key, value in values.items()}
    (folder / "record.json").write_text(json.dumps({"settings": settings}))
    return folder / "record.json"


def test_a_setting_left_out_on_a_resume_is_named_with_the_value_that_the_run_had(stand: Stand) -> None:
    stand.last(step=10)
    recorded(stand, optimizer__warmup_steps=50, precision__name="bf16-mixed")
    (finding,) = of(stand.pre("init=resume", "max_steps=1000"), "SettingsContinue")
    assert finding.severity == "warning"
    assert "optimizer.warmup_steps=500" in finding.message
    assert "had 50" in finding.message
    assert of(stand.follow(finding.fix[0]), "SettingsContinue") == []


def test_settings_that_may_differ_from_launch_to_launch_are_not_named(stand: Stand) -> None:
    stand.last(step=10)
    recorded(stand, max_steps=100, data__num_workers=7, logger__kind="wandb", optimizer__warmup_steps=500)
    assert of(stand.pre("init=resume", "max_steps=1000"), "SettingsContinue") == []


def test_another_run_than_a_resume_goes_on_with_nothing(stand: Stand) -> None:
    recorded(stand, optimizer__warmup_steps=50)
    assert of(stand.pre(), "SettingsContinue") == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"settings": 3}', '{"settings": {"seed": 3}}'])
def test_a_record_that_cannot_be_read_says_nothing(stand: Stand, text: str) -> None:
    stand.last(step=10)
    recorded(stand).write_text(text)
    assert of(stand.pre("init=resume", "max_steps=1000"), "SettingsContinue") == []
