"""Sources that cannot start, and W&B runs that would be mixed up."""

from dataclasses import replace

import pytest
from repos import family
from stand import MACHINE, Stand, errors, of

from amt_hydra.machine import Wandb

pytest_plugins = ["desks"]


def test_an_argument_that_no_flag_defines_is_said_before_the_start(stand: Stand) -> None:
    train = stand.repository / "src" / "train.py"
    train.write_text(train.read_text().replace("trainer.fit(", "print(args.beam_size)\ntrainer.fit("))
    pre = stand.pre()
    (error,) = [text for text in errors(pre) if text.startswith("TrainStarts")]
    assert "args.beam_size" in error
    line = next(n for n, text in enumerate(train.read_text().splitlines(), 1) if "beam_size" in text)
    assert f"{train}:{line}" in error


def test_a_logger_that_is_none_by_now_is_said_before_the_start(public: Stand) -> None:
    """As in a public fork: the logger was taken out in one file and is used in the other."""
    family(
        public.repository,
        changes={
            "logger = WandbLogger(**shared_cfg": "logger = None  # ",
            ".fit(model)": ".fit(model)\nlogger.watch(model)",
        },
    )
    (error,) = [text for text in errors(public.pre()) if text.startswith("TrainStarts")]
    assert "logger.watch" in error


def test_a_source_that_starts_has_nothing_to_say(stand: Stand, public: Stand) -> None:
    assert of(stand.pre(), "TrainStarts") == of(public.pre(), "TrainStarts") == []


@pytest.fixture
def with_key(public: Stand) -> Stand:
    public.machine(wandb=replace(MACHINE.wandb, credentials=True))
    return public


def test_c33_a_fresh_run_under_an_old_id_is_told_to_take_another(with_key: Stand) -> None:
    with_key.last(step=1000)
    (finding,) = of(with_key.pre("init.overwrite=true"), "WandbRunFresh")
    assert "'base'" in finding.message
    after = with_key.follow(finding.fix[0])
    assert of(after, "WandbRunFresh") == []
    assert after.subject.plan.argv[2] == "base2"


def test_c33_a_resume_keeps_the_id(with_key: Stand) -> None:
    with_key.last(step=1000)
    pre = with_key.pre("init=resume", "max_steps=2000")
    assert of(pre, "WandbRunFresh") == []
    assert pre.subject.plan.argv[2] == "base"


@pytest.mark.parametrize("words", [("logger.mode=offline",), ("logger=csv",)])
def test_c33_what_goes_nowhere_near_wandb_is_left_alone(with_key: Stand, words: tuple[str, ...]) -> None:
    with_key.last(step=1000)
    assert of(with_key.pre("init.overwrite=true", *words), "WandbRunFresh") == []


def test_without_credentials_metrics_go_to_csv_files_and_no_id_matters(public: Stand) -> None:
    public.machine(wandb=Wandb(credentials=False, source="none", mode="online"))
    public.last(step=1000)
    pre = public.pre("init.overwrite=true")
    assert of(pre, "WandbRunFresh") == []
    assert pre.subject.plan.bridge is not None
    assert "csv" in pre.subject.plan.bridge.capabilities
