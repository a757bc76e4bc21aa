"""Settings of a run in the hyper_parameters of its checkpoint, as upstream and others keep them."""

from dataclasses import replace
from pathlib import Path

import pytest
from repos import family, home

from amt_hydra.repository import read
from amt_hydra.repository.facts import Computed, Repository
from amt_hydra.saved import Saved, alike, judged, saved

UPSTREAM = {
    "audio_cfg": {"codec": "melspec", "n_mels": 512},
    "model_cfg": {
        "encoder_type": "perceiver-tf",
        "encoder": {"t5": {"num_latents": 1}, "perceiver-tf": {"num_latents": 24, "position_encoding_type": "rope"}},
        "d_feat": "auto",
    },
    "shared_cfg": {"BSZ": {"train_sub": 6, "train_local": 12}, "LR_SCHEDULE": {"warmup_steps": 1000}},
    "optimizer_name": "adamwscale",
    "base_lr": None,
    "task_manager": "<utils.task_manager.TaskManager>",
}
"""What save_hyperparameters() keeps of YourMT3's __init__."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return read(family(tmp_path_factory.mktemp("repository")))


def values(found: dict[str, Saved]) -> dict[str, object]:
    return {key: one.value for key, one in found.items()}


def test_a_key_of_config_py_is_found_below_the_name_of_its_dictionary(repository: Repository) -> None:
    means = {
        "model.n_mels": ("flag:n_mels", "config:audio_cfg.n_mels"),
        "model.encoder_type": ("flag:encoder_type", "config:model_cfg.encoder_type"),
        "model.num_latents": ("config:model_cfg.encoder.perceiver-tf.num_latents",),
        "optimizer.warmup_steps": ("config:shared_cfg.LR_SCHEDULE.warmup_steps",),
    }
    found = saved(UPSTREAM, means, {}, repository)
    assert values(found) == {
        "model.n_mels": 512,
        "model.encoder_type": "perceiver-tf",
        "model.num_latents": 24,
        "optimizer.warmup_steps": 1000,
    }
    assert found["model.num_latents"].path == "model_cfg.encoder.perceiver-tf.num_latents"


def test_a_name_of_the_mappings_own_comes_first(repository: Repository) -> None:
    names = {"optimizer.name": ("optimizer_name",), "optimizer.lr": ("base_lr",)}
    found = saved({**UPSTREAM, "optimizer": "sgd"}, {"optimizer.name": ("flag:optimizer",)}, names, repository)
    assert found == {"optimizer.name": Saved("adamwscale", "optimizer_name")}  # None tells nothing of base_lr


@pytest.mark.parametrize(
    ("hyper_parameters", "path"),
    [
        ({"warmup_steps": 50}, "warmup_steps"),
        ({"args": {"warmup_steps": 50}}, "args.warmup_steps"),  # a Namespace
        ({"hparams": {"warmup_steps": 50}}, "hparams.warmup_steps"),
        ({"config": {"warmup_steps": 50}}, "config.warmup_steps"),
    ],
)
def test_a_flag_is_found_by_its_dest_wherever_the_arguments_were_kept(
    repository: Repository, hyper_parameters: dict[str, object], path: str
) -> None:
    found = saved(hyper_parameters, {"optimizer.warmup_steps": ("flag:warmup_steps",)}, {}, repository)
    assert found == {"optimizer.warmup_steps": Saved(50, path)}


def test_one_of_several_values_of_a_flag(repository: Repository, tmp_path: Path) -> None:
    means = {"batch.sub": ("flag:train_batch_size[0]",), "batch.local": ("flag:train_batch_size[1]",)}
    there = read(home(tmp_path))
    assert values(saved({"train_batch_size": [6, 12]}, means, {}, there)) == {"batch.sub": 6, "batch.local": 12}
    assert saved({"train_batch_size": [6]}, means, {}, there).keys() == {"batch.sub"}


def test_a_section_of_another_type_than_the_model_is_of_tells_nothing(repository: Repository) -> None:
    means = {"model.num_latents": ("config:model_cfg.encoder.perceiver-tf.num_latents",)}
    other = {"model_cfg": {**UPSTREAM["model_cfg"], "encoder_type": "t5"}}  # type: ignore[dict-item]
    assert saved(other, means, {}, repository) == {}


def test_what_a_dead_flag_wrote_into_a_copy_is_not_what_the_run_had(repository: Repository) -> None:
    """Upstream's -bsz changes what is saved, and not what the loaders read."""
    flags = tuple(
        replace(flag, lost="sets a copy only") if flag.dest == "train_batch_size" else flag for flag in repository.flags
    )
    means = {"batch.sub": ("flag:train_batch_size[0]", "config:shared_cfg.BSZ.train_sub")}
    assert values(saved(UPSTREAM, means, {}, replace(repository, flags=()))) == {"batch.sub": 6}
    assert saved(UPSTREAM, means, {}, replace(repository, flags=flags)) == {}


@pytest.mark.parametrize(
    "value", [None, "auto", "default", "<task.TaskManager>", "…", {}, [], Computed("1 + n"), "***"]
)
def test_placeholders_cannot_be_judged(value: object) -> None:
    assert not judged(value)


@pytest.mark.parametrize("value", [0, False, 1e-3, "rope", [-2, 2], Path("/data")])
def test_values_can(value: object) -> None:
    assert judged(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1e-3, "1e-3"),
        ("0.001", 1e-3),
        (0.001, 0.001),
        ("adamw", "AdamW"),
        (32, "32"),
        (True, "true"),
        (100000, 1e5),
        ((-2, 2), [-2, 2]),
        (["-2", "2"], [-2, 2]),
        (Path("/data"), "/data"),
    ],
)
def test_another_spelling_is_no_other_value(one: object, other: object) -> None:
    assert alike(one, other)
    assert alike(other, one)


@pytest.mark.parametrize(
    ("one", "other"), [(1, 2), ("rope", "sinusoidal"), ([1, 2], [1, 2, 3]), (None, 1), ("nan", "inf")]
)
def test_another_value_is(one: object, other: object) -> None:
    assert not alike(one, other)


def test_lightning_has_two_spellings_of_a_precision() -> None:
    assert alike("32", "32-true", "precision.name")
    assert alike("bf16", "bf16-mixed", "precision.name")
    assert not alike("16", "16-true", "precision.name")
