"""How a launch is judged: by what it left in the experiment's folder, and not by what was there before."""

from pathlib import Path

import pytest
from repos import Checkpoints

from amt_hydra.errors import INTERRUPTED, TRAINED_NOTHING
from amt_hydra.identity import Identity
from amt_hydra.launch.run import Ended
from amt_hydra.outcome import Outcome, judge, seen
from amt_hydra.runstate import Place

pytest_plugins = ["desks"]

WELL = Ended(code=0, signal=None, interrupted=False, seconds=1.5)
SCRATCH = Identity("scratch", "scratch", ())
RESUME = Identity("resume", "resume", (), start_step=1000)


class Run:
    """An experiment's folder, before and after a launch."""

    def __init__(self, root: Path, checkpoint: Checkpoints) -> None:
        self.place = Place(root, root / "base", root / "base" / "checkpoints", str(root / "*" / "checkpoints"))
        self.checkpoint = checkpoint
        self.before = seen(self.place)

    def has(self, name: str, step: int, score: float | None = None) -> Path:
        return self.checkpoint(self.place.checkpoints / name, step, score)

    def logs(self, *steps: int, name: str = "metrics.csv") -> None:
        file = self.place.experiment / name
        file.parent.mkdir(parents=True, exist_ok=True)
        rows = [f"{step},{0.1}" for step in steps]
        file.write_text("\n".join(["step,train/loss", *rows, ",0.5", ""]))

    def starts(self) -> None:
        self.before = seen(self.place)

    def ends(self, identity: Identity = SCRATCH, ended: Ended = WELL, mode: str = "max") -> Outcome:
        return judge(ended, self.place, identity, mode, self.before)


@pytest.fixture
def run(tmp_path: Path, checkpoint: Checkpoints) -> Run:
    return Run(tmp_path / "runs [x]*", checkpoint)


def test_steps_trained_are_what_new_checkpoints_tell(run: Run) -> None:
    run.has("epoch=1.ckpt", 500, 0.25)
    best = run.has("epoch=2.ckpt", 800, 0.75)
    run.has("last.ckpt", 1000)
    outcome = run.ends()
    assert (outcome.code, outcome.step, outcome.best, outcome.best_checkpoint) == (0, 1000, 0.75, best)
    assert outcome.verdict.startswith("trained steps 0 to 1000")
    assert outcome.seconds == 1.5


def test_the_best_is_the_smallest_where_less_is_better(run: Run) -> None:
    best = run.has("epoch=1.ckpt", 500, 0.25)
    run.has("epoch=2.ckpt", 800, 0.75)
    assert run.ends(mode="min").best_checkpoint == best


def test_c21_ending_well_without_a_new_step_is_a_failure(run: Run) -> None:
    outcome = run.ends()
    assert outcome.code == TRAINED_NOTHING
    assert outcome.step is None
    assert "trained nothing beyond step 0" in outcome.verdict


def test_c21_a_resume_that_only_finds_what_it_started_from_trained_nothing(run: Run) -> None:
    run.has("last.ckpt", 1000)
    run.logs(900, 999, 1050)  # metrics go on after the last save, until the run was killed
    run.starts()
    outcome = run.ends(RESUME)
    assert outcome.code == TRAINED_NOTHING
    assert "beyond step 1000" in outcome.verdict


def test_c21_a_last_ckpt_written_anew_at_the_same_step_is_no_step(run: Run) -> None:
    run.has("last.ckpt", 1000)
    run.starts()
    run.has("last.ckpt", 1000)
    assert run.ends(RESUME).code == TRAINED_NOTHING


def test_checkpoints_of_an_earlier_run_are_none_of_a_scratch_runs_doing(run: Run) -> None:
    """No last.ckpt among them, so nothing was in the way."""
    run.has("epoch=9.ckpt", 9000, 0.9)
    run.starts()
    outcome = run.ends()
    assert (outcome.code, outcome.best_checkpoint) == (TRAINED_NOTHING, None)
    mine = run.has("epoch=1.ckpt", 100, 0.1)
    assert (run.ends().step, run.ends().best_checkpoint) == (100, mine)


def test_a_resume_may_keep_the_best_of_the_run_that_it_continues(run: Run) -> None:
    best = run.has("epoch=1.ckpt", 800, 0.75)
    run.has("last.ckpt", 1000)
    run.starts()
    run.has("last.ckpt", 1200)
    run.has("epoch=2.ckpt", 1200, 0.5)
    outcome = run.ends(RESUME)
    assert (outcome.code, outcome.step, outcome.best_checkpoint) == (0, 1200, best)
    assert outcome.verdict.startswith("trained steps 1000 to 1200")


def test_metrics_tell_steps_where_no_checkpoint_was_written(run: Run) -> None:
    run.logs(9, 19, 29)
    assert (run.ends().code, run.ends().step) == (0, 29)


def test_metrics_in_a_loggers_own_folders_count_too(run: Run) -> None:
    run.logs(500, name="csv/version_0/metrics.csv")
    run.starts()
    run.logs(40, name="csv/version_1/metrics.csv")
    assert run.ends().step == 40


@pytest.mark.parametrize(
    "content", [b"", b"step\n", b"step\nx\n", b"\0\xff", b"epoch,loss\n1,2\n", "step\n²\n".encode()]
)
def test_metrics_that_say_nothing_are_no_steps(run: Run, content: bytes) -> None:
    run.place.experiment.mkdir(parents=True)
    (run.place.experiment / "metrics.csv").write_bytes(content)
    assert run.ends().code == TRAINED_NOTHING


def test_a_checkpoint_cut_short_at_the_end_is_no_step_and_not_the_best(run: Run) -> None:
    run.has("epoch=1.ckpt", 100, 0.5)
    run.checkpoint.cut(run.place.checkpoints / "last.ckpt", 200)
    assert run.ends().step == 100


def test_a_last_ckpt_that_is_a_link_to_nothing_stops_no_judgement(run: Run) -> None:
    run.has("epoch=1.ckpt", 100)
    (run.place.checkpoints / "last.ckpt").symlink_to("gone.ckpt")
    assert run.ends().step == 100


@pytest.mark.parametrize(
    ("ended", "code", "words"),
    [
        (Ended(1, None, False, 1), 1, "ended with exit code 1, at step 100"),
        (Ended(78, None, False, 1), 78, "exit code 78"),
        (Ended(137, 9, False, 1), 137, "ended by signal 9, at step 100"),
        (Ended(130, 2, True, 1), INTERRUPTED, "interrupted at step 100"),
        (Ended(0, None, True, 1), INTERRUPTED, "interrupted at step 100"),
    ],
)
def test_the_exit_code_of_train_py_is_ours(run: Run, ended: Ended, code: int, words: str) -> None:
    run.has("last.ckpt", 100)
    outcome = run.ends(ended=ended)
    assert outcome.code == code
    assert words in outcome.verdict
