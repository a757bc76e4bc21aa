"""What a run starts from: a true resume, a warm-start, the repository's own load; and which fit() is meant."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from bridge_runs import Trained
from tensors import same
from trainable import write

FIT = 'trainer.fit(model, ckpt_path=dir_info["last_ckpt_path"], datamodule=Clips())'
STARTS = 'if dir_info["last_ckpt_path"] is not None:'


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("it's a desk, 音=x")


@pytest.fixture(scope="module")
def trained(base: Path) -> Trained:
    return Trained(write(base / 'a "fork" [1]'))


@pytest.fixture(scope="module")
def whole(trained: Trained) -> Path:
    trained.well("whole", "-it", "8", "-vit", "4", last={}, seed={"seed": 1})
    return trained.folder("whole") / "last.ckpt"


@pytest.fixture(scope="module")
def stopped(trained: Trained) -> Any:
    """4 steps, and 4 more by a resume."""
    trained.well("stopped", "-it", "4", "-vit", "4", last={}, seed={"seed": 1})
    resume = {"ckpt": str(trained.folder("stopped") / "last.ckpt"), "pickled": True}
    return trained.well("stopped", "-it", "8", "-vit", "4", last={}, seed={"seed": 1}, resume=resume)


def weights(folder: Path, state: dict[str, Any]) -> str:
    """A file of tensors only, without a "state_dict" around them."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(state, folder / "weights.ckpt")
    return str(folder / "weights.ckpt")


# Resume.


def test_a_resume_equals_an_uninterrupted_run(trained: Trained, whole: Path, stopped: Any) -> None:
    one, two = trained.load(whole), trained.saved("stopped")
    assert one["global_step"] == two["global_step"] == 8
    for key in ("state_dict", "optimizer_states", "lr_schedulers"):
        assert same(one[key], two[key]), key


def test_a_resume_is_said_and_leaves_one_last_ckpt(trained: Trained, stopped: Any) -> None:
    assert "last.ckpt" in stopped.patched()["resume"]
    assert not list(trained.folder("stopped").glob("last-v*"))
    assert not list(trained.folder("stopped").glob("*.part"))


@pytest.mark.parametrize("start", ["resume", "warmstart"])
def test_a_checkpoint_that_train_py_passes_against_the_plan_is_refused(base: Path, whole: Path, start: str) -> None:
    changes = {STARTS: "if False:", FIT: 'trainer.fit(model, datamodule=Clips(), ckpt_path="other.ckpt")'}
    other = Trained(write(base / f"other {start}", changes=changes))
    run = other("a", "-it", "4", **{start: {"ckpt": str(whole), "pickled": True, "min_coverage": 0.5}})
    assert run.code == 78
    assert "train.py passes fit(ckpt_path='other.ckpt')" in run.err
    assert not list(other.repository.root.rglob("*.ckpt"))


# Warm-start.


def test_a_warm_start_takes_the_weights_and_counts_apart_what_setup_makes(trained: Trained, whole: Path) -> None:
    run = trained.well(
        "warm", "-it", "1", "-lr", "1e-30", "-ps", "-2", "2",
        warmstart={"ckpt": str(whole), "min_coverage": 0.9, "pickled": True}, last={},
    )  # fmt: skip
    (event,) = [event for event in run.events() if event["event"] == "warmstart"]
    assert (event["coverage"], event["matched"]["tensors"], event["matched"]["elements"]) == (1.0, 4, 58)
    assert (event["made_in_setup"]["tensors"], event["made_in_setup"]["elements"]) == (2, 20)
    assert event["missing"]["tensors"] == event["unexpected"]["tensors"] == event["mismatched"]["tensors"] == 0
    saved = trained.saved("warm")
    assert saved["global_step"] == 1
    assert same({k: v for k, v in saved["state_dict"].items() if "pitch" not in k}, trained.load(whole)["state_dict"])


def test_names_that_differ_by_a_prefix_are_refused_with_the_prefix(trained: Trained, whole: Path, base: Path) -> None:
    state = trained.load(whole)["state_dict"]
    ckpt = weights(base / "prefixed", {f"model.{name}": tensor for name, tensor in state.items()})
    run = trained("prefixed", "-it", "1", warmstart={"ckpt": ckpt, "min_coverage": 0.5, "pickled": False}, last={})
    assert run.code == 78
    assert "no tensor of" in run.err
    assert "4 names would, were 'model.' taken from the checkpoint's names" in run.err
    assert not list(trained.folder("prefixed").glob("*.ckpt"))


@pytest.mark.parametrize("compiled", [False, True])
def test_too_little_is_refused_with_both_numbers(base: Path, trained: Trained, whole: Path, compiled: bool) -> None:
    ckpt = weights(base / "half", {k: v for k, v in trained.load(whole)["state_dict"].items() if "body" in k})
    changes = {"    if dir_info": "    model = torch.compile(model, backend='eager')\n    if dir_info"}
    other = Trained(write(base / "compiled", changes=changes)) if compiled else trained
    run = other("half", "-it", "1", warmstart={"ckpt": ckpt, "min_coverage": 0.7, "pickled": False})
    assert run.code == 78
    assert "covers 0.6897 of the model's elements, and init.min_coverage is 0.7" in run.err
    assert "missing 2 tensors (18 elements) [head.weight, head.bias]" in run.err


def test_a_callback_that_copies_the_weights_at_the_start_copies_the_loaded_ones(
    trained: Trained, whole: Path, base: Path
) -> None:
    more = """\
class Average(pl.Callback):
    def on_fit_start(self, trainer, pl_module):
        print("copied", [round(float(v), 6) for v in pl_module.head.bias])


def initialize_trainer("""
    changes = {"def initialize_trainer(": more, "callbacks=[ModelCheckpoint": "callbacks=[Average(), ModelCheckpoint"}
    average = Trained(write(base / "average", changes=changes))
    warmstart = {"ckpt": str(whole), "min_coverage": 0.5, "pickled": True}
    run = average.well("a", "-it", "1", warmstart=warmstart)
    loaded = [round(float(v), 6) for v in trained.load(whole)["state_dict"]["head.bias"]]
    assert f"copied {loaded}" in run.out


# The repository's own load.


def test_a_repository_that_resumes_by_itself_may_load_its_own_class(base: Path, whole: Path) -> None:
    own = Trained(write(base / "own", changes={STARTS: "if False:"}))
    last = own.folder("a") / "last.ckpt"
    last.parent.mkdir(parents=True)
    shutil.copy(whole, last)
    run = own.well("a", "-it", "12", "-vit", "4", unpickle={"ckpt": str(last)}, last={})
    assert "weights_only=False" in run.patched()["unpickle"]
    assert own.saved("a")["global_step"] == 12


def test_a_file_that_it_never_loads_is_refused_before_training(base: Path, whole: Path) -> None:
    own = Trained(write(base / "never", changes={STARTS: "if False:"}))
    run = own("a", "-it", "4", unpickle={"ckpt": str(whole)}, last={})
    assert run.code == 78
    assert "the training begins, and this was never applied: unpickle" in run.err
    assert not list(own.folder("a").glob("*.ckpt"))


def test_other_files_keep_torch_s_default(trained: Trained, whole: Path) -> None:
    copy = trained.folder("default") / "last.ckpt"
    copy.parent.mkdir(parents=True)
    shutil.copy(whole, copy)
    run = trained("default", "-it", "4", unpickle={"ckpt": str(whole)})
    assert run.code == 1
    assert "Weights only load failed" in run.err


# A seed.


@pytest.mark.parametrize("home", ["pytorch_lightning", "lightning_fabric.utilities.seed", "lightning.fabric"])
def test_a_seed_outlasts_the_one_that_train_py_asks_for(base: Path, home: str) -> None:
    """By whichever path it takes the function: Lightning has it in several places."""
    own = f"from {home} import seed_everything\nseed_everything(42)\nprint('seeded', torch.initial_seed())\n"
    changes = {"trainer, wandb_logger, dir_info": own + "trainer, wandb_logger, dir_info"}
    run = Trained(write(base / f"seeded by {home}", changes=changes)).well("a", "-it", "1", seed={"seed": 7})
    assert "seeded 7" in run.out
    assert "seed: train.py asks for 42, and gets the plan's 7" in run.out


# Which training is meant.


def test_a_value_of_a_file_that_is_never_imported_is_refused_before_training(base: Path) -> None:
    changes = {"from config.config import shared_cfg as": "from config.other import shared_cfg as",
               "from config.config import shared_cfg\n": "from config.other import shared_cfg\n"}  # fmt: skip
    repository = write(base / "elsewhere", changes=changes)
    config = repository.source / "config" / "config.py"
    shutil.copy(config, config.with_name("other.py"))
    run = Trained(repository)("a", "-it", "4", config={"shared_cfg.BSZ.train_sub": 1}, last={})
    assert run.code == 78
    assert "the training begins, and this was never applied: shared_cfg.BSZ.train_sub of" in run.err
    assert not list(repository.root.rglob("*.ckpt"))


def test_a_second_fit_and_a_second_trainer_are_left_as_they_are(base: Path, whole: Path) -> None:
    more = f"""\
{FIT}
        trainer.fit(model, datamodule=Clips())
        import pytorch_lightning as pl
        second = pl.Trainer(max_steps=2, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False)
        before = model.head.bias.clone()
        second.fit(model, datamodule=Clips())
        print("steps", trainer.global_step, second.global_step)
"""
    twice = Trained(write(base / "twice", changes={STARTS: "if False:", FIT: more}))
    run = twice.well("a", "-it", "12", "-vit", "4", resume={"ckpt": str(whole), "pickled": True}, last={})
    assert "steps 12 2" in run.out
    assert run.out.count("a second Trainer: its fit() is as train.py has it") == 1
    assert twice.saved("a")["global_step"] == 12


def test_a_train_py_that_only_validates_is_refused_for_what_was_not_done(base: Path) -> None:
    only = Trained(write(base / "only", changes={FIT: "trainer.validate(model, datamodule=Clips())"}))
    run = only("a", last={}, grad_finite={}, AMT_DEBUG_GRAD_FINITE="1")
    assert run.code == 78
    assert "train.py has ended, and this was never applied: grad_finite, last" in run.err


def test_what_train_py_varies_of_its_seed_it_still_varies(base: Path) -> None:
    """A seed per epoch, or per worker of a loader; only where it starts is the plan's."""
    own = """\
from pytorch_lightning import seed_everything
import os, random
for epoch in range(3):
    seed_everything(epoch)
    print('epoch', epoch, torch.initial_seed(), os.environ['PL_SEED_WORKERS'])
class Drawn(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return random.random()
drawn = torch.utils.data.DataLoader(Drawn(), num_workers=2, worker_init_fn=lambda worker: seed_everything(50 + worker))
print('workers differ', len(set(torch.cat(list(drawn)).tolist())) == 2)
"""
    changes = {"trainer, wandb_logger, dir_info": own + "trainer, wandb_logger, dir_info"}
    run = Trained(write(base / "varied", changes=changes)).well("a", "-it", "1", seed={"seed": 7})
    assert [f"epoch {epoch} {7 + epoch} 1" in run.out for epoch in range(3)] == [True] * 3
    assert "workers differ True" in run.out
