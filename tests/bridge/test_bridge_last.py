"""last.ckpt with the bridge, and both packages in all spellings, on the installed and on the lowest Lightning."""

import csv
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from bridge_runs import Trained
from tensors import same
from trainable import lowest, write


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("last")


@pytest.fixture(scope="module")
def linking(base: Path) -> Trained:
    """Asks for a link, by a ModelCheckpoint that the Trainer gets to see in fit() only."""
    more = """\
    def configure_callbacks(self):
        return pl.callbacks.ModelCheckpoint(
            monitor="validation/macro_onset_f", mode="max", filename="best-{step}", save_last="link"
        )

    def forward("""
    return Trained(write(base / "linking", changes={"    def forward(": more}))


@pytest.fixture(scope="module")
def linked(linking: Trained) -> Path:
    linking.well("a", "-it", "6", "-vit", "4", last={})
    return linking.folder("a")


def test_it_is_a_real_file_of_the_last_step(linking: Trained, linked: Path) -> None:
    assert not (linked / "last.ckpt").is_symlink()
    assert linking.saved("a")["global_step"] == 6, "the last validation was at step 4"


def test_nothing_but_it_and_the_best_is_left(linked: Path) -> None:
    names = {path.name for path in linked.iterdir()}
    assert names == {"last.ckpt", "best-step=4.ckpt"}


def test_it_knows_the_best_ones_of_the_last_validation(linking: Trained, linked: Path) -> None:
    callbacks = linking.saved("a")["callbacks"]
    (state,) = [state for name, state in callbacks.items() if "macro_onset_f" in name]
    assert [Path(path).name for path in state["best_k_models"]] == ["best-step=4.ckpt"]


def test_it_knows_the_best_ones_of_an_epochs_end_at_the_same_step(base: Path) -> None:
    """ModelCheckpoint saves at the epoch's end, when last.ckpt has been written at the validation before it."""
    changes = {
        '"mode": "max",\n        "save_top_k"': '"mode": "max", "save_on_train_epoch_end": True,\n        "save_top_k"'
    }
    trained = Trained(write(base / "epochs", changes=changes))
    trained.well("a", "-it", "4", last={})
    saved = trained.saved("a")
    (state,) = [state for name, state in saved["callbacks"].items() if "macro_onset_f" in name]
    (best,) = [path for path in trained.folder("a").iterdir() if path.name != "last.ckpt"]
    assert saved["global_step"] == 4
    assert [Path(path).name for path in state["best_k_models"]] == [best.name]


def test_train_py_still_finds_its_own_checkpoint_callback(base: Path) -> None:
    more = "if __name__ == '__main__':\n    main()\n    print('kept', trainer.checkpoint_callback.best_model_path)"
    trained = Trained(write(base / "asks", changes={'if __name__ == "__main__":\n    main()': more}))
    run = trained.well("a", "-it", "4", last={})
    assert "kept ../logs/x/a/checkpoints/epoch=0-step=4.ckpt" in run.out


def test_a_link_is_replaced_and_not_written_through(linking: Trained, linked: Path) -> None:
    folder = linking.folder("b")
    folder.mkdir(parents=True)
    shutil.copy(linked / "best-step=4.ckpt", folder / "best.ckpt")
    (folder / "last.ckpt").symlink_to("best.ckpt")
    resume = {"ckpt": str(folder / "last.ckpt"), "pickled": True}
    linking.well("b", "-it", "5", "-vit", "4", last={}, resume=resume)
    assert not (folder / "last.ckpt").is_symlink()
    assert linking.saved("b")["global_step"] == 5
    assert linking.saved("b", "best.ckpt")["global_step"] == 4
    assert not list(folder.glob("last-v*"))


def test_another_folder_than_the_plans_is_refused_with_both(base: Path) -> None:
    trained = Trained(write(base / "elsewhere"))
    run = trained("a", "-it", "4", last={}, folder=base / "planned")
    assert run.code == 78
    assert str(trained.folder("a")) in run.err
    assert str(base / "planned") in run.err
    assert not list(base.joinpath("elsewhere").rglob("*.ckpt"))


def test_without_a_model_checkpoint_it_goes_where_the_plan_says(base: Path) -> None:
    trained = Trained(write(base / "none", changes={'ModelCheckpoint(**shared_cfg["CHECKPOINT"]), ': ""}))
    trained.repository.source.joinpath("model", "init_train.py").write_text(
        trained.repository.source.joinpath("model", "init_train.py")
        .read_text()
        .replace("enable_progress_bar=False", "enable_checkpointing=False, enable_progress_bar=False")
    )
    trained.well("a", "-it", "2", "-vit", "2", last={})
    assert [path.name for path in trained.folder("a").iterdir()] == ["last.ckpt"]


SPELLINGS = {
    "pytorch_lightning": "import pytorch_lightning as pl",
    "from": "import types\nfrom pytorch_lightning import Trainer\npl = types.SimpleNamespace(Trainer=Trainer)",
    "lightning.pytorch": "import lightning.pytorch as pl",
    "L": "import lightning as pl",
}


def spelled(base: Path, spelling: str, version: str) -> Trained:
    """A repository that imports Trainer so, with the installed or the lowest Lightning."""
    variables = lowest() if version == "lowest" else {}
    package = "lightning.pytorch" if spelling in ("lightning.pytorch", "L") else "pytorch_lightning"
    repository = write(base / f"{spelling} {version}", package)
    file = repository.source / "model" / "init_train.py"
    file.write_text(file.read_text().replace(f"import {package} as pl", SPELLINGS[spelling]))
    return Trained(repository, variables)


ALL: dict[str, Any] = {
    "config": {"shared_cfg.LR_SCHEDULE.warmup_steps": 2},
    "last": {},
    "seed": {"seed": 1},
    "grad_finite": {},
    "AMT_DEBUG_GRAD_FINITE": "1",
}


@pytest.mark.parametrize("version", ["installed", "lowest"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_it_works_in_every_spelling_on_both_versions(base: Path, version: str, spelling: str) -> None:
    trained = spelled(base, spelling, version)
    state = {"head.bias": torch.tensor([3.0, 4.0])}
    torch.save(state, base / "bias.ckpt")
    warmstart = {"ckpt": str(base / "bias.ckpt"), "min_coverage": 0.01, "pickled": False}
    run = trained.well("a", "-it", "3", "-vit", "2", "-lr", "1e-30", warmstart=warmstart, **ALL)
    saved = trained.saved("a")
    assert (saved["global_step"], saved["lr_schedulers"][0]["total_iters"]) == (3, 2)
    assert same(saved["state_dict"]["head.bias"], state["head.bias"])
    assert {"csv", "last", "warmstart", "seed", "grad_finite", *ALL["config"]} == set(run.patched())


@pytest.mark.parametrize("package", ["pytorch_lightning", "lightning.pytorch"])
def test_a_resume_works_on_the_lowest(base: Path, package: str) -> None:
    trained = spelled(base / "resumed", package, "lowest")
    trained.well("a", "-it", "4", "-vit", "2", **ALL)
    resume = {"ckpt": str(trained.folder("a") / "last.ckpt"), "pickled": True}
    trained.well("a", "-it", "6", "-vit", "2", resume=resume, **ALL)
    saved = trained.saved("a")
    assert saved["global_step"] == saved["lr_schedulers"][0]["last_epoch"] == 6
    assert len(list(trained.folder("a").glob("last*"))) == 1
    with (trained.folder("a").parent / "metrics.csv").open(newline="") as handle:
        assert {row["step"] for row in csv.DictReader(handle)} >= {"1", "3", "5"}


def test_who_goes_through_the_checkpoint_callbacks_finds_nothing_in_it(base: Path) -> None:
    changes = {
        "if __name__ ==": "def report():\n    for one in trainer.checkpoint_callbacks:\n"
        "        print('kept', one.best_model_path, one.best_model_score, one.best_k_models, one.last_model_path)\n"
        "\n\nif __name__ ==",
        "    main()": "    main()\n    report()",
    }
    run = Trained(write(base / "asked", changes=changes)).well("a", "-it", "4", "-vit", "2", last={})
    assert "kept  None {} \n" in run.out
