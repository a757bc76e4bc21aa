"""What Lightning really writes, field by field against what torch.load says."""

import logging
import math
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from amt_hydra.checkpoint import Xray, best, checkpoints, newest, xray


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train for two epochs with two optimizers, two schedulers and three ModelCheckpoints, one of them a subclass."""
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning").setLevel(logging.ERROR)
    import lightning as pl
    from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

    class Renamed(ModelCheckpoint):
        pass

    class Model(pl.LightningModule):
        def __init__(self, lr: float = 1e-3, name: str = "日本", cfg: Any = None, task: Any = None) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.automatic_optimization = False
            self.encoder = torch.nn.Linear(4, 4)
            self.decoder = torch.nn.Sequential(torch.nn.Linear(4, 1), torch.nn.BatchNorm1d(1))

        def training_step(self, batch: Any, index: int) -> None:
            for optimizer in self.optimizers():
                optimizer.zero_grad()
                self.manual_backward(self.decoder(self.encoder(batch[0])).pow(2).mean())
                optimizer.step()
            for scheduler in self.lr_schedulers():
                scheduler.step()

        def validation_step(self, batch: Any, index: int) -> None:
            self.log("validation/macro_onset_f", self.global_step / 100)
            self.log("validation/loss", 1.0 / (1 + self.global_step))

        def configure_optimizers(self) -> Any:
            first = torch.optim.AdamW(
                [{"params": self.encoder.weight, "lr": 1e-2}, {"params": self.encoder.bias, "weight_decay": 0.0}]
            )
            second = torch.optim.SGD(self.decoder.parameters(), lr=0.1, momentum=0.9)
            warmup = torch.optim.lr_scheduler.LinearLR(second)
            steady = torch.optim.lr_scheduler.LambdaLR(second, lambda step: 1.0)
            return [first, second], [
                torch.optim.lr_scheduler.CosineAnnealingLR(first, 10),
                torch.optim.lr_scheduler.SequentialLR(second, [warmup, steady], [3]),
            ]

    folder = tmp_path_factory.mktemp("run")
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 4)), batch_size=2)
    callbacks = [
        ModelCheckpoint(
            folder, "f-{step}", monitor="validation/macro_onset_f", mode="max", save_top_k=7, save_last=True
        ),
        ModelCheckpoint(folder, "l-{step}", monitor="validation/loss", save_top_k=7),
        Renamed(folder, "n-{step}", save_top_k=-1, every_n_train_steps=5),
        EarlyStopping("validation/loss"),
    ]
    trainer = pl.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        callbacks=callbacks,
        default_root_dir=folder,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    config = {"hop": 300, "bands": [1, 2.5], "nested": {"on": True, "none": None}, "pair": (1, 2)}
    trainer.fit(Model(cfg=config, task=EarlyStopping("validation/loss")), loader, loader)
    return folder


def test_every_checkpoint_of_the_run_is_whole(run: Path) -> None:
    seen = checkpoints(run)
    assert len(seen) >= 6
    assert all(x.whole and x.problem is None and x.link is None for x in seen)


def test_fields_are_what_torch_load_says(run: Path) -> None:
    for seen in checkpoints(run):
        content = torch.load(seen.path, weights_only=False)
        assert seen.size == seen.path.stat().st_size
        assert seen.global_step == content["global_step"]
        assert seen.epoch == content["epoch"]
        assert seen.lightning_version == content["pytorch-lightning_version"]
        assert [(t.name, t.shape, f"torch.{t.dtype}") for t in seen.tensors] == [
            (name, tuple(tensor.shape), str(tensor.dtype)) for name, tensor in content["state_dict"].items()
        ]
        assert [list(groups) for groups in seen.optimizer_groups] == [
            [{key: value for key, value in group.items() if key != "params"} for group in state["param_groups"]]
            for state in content["optimizer_states"]
        ]
        assert list(seen.schedulers) == content["lr_schedulers"]


def test_monitors_are_those_of_the_callbacks(run: Path) -> None:
    for seen in checkpoints(run):
        states = [s for s in torch.load(seen.path, weights_only=False)["callbacks"].values() if "best_model_path" in s]
        assert len(states) == len(seen.monitors) == 3
        for monitor, state in zip(seen.monitors, states, strict=True):
            assert monitor.monitor == state["monitor"]
            assert monitor.best_path == (state["best_model_path"] or None)
            for got, wanted in (
                (monitor.best_score, state["best_model_score"]),
                (monitor.current_score, state["current_score"]),
            ):
                assert (got is None) == (wanted is None)
                assert got is None or math.isclose(got, float(wanted), rel_tol=0, abs_tol=0)


def test_hyper_parameters_are_plain_and_objects_are_placeholders(run: Path) -> None:
    (seen, *_) = checkpoints(run)
    wanted = torch.load(seen.path, weights_only=False)["hyper_parameters"]
    task = seen.hyper_parameters["task"]
    assert task == "<lightning.pytorch.callbacks.early_stopping.EarlyStopping>"
    assert {**seen.hyper_parameters, "task": None} == {**wanted, "task": None}


def test_weights_only_verdict_is_torchs(run: Path) -> None:
    (seen, *_) = checkpoints(run)
    assert not seen.weights_only
    assert "lightning.pytorch.callbacks.early_stopping.EarlyStopping" in seen.refused_globals
    with pytest.raises(Exception, match="Unsupported global"):
        torch.load(seen.path, weights_only=True)


def test_newest_and_best(run: Path) -> None:
    seen = checkpoints(run)
    assert _path(newest(seen)) in {run / "last.ckpt", run / "l-step=16.ckpt", run / "f-step=16.ckpt"}
    assert _path(best(seen, "max")) != run / "last.ckpt"
    assert best(seen, "max").global_step == 16  # type: ignore[union-attr]
    assert best(seen, "min", "validation/loss").global_step == 16  # type: ignore[union-attr]


def test_a_last_link_is_told_from_a_copy(run: Path, tmp_path: Path) -> None:
    link = tmp_path / "last.ckpt"
    link.symlink_to(run / "last.ckpt")
    seen = xray(link)
    assert seen.whole
    assert seen.link == (run / "last.ckpt").resolve()
    assert seen.size == (run / "last.ckpt").stat().st_size


def _path(seen: Xray | None) -> Path:
    assert seen is not None
    return seen.path
