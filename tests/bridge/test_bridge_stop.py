"""A run that is asked to end: SIGTERM, from the launcher, from Slurm, or both."""

from pathlib import Path

import pytest
from bridge_runs import Trained
from trainable import lowest, write

ASKED = """\
        if self.global_step == int(os.environ.get("TOY_ASKED_AT", -1)):
            if self.trainer.global_rank == self.trainer.world_size - 1:
                for _ in range(2):
                    os.kill(os.getpid(), 15)
        return loss
"""
RANKS = ("-g", "2", "-st", "ddp_find_unused_parameters_true")


def stopped(folder: Path, version: str = "installed", **changes: str) -> Trained:
    return Trained(
        write(folder, changes={"        return loss\n": ASKED, **changes}), lowest() if version == "lowest" else {}
    )


@pytest.mark.parametrize("version", ["installed", "lowest"])
@pytest.mark.parametrize("ranks", [(), RANKS], ids=["1 rank", "2 ranks"])
def test_the_step_is_ended_and_saved_and_a_resume_goes_on(tmp_path: Path, version: str, ranks: tuple[str, ...]) -> None:
    """It comes between two validations, twice, and with two ranks to the last one alone."""
    trained = stopped(tmp_path / "logs", version)
    run = trained("a", "-it", "8", "-vit", "4", *ranks, last={}, TOY_ASKED_AT="5")
    assert run.code == 143, run.all
    for rank in range(len(ranks) // 2 or 1):
        assert run.events(rank)[-1]["event"] == "stopped"
    assert trained.saved("a")["global_step"] == 6
    resume = {"ckpt": str(trained.folder("a") / "last.ckpt"), "pickled": True}
    trained.well("a", "-it", "8", "-vit", "4", *ranks, last={}, resume=resume)
    assert trained.saved("a")["global_step"] == 8


def test_a_step_of_several_batches_is_whole(tmp_path: Path) -> None:
    trained = stopped(tmp_path / "logs")
    config = {"shared_cfg.TRAINER.accumulate_grad_batches": 2}
    run = trained("a", "-it", "8", "-vit", "4", config=config, last={}, TOY_ASKED_AT="2")
    assert run.code == 143, run.all
    assert trained.saved("a")["global_step"] == 3


def test_a_repository_that_handles_the_signal_itself_is_left_to_it(tmp_path: Path) -> None:
    own = "if __name__ == '__main__':\n    import os, signal\n    signal.signal(15, lambda *_: os._exit(9))\n    main()"
    trained = stopped(tmp_path / "logs", **{'if __name__ == "__main__":\n    main()': own})
    assert trained("a", "-it", "8", last={}, TOY_ASKED_AT="2").code == 9
