"""CSV files in place of W&B, and gradients that are not finite."""

import csv
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from bridge_runs import Trained
from trainable import write

from amt_hydra.bridge.gradients import Watch

SPEAKS = """\
    run = wandb_logger.experiment
    print("read back", run.config["BSZ"], run.config.exp_id, wandb_logger.experiment.config is run.config)
    run.config.note = "x"
    run.log({"own/number": 1.5, "own/vector": torch.ones(3), "own/text": "no"}, step=0)
    run.save("model.py")
    run.define_metric("own/number", summary="max")
    run.summary["best"] = 1
    wandb_logger.log_image(key="spec", images=[])
    wandb_logger.log_table("t", columns=[], data=[])
    print("named", run.id, run.project, Path(run.dir).is_dir())
    import copy
    copy.deepcopy(run.config)
    wandb_logger.watch(model"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    changes = {
        "    wandb_logger.watch(model": SPEAKS,
        "import argparse\n": "import argparse\nfrom pathlib import Path\n",
        "if self.global_step == int": "if self.global_step == int(os.environ.get('TOY_DIES_AT', -1)):\n"
        "            os._exit(9)\n        if self.global_step == int",
        '"num_workers": 0,': '"num_workers": 0, "multiprocessing_context": None,',
        '        "num_sanity_val_steps": 0,': '        "num_sanity_val_steps": 0, "log_every_n_steps": 1,',
    }
    return Trained(write(tmp_path_factory.mktemp("csv") / "repo", changes=changes))


def rows(trained: Trained, exp_id: str) -> list[dict[str, str]]:
    with (trained.folder(exp_id).parent / "metrics.csv").open(newline="") as handle:
        return list(csv.DictReader(handle))


def test_what_code_says_to_a_wandb_run_does_no_harm_even_without_wandb(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "wandb.py").write_text("raise ImportError('not here')\n")
    run = trained.well("speaks", "-it", "2", "-vit", "2", PYTHONPATH=str(tmp_path))
    assert "read back {'train_sub': 2, 'train_local': 4} speaks True" in run.out
    assert "named speaks x True" in run.out
    for name in ("log_image", "log_table", "watch", "save", "define_metric"):
        assert run.out.count(f"csv: {name} is W&B's and does nothing here") == 1
    assert [row["own/number"] for row in rows(trained, "speaks") if row["own/number"]] == ["1.5"]
    assert not {"own/vector", "own/text"} & set(rows(trained, "speaks")[0])


def test_rows_of_every_launch_are_kept_once_through_a_kill(trained: Trained) -> None:
    folder = trained.folder("killed")
    trained.well("killed", "-it", "4", "-vit", "2", last={})
    first = len(rows(trained, "killed"))
    resume = {"ckpt": str(folder / "last.ckpt"), "pickled": True}
    killed = trained("killed", "-it", "8", "-vit", "2", last={}, resume=resume, TOY_DIES_AT="5")
    assert killed.code == 9
    trained.well("killed", "-it", "8", "-vit", "2", last={}, resume=resume)
    kept = rows(trained, "killed")
    assert len(kept) > first
    validated = [int(row["step"]) for row in kept if row["validation/macro_onset_f"]]
    assert validated == [1, 3, 5, 7]
    assert sorted(path.name for path in folder.parent.iterdir() if path.suffix in (".csv", ".part")) == ["metrics.csv"]


def test_workers_that_are_spawned_leave_the_rows_alone(trained: Trained) -> None:
    """They import train.py, which makes its logger anew."""
    spawned = {
        "shared_cfg.DATAIO.num_workers": 1,
        "shared_cfg.DATAIO.prefetch_factor": 2,
        "shared_cfg.DATAIO.multiprocessing_context": "spawn",
    }
    trained.well("spawned", "-it", "4", "-vit", "2", config=spawned)
    validated = [row["step"] for row in rows(trained, "spawned") if row["validation/macro_onset_f"]]
    assert validated == ["1", "3"]


def test_a_run_that_fails_leaves_its_rows_too(trained: Trained) -> None:
    run = trained("fails", "-it", "6", "-vit", "2", grad_finite={}, TOY_NAN_AT="3", AMT_DEBUG_GRAD_FINITE="1")
    assert run.code == 1
    assert (
        "FloatingPointError: the gradient of head.bias is not finite at step 3 on rank 0 (1 of 4 gradients)" in run.err
    )
    assert [row["step"] for row in rows(trained, "fails") if row["validation/macro_onset_f"]] == ["1"]


def test_a_switch_that_is_off_looks_at_nothing(trained: Trained) -> None:
    trained.well("off", "-it", "4", "-vit", "4", grad_finite={}, detect_anomaly={}, TOY_NAN_AT="3")


def test_anomaly_detection_names_the_operation(trained: Trained) -> None:
    run = trained("anomaly", "-it", "4", detect_anomaly={}, TOY_NAN_AT="1", AMT_DETECT_ANOMALY="yes")
    assert run.code == 1
    assert "returned nan values" in run.err


# Gradients, by themselves.


@pytest.fixture
def model() -> torch.nn.Module:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    model(torch.ones(1, 2)).sum().backward()
    return model


def trainer(step: int, scaler: object = None) -> SimpleNamespace:
    return SimpleNamespace(global_step=step, precision_plugin=SimpleNamespace(scaler=scaler))


def test_finite_gradients_pass(model: torch.nn.Module) -> None:
    Watch(0).look(trainer(1), model)


def test_a_parameter_that_is_bad_already_is_said_to_be(model: torch.nn.Module) -> None:
    with torch.no_grad():
        model[1].weight[0, 0] = float("inf")
    model[0].weight.grad[0, 0] = float("nan")
    with pytest.raises(FloatingPointError, match=r"the parameter 1.weight is not finite at step 7 on rank 2"):
        Watch(2).look(trainer(7), model)


def test_the_20th_overflow_in_a_row_is_a_fault(model: torch.nn.Module) -> None:
    watch = Watch(0)
    model[0].bias.grad[0] = float("inf")
    for step in range(19):
        watch.look(trainer(step, scaler=object()), model)
    with pytest.raises(FloatingPointError, match=r"0.bias is not finite at step 19 on rank 0, the 20th overflow"):
        watch.look(trainer(19, scaler=object()), model)


def test_sparse_gradients_are_looked_at() -> None:
    table = torch.nn.Embedding(3, 2, sparse=True)
    (table(torch.tensor([1])) * float("nan")).sum().backward()
    with pytest.raises(FloatingPointError, match="gradient of weight"):
        Watch(0).look(trainer(0), table)
