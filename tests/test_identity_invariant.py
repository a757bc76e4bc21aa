"""Whatever the facts: a run is refused, or it is what it was declared to be."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from amt_hydra.checkpoint import TensorFact, Xray
from amt_hydra.commands import Typed
from amt_hydra.compose import compose
from amt_hydra.conf_path import shipped
from amt_hydra.identity import decide
from amt_hydra.preflight import typed_settings
from amt_hydra.refusals import Facts, Ways
from amt_hydra.repository.facts import GoesOn
from amt_hydra.runstate import RunState, place
from amt_hydra.settings import Mode, Settings

MODES: tuple[Mode, ...] = ("scratch", "resume", "warmstart")
YES_NO = (True, False)


@pytest.fixture(scope="module")
def settings() -> Settings:
    return typed_settings(compose([], [shipped()]), Path("/stand"))


def ray(name: str, whole: bool) -> Xray:
    tensors = (TensorFact("w", (1,), "float32"),) if whole else ()
    problem = None if whole else "cut short"
    return Xray(Path("/runs") / name, 1, 0.0, None, whole, problem, global_step=10 if whole else None, tensors=tensors)


@pytest.mark.parametrize("mode", MODES)
def test_either_refused_or_as_declared(settings: Settings, mode: Mode) -> None:
    started = 0
    checkpoint_states = (None, True, False)  # absent, whole, cut short
    by_itself: tuple[GoesOn, ...] = ("resume", "warmstart", "scratch", "unknown")
    for forced, last, init, overwrite, resumes, takes_init, goes_on, goal in itertools.product(
        YES_NO, checkpoint_states, checkpoint_states, YES_NO, YES_NO, YES_NO, by_itself, (None, -1, 10, 11)
    ):
        asked = replace(settings.init, mode=mode, overwrite=overwrite, ckpt=None if init is None else Path("/runs/i"))
        chosen = replace(settings, init=asked)
        last_ray = None if last is None else ray("last.ckpt", last)
        found = () if last_ray is None else (last_ray,)
        init_ray = None if init is None else ray("i", init)
        state = replace(_empty(chosen), last=last_ray, found=found, init=init_ray)
        facts = Facts(chosen, state, forced, "", resumes, takes_init, goes_on, goal)
        identity = decide(Ways(facts, Typed("train", ())))
        if identity.refusal is None:
            started += 1
            assert identity.actual == mode, facts
            assert not (mode == "resume" and goal == 10), "a resume without a step left would train nothing"
    assert started > 0


def _empty(settings: Settings) -> RunState:
    where = place(settings, Path("/runs"))
    return RunState(place=where, last=None, found=(), init=None, init_from="", init_inside=None, unused="base2")
