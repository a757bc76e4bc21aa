"""Which settings make another training, and which do not."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from amt_hydra.compose import Composed
from amt_hydra.schema import leaves
from amt_hydra.settings import Settings
from amt_hydra.sweep.signature import LENGTH, content, signature

Compose = Callable[..., tuple[Settings, Composed]]

SAME = [
    ("max_steps=100", "max_steps=200"),
    ("data.num_workers=0", "data.num_workers=4"),
    ("exp_id=a", "exp_id=b"),
    ("project=a", "project=b"),
    ("logger=csv", "logger=wandb"),
    ("val_interval=10", "val_interval=20"),
    ("optimizer.lr=1e-4", "optimizer.lr=0.0001"),
    ("ddp.devices=2 batch.local=12", "ddp.devices=4 batch.local=6"),
    ("ddp.devices=1 batch.local=12 batch.accumulate=2", "ddp.devices=2 batch.local=12"),
    ("ddp.devices=8 ddp.nodes=2 batch.local=1", "ddp.devices=1 batch.local=16"),
    ("extra.flags.n=null", ""),
]
OTHER = [
    ("seed=1", "seed=2"),
    ("seed=1", ""),
    ("optimizer.lr=1e-4", "optimizer.lr=1e-3"),
    ("optimizer.warmup_steps=1", "optimizer.warmup_steps=2"),
    ("precision=bf16", "precision=fp32"),
    ("init=warmstart init.ckpt=/a.ckpt", "init=warmstart init.ckpt=/b.ckpt"),
    ("extra.flags.n=1", "extra.flags.n=2"),
    ("extra.flags.n=007", "extra.flags.n=7"),  # which of them are the same is for the repository to say
    ("extra.config.a.b=1", "extra.flags.a.b=1"),
    ("ddp.devices=2 batch.local=12", "ddp.devices=1 batch.local=12"),
    ("batch.sub=3 batch.local=12 ddp.devices=1", "batch.sub=6 batch.local=12 ddp.devices=1"),
    ("model=yptf_single", "model=yptf_multi"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_does_not_change_the_result(compose_here: Compose, one: str, other: str) -> None:
    assert signature(compose_here(*one.split())[0]) == signature(compose_here(*other.split())[0])


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_what_changes_the_result(compose_here: Compose, one: str, other: str) -> None:
    assert signature(compose_here(*one.split())[0]) != signature(compose_here(*other.split())[0])


def test_every_setting_that_changes_the_result_counts(compose_here: Compose) -> None:
    """By its kind, not by a list of names; a batch by what it makes with the ranks."""
    found: dict[str, Any] = content(compose_here("ddp.devices=1", "batch.local=4", "seed=1", "optimizer.lr=1")[0])
    kinds = {key: leaf.meta["kind"] for key, leaf in leaves(Settings).items()}
    assert {kinds[key] for key in found if key != "global batch"} == {"identity", "restored"}
    assert found["global batch"] == 4


def test_it_is_eight_hexadecimal_digits_and_the_same_for_ever(compose_here: Compose) -> None:
    """A sweep that was begun with an earlier version must find its folders."""
    mark = signature(compose_here("seed=1", "optimizer.lr=1e-4")[0])
    assert len(mark) == LENGTH
    assert int(mark, 16) >= 0
    assert len({signature(compose_here(f"seed={n}")[0]) for n in itertools.islice(itertools.count(), 5)}) == 5
