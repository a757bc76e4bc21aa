import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from stand import Stand, errors, of

from amt_hydra.launch.lock import Lock

pytest_plugins = ["desks"]


def test_leftover_switches_of_the_shell_are_shown(stand: Stand) -> None:
    pre = stand.pre(AMT_DETECT_ANOMALY="1", AMT_DEBUG_GRAD_FINITE="0")
    found = of(pre, "LeftoverSwitches")
    assert {f.message.split()[0] for f in found} == {"AMT_DETECT_ANOMALY=1", "AMT_DEBUG_GRAD_FINITE=0"}
    assert {f.fix for f in found} == {("unset AMT_DETECT_ANOMALY",), ("unset AMT_DEBUG_GRAD_FINITE",)}
    assert of(stand.pre(), "LeftoverSwitches") == []


def test_a_switch_that_this_run_sets_itself_is_not_left_over(stand: Stand) -> None:
    assert of(stand.pre("debug.detect_anomaly=true", AMT_DETECT_ANOMALY="1"), "LeftoverSwitches") == []


def test_c22_last_ckpt_is_a_copy_where_nothing_is_found(stand: Stand) -> None:
    stand.last(step=10)
    assert of(stand.pre("init=resume", "max_steps=20"), "LastIsCurrent") == []


def test_c23_a_frozen_last_ckpt_is_named_with_the_steps_that_would_be_lost(stand: Stand) -> None:
    stand.last(step=1000)
    stand.checkpoint(stand.experiment() / "epoch=4, step=1400.ckpt", step=1400)
    (finding,) = of(stand.pre("init=resume", "max_steps=2000"), "LastIsCurrent")
    assert "global_step 1000" in finding.message
    assert "400 steps" in finding.message
    subprocess.run(finding.fix[0], shell=True, check=True)  # it is quoted: the folder's name is a trap
    pre = stand.pre("init=resume", "max_steps=2000")
    assert of(pre, "LastIsCurrent") == []
    assert pre.subject.identity.start_step == 1400


def test_an_experiment_that_is_being_trained_is_refused_with_who_trains_it(stand: Stand) -> None:
    lock = stand.pre().subject.plan.place.lock
    with Lock(lock):
        (finding,) = of(stand.pre(), "ExperimentFree")
        assert f"pid {json.loads(lock.read_text())['holders'][0]['pid']}" in finding.message
        elsewhere = stand.follow(finding.fix[0])
        assert errors(elsewhere) == []
        assert elsewhere.subject.settings.exp_id == "base2"
    assert of(stand.pre(), "ExperimentFree") == []
    unlock = finding.fix[1].partition(": ")[2]
    assert shlex.split(unlock) == ["rm", str(lock)]


def test_a_resume_can_only_wait(stand: Stand) -> None:
    """Another experiment has nothing to resume."""
    stand.last(step=10)
    with Lock(stand.pre().subject.plan.place.lock):
        (finding,) = of(stand.pre("init=resume", "max_steps=2000"), "ExperimentFree")
    assert finding.fix[0] == "wait for it"


def test_a_lock_whose_holder_is_gone_does_not_count(stand: Stand) -> None:
    lock = stand.pre().subject.plan.place.lock
    code = f"import os; from pathlib import Path; from amt_hydra.launch.lock import Lock; " \
           f"Lock(Path({str(lock)!r})).__enter__(); os._exit(0)"  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
    assert lock.exists()
    assert of(stand.pre(), "ExperimentFree") == []


@pytest.mark.parametrize("words", [(), ("init.overwrite=true",)])
def test_checkpoints_are_only_compared_on_a_resume(stand: Stand, words: tuple[str, ...]) -> None:
    stand.last(step=1000)
    stand.checkpoint(stand.experiment() / "newer.ckpt", step=1400)
    assert of(stand.pre(*words), "LastIsCurrent") == []
