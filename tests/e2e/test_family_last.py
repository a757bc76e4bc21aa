"""last.ckpt of the public layout, by itself and with the bridge, with both packages and with the lowest Lightning."""

import pytest
from desk import Desk
from family import Family
from tensors import same
from trainable import lowest, write


@pytest.fixture(scope="module")
def family(desk: Desk) -> Family:
    return Family(desk, write(desk.folder / "fork"))


def test_c23_by_itself_it_freezes_on_a_plateau_and_with_the_bridge_it_is_current(family: Family) -> None:
    assert family.repository.by_itself("frozen", "-p", "x", "-it", "16", "-vit", "4").code == 0
    alone = family.load(family.repository.checkpoints("frozen", "x") / "last.ckpt")
    assert alone["global_step"] == 4, "one of the best was saved at the first validation only"
    bridged = family.load(family.trained("exp_id=current", "max_steps=16", "checkpoint.save_top_k=1") / "last.ckpt")
    assert bridged["global_step"] == 16


def test_c22_a_link_becomes_a_file(desk: Desk) -> None:
    family = Family(desk, write(desk.folder / "links", changes={'"save_last": True': '"save_last": "link"'}))
    assert family.repository.by_itself("linked", "-p", "x", "-it", "4", "-vit", "2").code == 0
    assert (family.repository.checkpoints("linked", "x") / "last.ckpt").is_symlink()
    last = family.trained("exp_id=real", "max_steps=4", "checkpoint.save_last=null") / "last.ckpt"
    assert last.is_file()
    assert not last.is_symlink()


def test_at_the_end_it_holds_the_last_step_and_not_the_last_validation(family: Family) -> None:
    assert family.load(family.trained("exp_id=end", "max_steps=10") / "last.ckpt")["global_step"] == 10


def test_the_state_of_the_monitor_in_it_is_that_of_the_validation(family: Family) -> None:
    callbacks = family.load(family.trained("exp_id=monitor", "max_steps=4") / "last.ckpt")["callbacks"]
    (state,) = [state for name, state in callbacks.items() if name.startswith("ModelCheckpoint")]
    assert float(state["current_score"]) == 0.5


def _resumed_and_warm(family: Family, **variables: str) -> None:
    """One run through all that is brought to Lightning: a resume, and a warm-start from it."""
    family.trained("exp_id=a", "max_steps=8", "seed=1", "checkpoint.save_top_k=1", **variables)
    folder = family.trained("exp_id=a", "max_steps=16", "seed=1", "checkpoint.save_top_k=1", "init=resume", **variables)
    last = family.load(folder / "last.ckpt")
    assert last["global_step"] == 16
    assert last["lr_schedulers"][0]["last_epoch"] == 16
    words = (
        "init=warmstart",
        f"init.ckpt={folder / 'last.ckpt'}",
        "max_steps=1",
        "val_interval=1",
        "optimizer.lr=1e-30",
    )
    warm = family.load(family.trained("exp_id=b", *words, **variables) / "last.ckpt")
    assert warm["global_step"] == 1
    assert same(warm["state_dict"], last["state_dict"])


def test_it_works_with_the_package_called_lightning_too(desk: Desk) -> None:
    _resumed_and_warm(Family(desk, write(desk.folder / "unified", "lightning.pytorch")))


@pytest.mark.parametrize("package", ["pytorch_lightning", "lightning.pytorch"])
def test_it_works_with_the_lowest_lightning(desk: Desk, package: str) -> None:
    variables = lowest()
    family = Family(desk, write(desk.folder / f"lowest {package}", package))
    _resumed_and_warm(family, **variables)
