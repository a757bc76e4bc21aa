"""Presets, samples of an epoch, the loaders' cache: each number below is worked out by hand from the fixture.

12 and 24 are the fixture's batch.sub and batch.local; its loaders cache max(4, max_k + 1) files per clip of a
sub-batch.
"""

from pathlib import Path

import pytest
from family_repos import with_model
from repos import line_of
from stand import Stand, of

pytest_plugins = ["desks"]


def presets(stand: Stand) -> Path:
    return stand.repository / "amt/src/config/data_presets.py"


# PresetTrains


@pytest.mark.parametrize("name", ["musicnet", "guitarset", "two", "two_one_validated"])
def test_a_preset_whose_parts_are_all_there_trains(model: Stand, name: str) -> None:
    """One entry of eval_vocab is enough for two presets of which one is validated: only that one reads it."""
    assert of(model.pre(f"data_presets={name}"), "PresetTrains") == []


@pytest.mark.parametrize(
    ("name", "severity", "says"),
    [
        ("two_misspelt", "error", "names guitarsett, which is not there"),
        ("two_nested", "error", "names two, which is a preset of several itself"),
        ("two_untrained", "error", "names maps_test"),
        ("maps_test", "error", "has no train split"),
        ("two_short", "error", "has 1 entries in eval_vocab for 2 presets with a validation split"),
        ("maps_all", "warning", "has no validation split"),
        ("two_unvalidated", "warning", "has no validation split"),
    ],
)
def test_a_preset_that_dies_late_or_is_never_validated_is_told_with_its_line(
    model: Stand, name: str, severity: str, says: str
) -> None:
    (finding,) = of(model.pre(f"data_presets={name}"), "PresetTrains")
    assert finding.severity == severity
    line = line_of(presets(model), f'"{name}":')
    assert finding.message.startswith(f"data_presets={name} ({line}) ")
    assert says in finding.message
    followed = model.follow(finding.fix[-1])
    assert of(followed, "PresetTrains") == []
    assert of(followed, "PresetExists") == []


def test_a_missing_part_gets_the_nearest_single_preset(model: Stand) -> None:
    (finding,) = of(model.pre("data_presets=two_misspelt"), "PresetTrains")
    assert finding.fix[0] == f"write guitarset for guitarsett at {line_of(presets(model), 'two_misspelt')}"


def test_a_part_without_a_train_split_is_named_with_its_own_line(model: Stand) -> None:
    (finding,) = of(model.pre("data_presets=two_untrained"), "PresetTrains")
    assert f"names maps_test ({line_of(presets(model), 'maps_test')}), which has no train split" in finding.message


def test_the_repositorys_own_preset_is_looked_at_where_none_is_given(model: Stand) -> None:
    with_model(model.repository, {'default="musicnet"': 'default="two_short"'})
    (finding,) = of(model.pre(), "PresetTrains")
    assert finding.message.startswith("data_presets=two_short ")


def test_a_vocabulary_given_by_a_flag_is_not_counted(model: Stand) -> None:
    assert of(model.pre("data_presets=two_short", "extra.flags.eval_program_vocab=gm"), "PresetTrains") == []


def test_a_preset_that_is_not_there_is_reported_once(model: Stand) -> None:
    pre = model.pre("data_presets=nowhere")
    assert [f.id for f in pre.stopped] == ["PresetExists"]


def test_the_bundled_presets_have_nothing_to_say(bundled: Stand) -> None:
    assert of(bundled.pre(), "PresetTrains") == []


# SamplesPerEpoch


@pytest.mark.parametrize(
    ("words", "enough"),
    [
        ((), 1152),  # 4 x 12 files; 48 batches of 24
        (("extra.flags.xaug_max_k=5",), 1728),  # 6 x 12 files; 72 batches of 24
        (("extra.flags.xaug_max_k=0",), 1152),
        (("batch.sub=1", "batch.local=2"), 8),  # 4 files; 4 batches of 2
        (("ddp.devices=2", "ddp.accelerator=cpu"), 2280),  # 95 batches of 24: one rank has 48 of them, the other 47 + 1
    ],
)
def test_the_loaders_fill_their_cache_from_the_samples_of_an_epoch(
    model: Stand, words: tuple[str, ...], enough: int
) -> None:
    assert of(model.pre(*words, f"extra.flags.train_num_samples_per_epoch={enough}"), "SamplesPerEpoch") == []
    pre = model.pre(*words, f"extra.flags.train_num_samples_per_epoch={enough - 1}")
    (finding,) = of(pre, "SamplesPerEpoch")
    assert finding.severity == "warning"
    assert f"At least {enough} are needed" in finding.message
    followed = model.follow(finding.fix[0])
    assert of(followed, "SamplesPerEpoch") == []
    assert followed.subject.settings.extra.flags["train_num_samples_per_epoch"] in (enough, str(enough))


def test_a_larger_batch_needs_more_samples_than_the_repositorys_own(model: Stand) -> None:
    """90000 are 37 batches of 2400; the cache has 4 x 1200 files."""
    assert of(model.pre(), "SamplesPerEpoch") == []
    (finding,) = of(model.pre("batch.sub=1200", "batch.local=2400"), "SamplesPerEpoch")
    assert "90000 samples per epoch are 37 batches" in finding.message
    assert "a cache of 4800 files" in finding.message
    assert of(model.follow(finding.fix[0]), "SamplesPerEpoch") == []


def test_the_augmentation_in_config_counts_too(model: Stand) -> None:
    with_model(model.repository, {'{"max_k": 3}': '{"max_k": 4}'})
    (finding,) = of(model.pre("extra.flags.train_num_samples_per_epoch=1439"), "SamplesPerEpoch")
    assert "At least 1440 are needed" in finding.message  # 5 x 12 x 24


def test_a_flag_written_with_dashes_is_replaced_and_not_doubled(model: Stand) -> None:
    (finding,) = of(model.pre("extra.flags.train-num-samples-per-epoch=1e3"), "SamplesPerEpoch")
    assert finding.fix[0].endswith(" extra.flags.train_num_samples_per_epoch=1152")
    assert "train-num" not in finding.fix[0]


def test_samples_that_the_data_set_decides_are_not_known(model: Stand) -> None:
    assert of(model.pre("extra.flags.train_num_samples_per_epoch=0"), "SamplesPerEpoch") == []


def test_a_repository_without_that_flag_has_no_such_cache(stand: Stand) -> None:
    assert of(stand.pre("batch.sub=1200", "batch.local=2400"), "SamplesPerEpoch") == []


# FirstEpochEnds


@pytest.mark.parametrize(
    ("words", "reached"),
    [
        ((), 3750),  # 90000 / 24
        (("extra.flags.train_num_samples_per_epoch=1152",), 48),
        (("ddp.devices=2", "ddp.accelerator=cpu"), 1875),
    ],
)
def test_a_run_shorter_than_an_epoch_is_never_validated(model: Stand, words: tuple[str, ...], reached: int) -> None:
    assert of(model.pre(*words, f"max_steps={reached}"), "FirstEpochEnds") == []
    (finding,) = of(model.pre(*words, f"max_steps={reached - 1}"), "FirstEpochEnds")
    assert finding.severity == "warning"
    assert f"after {reached} batches" in finding.message
    assert f"ends after {reached - 1}:" in finding.message
    assert of(model.follow(finding.fix[0]), "FirstEpochEnds") == []


@pytest.mark.parametrize(
    ("change", "reached"), [('"accumulate_grad_batches": 4', 12), ('"check_val_every_n_epoch": 5', 240)]
)
def test_batches_added_up_and_epochs_without_validation_count(model: Stand, change: str, reached: int) -> None:
    with_model(model.repository, {'"accumulate_grad_batches": 1': change})
    words = ("extra.flags.train_num_samples_per_epoch=1152", "optimizer.warmup_steps=0")
    assert of(model.pre(*words, f"max_steps={reached}"), "FirstEpochEnds") == []
    assert len(of(model.pre(*words, f"max_steps={reached - 1}"), "FirstEpochEnds")) == 1


@pytest.mark.parametrize("words", [("max_steps=100", "val_interval=50"), ("max_steps=-1",), ()])
def test_an_interval_of_its_own_or_no_end_leaves_nothing_to_say(model: Stand, words: tuple[str, ...]) -> None:
    assert of(model.pre(*words), "FirstEpochEnds") == []


# WorkersFit


def test_each_sub_batch_has_a_loader_with_workers_of_its_own(model: Stand) -> None:
    """24 / 12 are two loaders; the fixture's four workers make eight processes on one rank."""
    model.machine(cpus=7, cpus_source="a job of seven")
    (finding,) = of(model.pre(), "WorkersFit")
    assert "makes 8 loader processes (4 x 1 ranks x 2 loaders); the job has 7 CPUs" in finding.message
    assert "=3" in finding.fix[0] or "write 3 at" in finding.fix[0]  # floor((7 - 1) / (1 x 2))
    model.machine(cpus=8)
    assert of(model.pre(), "WorkersFit") == []
