"""Sources that cannot start, and W&B runs that would be mixed up."""

import sys
from dataclasses import replace

import pytest
from repos import family
from stand import MACHINE, Stand, errors, of

from amt_hydra.errors import AmtError
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


def test_a_file_that_does_not_parse_is_said_before_the_start(public: Stand) -> None:
    family(public.repository, changes={"import argparse\n": "import argparse\nimport loading\n"})
    broken = public.repository / "amt/src/loading.py"
    broken.write_text("class Net:\n    def load_state_dict(self:\n        pass\n")
    (error,) = [text for text in errors(public.pre()) if text.startswith("TrainStarts")]
    assert f"train.py dies at {broken}:2: it does not parse: " in error


def test_one_that_another_python_may_parse_is_a_warning(public: Stand) -> None:
    family(public.repository, changes={"import argparse\n": "import argparse\nimport loading\n"})
    (public.repository / "amt/src/loading.py").write_text("x = f'{d['load_state_dict']}'\n")  # of Python 3.12
    packages = public.repository / "venv" / "lib" / "python3.12" / "site-packages"
    packages.mkdir(parents=True)
    for name in ("torch", "pytorch_lightning"):
        (packages / f"{name}-2.6.0.dist-info").mkdir()
        (packages / f"{name}-2.6.0.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: 2.6.0\n")
    (public.repository / "venv" / "bin").mkdir()
    (public.repository / "venv" / "bin" / "python").symlink_to(sys.executable)
    (public.repository / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.1\n")
    pre = public.pre()
    assert pre.subject.versions.python is not None
    assert pre.subject.versions.python[:2] == (3, 12)
    (finding,) = of(pre, "TrainStarts")
    assert (finding.severity, "(Python 3.11)" in finding.message) == ("warning", True)


@pytest.mark.parametrize(
    "mention",
    [
        '"""The old way:\n    from loading import main\n"""\n',
        "def evaluate():\n    import loading\n",
        "try:\n    import loading\nexcept SyntaxError:\n    loading = None\n",
    ],
)
def test_one_that_is_not_imported_in_any_case_is_no_matter(public: Stand, mention: str) -> None:
    family(public.repository, changes={"import argparse\n": f"{mention}import argparse\n"})
    (public.repository / "amt/src/loading.py").write_text("def load_state_dict(:\n")
    assert of(public.pre(), "TrainStarts") == []


def test_one_that_train_py_does_not_import_is_no_matter(public: Stand) -> None:
    (public.repository / "amt/src/loading.py").write_text("def load_state_dict(:\n")
    assert of(public.pre(), "TrainStarts") == []


def test_a_config_py_that_does_not_parse_is_named_where_runs_cannot_be_found(public: Stand) -> None:
    config = public.repository / "amt/src/config/config.py"
    config.write_text(config.read_text() + "def (\n")
    with pytest.raises(AmtError) as caught:
        public.pre()
    line = len(config.read_text().splitlines())
    assert f"could not be read: {config}:{line} does not parse" in caught.value.message
    assert "mend that first" in caught.value.fix[0]


def test_a_train_py_that_fits_nothing_is_wondered_at(stand: Stand) -> None:
    train = stand.repository / "src" / "train.py"
    train.write_text(train.read_text().replace("trainer.fit(", "print("))
    (finding,) = of(stand.pre(), "TrainStarts")
    assert finding.severity == "warning"
    assert "calls .fit(…)" in finding.message
    train.write_text(train.read_text() + "start = trainer.fit\nstart(model)\n")
    assert of(stand.pre(), "TrainStarts") == []
