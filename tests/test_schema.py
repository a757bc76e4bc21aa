"""A tree of plain values becomes typed settings, or a list of everything that is wrong with it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amt_hydra.schema import Leaf, build, convert, describe, flatten, leaves

BASE = Path("/where/i/stand")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    rate: float | None = field(metadata={"above": 0})
    name: str = field()


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    steps: int | None = field(metadata={"least": -1})
    mode: Literal["a", "b"] = field()
    devices: int | Literal["auto"] = field(metadata={"least": 1})
    on: bool = field()
    folder: Path | None = field()
    label: str = field(metadata={"folder": True})
    tags: tuple[str, ...] = field()
    env: Mapping[str, str] = field()
    means: Mapping[str, tuple[str, ...]] = field(metadata={"nested": True})
    part: Part = field()


GOOD: dict[str, Any] = {
    "steps": None,
    "mode": "a",
    "devices": "auto",
    "on": False,
    "folder": None,
    "label": "base",
    "tags": [],
    "env": {},
    "means": {},
    "part": {"rate": None, "name": ""},
}


def one(annotation: Any, value: object, **limits: Any) -> Any:
    return convert(value, Leaf("key", annotation, limits), BASE)


def test_a_tree_becomes_a_value() -> None:
    whole, problems = build(Whole, {**GOOD, "steps": 5, "part": {"rate": 1, "name": "x"}}, BASE)
    assert problems == []
    assert (whole.steps, whole.part.rate, whole.part.name) == (5, 1.0, "x")


# C15


@pytest.mark.parametrize(("given_value", "meant"), [(1e5, 100000), (3.0, 3), (0, 0), (-1, -1)])
def test_c15_a_whole_number_arrives_as_one(given_value: float, meant: int) -> None:
    result = one(int, given_value)
    assert (result, type(result)) == (meant, int)


@pytest.mark.parametrize("value", [1.5, True, False, "5", "many", math.nan, math.inf, [1], {}])
def test_c15_what_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        one(int, value)


@pytest.mark.parametrize("value", [True, "x", math.nan, math.inf, None])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="must be a number"):
        one(float, value)


@pytest.mark.parametrize("value", [1e3, True, 5, None, ["x"]])
def test_c15_text_is_never_made_of_something_else(value: object) -> None:
    with pytest.raises(ValueError, match="must be text"):
        one(str, value)


@pytest.mark.parametrize("value", [1, 0, "true", "yes", None])
def test_a_switch_is_true_or_false(value: object) -> None:
    with pytest.raises(ValueError, match="must be true or false"):
        one(bool, value)


def test_a_choice_names_what_there_is() -> None:
    with pytest.raises(ValueError, match="must be a or b"):
        one(Literal["a", "b"], "c")


def test_a_number_or_a_word() -> None:
    annotation = int | Literal["auto"]
    assert (one(annotation, 2.0), one(annotation, "auto")) == (2, "auto")
    with pytest.raises(ValueError, match="must be a whole number or auto"):
        one(annotation, "all")


def test_null_only_where_it_is_allowed() -> None:
    assert one(int | None, None) is None
    with pytest.raises(ValueError, match="not null"):
        one(int, None)


def test_limits_name_the_limit() -> None:
    with pytest.raises(ValueError, match="must be 1 or more"):
        one(int, 0, least=1)
    with pytest.raises(ValueError, match="must be above 0"):
        one(float, 0, above=0)
    with pytest.raises(ValueError, match="must be 9 or less"):
        one(int, 10, most=9)
    assert one(int, 9, most=9) == 9


def test_a_value_that_was_never_given() -> None:
    with pytest.raises(ValueError, match="must be given"):
        one(str, "???")


# Paths: C04


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a/b.ckpt", "/where/i/stand/a/b.ckpt"),
        ("/a/b.ckpt", "/a/b.ckpt"),
        ("epoch=3,step=1 (é).ckpt", "/where/i/stand/epoch=3,step=1 (é).ckpt"),
        ("~/x", "/my/home/x"),
        ("~nobody-is-called-so/x", "/where/i/stand/~nobody-is-called-so/x"),
        ("a~b", "/where/i/stand/a~b"),
    ],
)
def test_c04_a_relative_path_is_meant_from_where_the_user_stands(
    monkeypatch: pytest.MonkeyPatch, text: str, path: str
) -> None:
    monkeypatch.setenv("HOME", "/my/home")
    assert one(Path, text) == Path(path)


@pytest.mark.parametrize("value", ["", "a\0b", 3, True, ["a"]])
def test_what_is_no_path_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="must be a path"):
        one(Path, value)


# Names of folders


@pytest.mark.parametrize("name", ["base", "1e3", "楽譜", "a b", "a=b,c", "v1.2", "x" * 200])
def test_plain_folder_names(name: str) -> None:
    assert one(str, name, folder=True) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        ".",
        "..",
        ".hidden",
        "-x",
        "--help",
        "a/b",
        "/a",
        "a\\b",
        "a@b",
        "{x}",
        "a\nb",
        "a\0b",
        "x" * 300,
        "楽" * 67,
    ],
)
def test_names_that_are_no_plain_folder(name: str) -> None:
    with pytest.raises(ValueError, match=r"plain folder name|at most 200 bytes"):
        one(str, name, folder=True)


# Maps and lists


def test_names_to_text_keep_whole_numbers_as_they_are_written() -> None:
    assert one(Mapping[str, str], {"A": "x", "N": 3}) == {"A": "x", "N": "3"}


@pytest.mark.parametrize("value", [True, 1e5, None, ["x"], {"B": "x"}])
def test_values_whose_spelling_is_lost_are_to_be_quoted(value: object) -> None:
    with pytest.raises(ValueError, match="value of A in quotes"):
        one(Mapping[str, str], {"A": value})


def test_a_nested_map_is_dotted() -> None:
    annotation, meta = Mapping[str, tuple[str, ...]], {"nested": True}
    tree = {"seed": "flag:seed", "optimizer": {"lr": ["flag:lr", "flag:rate"]}}
    assert convert(tree, Leaf("means", annotation, meta), BASE) == {
        "seed": ("flag:seed",),
        "optimizer.lr": ("flag:lr", "flag:rate"),
    }


@pytest.mark.parametrize("value", [1, ["x", 1], {"x": 1}, None])
def test_a_list_of_text(value: object) -> None:
    with pytest.raises(ValueError, match="must be a list of text"):
        one(tuple[str, ...], value)


# Trees


def test_every_fault_is_found_in_one_pass() -> None:
    tree = {**GOOD, "steps": 1.5, "mode": "c", "on": 1, "label": "..", "stesp": 3, "part": {"rate": 0, "naem": "x"}}
    _, problems = build(Whole, tree, BASE)
    assert [p.key for p in problems] == ["steps", "mode", "on", "label", "part.rate", "part.name", "part.naem", "stesp"]


def test_a_dotted_key_in_a_file_is_told_how_to_nest() -> None:
    _, problems = build(Whole, {**GOOD, "part.rate": 0.5}, BASE)
    assert [(p.key, "part: {rate: …}" in p.message) for p in problems] == [("part.rate", True)]


@pytest.mark.parametrize("value", [5, None, "x", []])
def test_a_group_of_settings_is_no_value(value: object) -> None:
    _, problems = build(Whole, {**GOOD, "part": value}, BASE)
    assert [(p.key, "rate, name" in p.message) for p in problems] == [("part", True)]


def test_flatten_dots_the_leaves() -> None:
    assert dict(flatten({"a": 1, "b": {"c": {"d": 2}, "e": {}}})) == {"a": 1, "b.c.d": 2}


def test_leaves_are_the_keys() -> None:
    assert list(leaves(Whole))[-2:] == ["part.rate", "part.name"]
    assert describe(leaves(Whole)["devices"].annotation) == "a whole number or auto"


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.text(), max_size=2),
    st.dictionaries(st.text(), st.text(), max_size=2),
)  # fmt: skip


@given(st.fixed_dictionaries({}, optional={**dict.fromkeys([*GOOD, "other"], VALUES)}))
def test_any_tree_is_typed_or_explained(changes: dict[str, Any]) -> None:
    whole, problems = build(Whole, {**GOOD, **changes}, BASE)
    assert {p.key.partition(".")[0] for p in problems} <= changes.keys()
    assert bool(problems) or type(whole) is Whole


@given(st.integers(-(10**15), 10**15))
def test_a_whole_number_survives_being_a_float(number: int) -> None:
    assert one(int, float(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not x.is_integer()))
def test_a_fraction_is_never_cut(number: float) -> None:
    with pytest.raises(ValueError, match="must be a whole number"):
        one(int, number)
