"""From the command line of a sweep to Hydra's grammar, and from a point's overrides back to what a user would type."""

import pytest
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import example, given
from hypothesis import strategies as st

from amt_hydra.conf_path import shipped_groups
from amt_hydra.errors import AmtError
from amt_hydra.overrides import prepare
from amt_hydra.sweep.words import typed


def points(*words: str) -> list[tuple[str, ...]]:
    """The points that Hydra's own sweeper makes of a command line."""
    parsed = OverridesParser.create().parse_overrides(prepare(words, shipped_groups(), sweep=True))
    (batch,) = BasicSweeper.split_arguments(parsed, None)
    return [typed(point) for point in batch]


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("seed=1,2", ["1", "2"]),
        ("precision=bf16,fp32", ["bf16", "fp32"]),
        ("precision.name=bf16-mixed,32", ["bf16-mixed", "32"]),
        ("exp_id=a,1e3", ["a", "1e3"]),
        ("data_presets=guitarset,maestro", ["guitarset", "maestro"]),
        ("extra.flags.n=007,1e5", ["007", "1e5"]),
        ("extra.flags.n=[1,2],[3,4]", ["[1,2]", "[3,4]"]),
        ("extra.config.a.b=1,2", ["1", "2"]),
        ("init.ckpt=choice(/a.ckpt,/b.ckpt)", ["/a.ckpt", "/b.ckpt"]),
        ("init.ckpt=choice('/a=1.ckpt','/日.ckpt')", ["/a=1.ckpt", "/日.ckpt"]),
        ("exp_id=日本,語", ["日本", "語"]),
        ("exp_id=\"a b\",'c'", ["a b", "c"]),
        ("exp_id=a, b", ["a", "b"]),
        ("exp_id=sort(b,a)", ["a", "b"]),
        ("seed=range(1,4)", ["1", "2", "3"]),
        # One point each: C14, a comma in a path turned one run into a sweep.
        ("init.ckpt=/runs/a,b/last.ckpt", ["/runs/a,b/last.ckpt"]),
        ("data.home=a,b", ["a,b"]),
        ("slurm.partition=a,b", ["a,b"]),
        ("init.ckpt=/epoch=3,step=[1].ckpt", ["/epoch=3,step=[1].ckpt"]),
        ("extra.flags.n=[1,2]", ["[1,2]"]),
        ("extra.flags.n='a,b'", ["a,b"]),
        ("extra.env.X=a,b", ["a,b"]),
        ("checks.ignore.DiskSpace=purged, nightly", ["purged, nightly"]),
    ],
)
def test_c14_what_sweeps_and_what_does_not(word: str, values: list[str]) -> None:
    key = word.partition("=")[0]
    assert points(word) == [(f"{key}={value}",) for value in values]


def test_a_list_that_cannot_be_read_is_no_name() -> None:
    with pytest.raises(AmtError, match="cannot be read as a list"):
        points("exp_id=choice(a,b")


@pytest.mark.parametrize("word", ["extra.flags.x=1,{token:abc}", "extra.flags.x=choice({token:abc},b)"])
def test_a_secret_within_one_of_several_values(word: str) -> None:
    with pytest.raises(AmtError, match="looks like a secret"):
        points(word)


def test_all_combinations_in_the_order_of_the_command_line() -> None:
    assert points("seed=1,2", "optimizer.lr=1,3") == [
        ("seed=1", "optimizer.lr=1"),
        ("seed=1", "optimizer.lr=3"),
        ("seed=2", "optimizer.lr=1"),
        ("seed=2", "optimizer.lr=3"),
    ]


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1))
@example("${oc.env:HOME}")
@example(r"\\${a}\'")
@example("a'b\"c\\")
@example("null")
def test_a_path_arrives_as_it_was_typed(text: str) -> None:
    assert points(f"init.ckpt=/{text}") == [(f"init.ckpt=/{text}",)]


def test_hydras_own_settings_are_no_settings_of_a_point() -> None:
    assert points("hydra/launcher=local", "hydra.sweeper.params={}", "seed=1,2") == [("seed=1",), ("seed=2",)]
