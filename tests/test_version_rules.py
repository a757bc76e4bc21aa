"""What versions mean: what was read in, or seen of, the packages themselves."""

import inspect

import pytest
from lightning.fabric.plugins.precision import precision
from lightning.pytorch.callbacks import ModelCheckpoint

from amt_hydra import version_rules as rules
from amt_hydra.versions import Versions


def having(**packages: str) -> Versions:
    return Versions((3, 10), {name.replace("_", "-"): version for name, version in packages.items()}, "made up", True)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("2.13.0+cpu", (2, 13, 0)), ("2.6.0rc1", (2, 6, 0)), ("2.1.0.post0", (2, 1, 0)), ("", None), (None, None)],
)
def test_the_numbers_of_a_version(text: str | None, numbers: tuple[int, ...] | None) -> None:
    assert rules.release(text) == numbers


def test_the_lightning_that_counts_is_the_one_that_is_imported() -> None:
    both = having(lightning="2.6.0", pytorch_lightning="2.1.0")
    assert rules.lightning(both, ("pytorch_lightning",)) == ("pytorch-lightning", (2, 1, 0))
    assert rules.lightning(both, ("lightning",)) == ("lightning", (2, 6, 0))
    assert rules.lightning(both, ()) is None
    assert rules.lightning(having(torch="2.6"), ("lightning",)) is None


def test_what_is_lacking_is_said_only_where_it_is_known() -> None:
    alone = having(lightning="2.6.0")
    assert rules.lacking(alone, ("pytorch_lightning",)) == ("torch", "pytorch-lightning")
    assert rules.lacking(Versions(None, {}, "not read"), ("lightning",)) == ()


@pytest.mark.parametrize(
    ("number", "save_last", "meaning"),
    [
        ((1, 9, 5), True, "copy"),
        ((2, 0, 9), True, "copy"),
        ((2, 1, 0), True, "link"),
        ((2, 1, 4), True, "link"),
        ((2, 2, 0), True, "copy"),
        ((2, 5, 6), True, "copy"),
        ((2, 6, 0), True, "frozen"),
        ((2, 6, 6), True, "frozen"),
        ((2, 2, 0), "link", "link"),
        ((2, 6, 6), "link", "link"),
    ],
)
def test_c22_c23_what_becomes_of_last_ckpt(number: tuple[int, ...], save_last: object, meaning: str) -> None:
    assert rules.last_is(number, save_last) == meaning


def test_c23_the_installed_lightning_saves_last_beside_a_top_k_save_only() -> None:
    source = inspect.getsource(ModelCheckpoint.on_validation_end)
    assert "if self._last_global_step_saved == trainer.global_step" in source


@pytest.mark.parametrize(("torch", "refuses"), [("2.5.1", False), ("2.6.0", True), ("2.13.0+cpu", True)])
def test_c26_torch_refuses_classes_from_2_6_on(torch: str, refuses: bool) -> None:
    assert rules.torch_refuses(having(torch=torch)) is refuses
    assert rules.torch_refuses(having()) is None


@pytest.mark.parametrize(
    ("lightning", "refuses"), [("2.3.3", True), ("2.4.0", False), ("2.5.6", False), ("2.6.0", True), ("2.6.6", True)]
)
def test_c26_fit_refuses_them_where_lightning_leaves_it_to_torch(lightning: str, refuses: bool) -> None:
    assert rules.fit_refuses(having(torch="2.6.0", lightning=lightning), ("lightning",)) is refuses
    assert rules.fit_refuses(having(torch="2.5.1", lightning=lightning), ("lightning",)) is False


def test_a_lightning_before_2_0_spells_precisions_without_their_kind() -> None:
    assert rules.old_precision((1, 9, 5), "bf16-mixed") == "bf16"
    assert rules.old_precision((1, 9, 5), "bf16") is None
    assert rules.old_precision((2, 0, 0), "bf16-mixed") is None
    newer = precision._PRECISION_INPUT_STR_ALIAS_CONVERSION
    assert dict(rules.OLD_PRECISIONS) == {new: old for old, new in newer.items()}


@pytest.mark.parametrize(
    ("number", "untested"),
    [((1, 9, 5), True), ((2, 1, 4), True), ((2, 2, 0), False), ((2, 6, 6), False), ((2, 7), True)],
)
def test_what_the_bridge_was_tried_with(number: tuple[int, ...], untested: bool) -> None:
    assert rules.untested(number) is untested


def test_a_python_that_is_too_old_for_the_bridge() -> None:
    assert rules.too_old(Versions((3, 7, 16), {}, ""))
    assert not rules.too_old(Versions((3, 8), {}, ""))
    assert not rules.too_old(Versions(None, {}, ""))
