"""What a setting becomes on train.py's command line. The oracle is argparse itself."""

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amt_hydra.errors import AmtError
from amt_hydra.mapping import channel, channels, lookup, parse
from amt_hydra.repository.facts import HOME, Computed, ConfigValue, Flag, Place, Repository, Switch
from amt_hydra.words import render

HERE = Place(Path("/repo/src/train.py"), 7)
CONFIG = Place(Path("/repo/src/config.py"), 3)


def flag(*options: str, **facts: Any) -> Flag:
    """One argparse argument as it is read from source; a name without dashes is a positional."""
    positional = not options[0].startswith("-")
    known = {
        "dest": next((o for o in options if o.startswith("--")), options[0]).lstrip("-").replace("-", "_"),
        "options": () if positional else options,
        "type": "str",
        "action": "store",
        "nargs": None,
        "default": None,
        "choices": None,
        "required": positional,
        "place": HERE,
        "reads": (HERE,),
    }
    return Flag(**{**known, **facts})


def str2bool(text: str) -> bool:
    """As the family has it."""
    if text.lower() in ("yes", "true", "t", "y", "1"):
        return True
    if text.lower() in ("no", "false", "f", "n", "0"):
        return False
    raise argparse.ArgumentTypeError(text)


TYPES: dict[str, Callable[[str], Any]] = {"str": str, "int": int, "float": float, "bool": bool, "str2bool": str2bool}


def arrives(of: Flag, value: object) -> Any:
    """What train.py's own argparse makes of the words for a value, in the midst of others."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("exp_id")
    parser.add_argument("-p", "--project", default="ymt3")
    names = of.options or (of.dest,)
    if of.action == "BooleanOptionalAction":
        parser.add_argument(*names, action=argparse.BooleanOptionalAction, default=of.default)
    elif of.action in ("store_true", "store_false", "count", "store_const"):
        parser.add_argument(*names, action=of.action, default=of.default)
    else:
        extra = {"nargs": of.nargs} if of.nargs is not None else {}
        choices = {"choices": of.choices} if of.choices else {}
        parser.add_argument(*names, action=of.action, type=TYPES[of.type], default=of.default, **extra, **choices)
    words = render(of, value)
    args = parser.parse_args(["base", *words, "-p", "melody"])
    assert (args.exp_id, args.project) == ("base", "melody")
    return getattr(args, of.dest)


# Every value arrives as it is.

TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=8).filter(
    lambda text: text != "--"
)
NUMBERS = st.floats(allow_nan=False) | st.integers(-(10**12), 10**12).map(float)


@pytest.mark.parametrize("options", [("-x", "--x-value"), ("-xval",), ("--x",), ("-x",)])
@given(value=TEXT)
def test_any_text_arrives_as_it_is(options: tuple[str, ...], value: str) -> None:
    assert arrives(flag(*options), value) == value


@given(value=st.integers(-(10**15), 10**15))
def test_any_whole_number_arrives_as_it_is(value: int) -> None:
    assert arrives(flag("-it", "--max-steps", type="int"), value) == value


@given(value=NUMBERS)
def test_any_number_arrives_as_it_is_to_the_last_bit(value: float) -> None:
    assert arrives(flag("-lr", "--base-learning-rate", type="float"), value) == value
    assert arrives(flag("-lr", type="float"), value) == value


@given(value=st.booleans())
def test_true_and_false_arrive_as_such(value: bool) -> None:
    assert arrives(flag("-sb", "--sync", type="str2bool"), value) is value
    assert arrives(flag("--sync", type="bool"), value) is value  # type=bool takes any text for true, "False" too
    assert arrives(flag("--on", action="BooleanOptionalAction", type="bool"), value) is value


@given(values=st.lists(st.integers(-99, 99), min_size=2, max_size=2))
def test_two_values_arrive_in_order(values: list[int]) -> None:
    assert arrives(flag("-bsz", "--train-batch-size", type="int", nargs=2), values) == values


@given(values=st.lists(st.integers(-9, 9), min_size=1, max_size=4))
def test_any_number_of_values_arrives(values: list[int]) -> None:
    assert arrives(flag("--range", type="int", nargs="+"), values) == values
    assert arrives(flag("--range", type="int", nargs="*"), values) == values
    assert arrives(flag("--range", type="int", action="append"), values) == values
    assert arrives(flag("--range", type="int", action="extend", nargs="+"), values) == values


def test_no_value_at_all_arrives_where_none_are_allowed() -> None:
    assert arrives(flag("--range", nargs="*"), []) == []
    with pytest.raises(ValueError, match="takes one value or more, not 0"):
        render(flag("--range", nargs="+"), [])


@pytest.mark.parametrize("value", [0, 1, 3])
def test_a_flag_that_counts_is_given_so_often(value: int) -> None:
    assert arrives(flag("-v", "--verbose", action="count", type="int", default=0), value) == value


def test_a_positional_takes_its_value_without_a_name() -> None:
    assert render(flag("exp_id"), "my run") == ["my run"]


# C15: cast to what the target takes.


@pytest.mark.parametrize("value", [1e5, 100000, "100000", "1e5", "100000.0"])
def test_c15_a_whole_number_arrives_as_one_however_it_was_written(value: object) -> None:
    assert render(flag("--max-steps", type="int"), value) == ["--max-steps", "100000"]


def test_digits_are_read_to_the_last() -> None:
    assert render(flag("--seed", type="int"), "9007199254740993") == ["--seed", "9007199254740993"]


@pytest.mark.parametrize("value", [1.5, "1.5", "1e999", "x", "", True, math.inf, -math.inf, math.nan, "²", "--5", None])
def test_what_is_no_whole_number_is_refused_in_words(value: object) -> None:
    with pytest.raises(ValueError, match=r"takes a whole number|has no value"):
        render(flag("--max-steps", type="int"), value)


@pytest.mark.parametrize("value", ["x", "", False, [1.0, 2.0]])
def test_what_is_no_number_is_refused_in_words(value: object) -> None:
    with pytest.raises(ValueError, match=r"takes a number|takes one value"):
        render(flag("-lr", type="float"), value)


@pytest.mark.parametrize("value", [0, 1, "false", "no"])
def test_text_for_type_bool_is_refused_since_argparse_would_take_it_for_true(value: object) -> None:
    with pytest.raises(ValueError, match="takes true or false"):
        render(flag("--sync", type="bool"), value)


def test_a_map_or_a_list_within_a_list_is_no_value() -> None:
    for value in ({"a": 1}, [[1, 2], 3]):
        with pytest.raises(ValueError, match="takes single values"):
            render(flag("--x", nargs="*"), value)


def test_what_the_source_computes_cannot_be_repeated_on_a_command_line() -> None:
    with pytest.raises(ValueError, match="has no value that can be written"):
        render(flag("--x"), Computed("2 * n"))


@pytest.mark.parametrize(("nargs", "value"), [(2, [1]), (2, 1), (2, [1, 2, 3]), (None, [1, 2]), ("?", [1, 2])])
def test_the_wrong_count_of_values_is_refused(nargs: Any, value: object) -> None:
    with pytest.raises(ValueError, match=r"takes (2 values|one value), not \d"):
        render(flag("--x", type="int", nargs=nargs), value)


# Choices.


def test_a_choice_is_spelt_as_the_repository_does() -> None:
    """This family compares names in lower case; argparse does not."""
    of = flag("-o", "--optimizer", choices=("adamw", "AdamWScale"))
    assert arrives(of, "AdamW") == "adamw"
    assert arrives(of, "adamwscale") == "AdamWScale"


def test_what_is_no_choice_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="takes one of adamw, sgd"):
        render(flag("--optimizer", choices=("adamw", "sgd")), "lion")


def test_a_choice_of_two_that_differ_in_case_only_has_to_be_spelt_out() -> None:
    with pytest.raises(ValueError, match="takes one of a, A"):
        render(flag("--x", choices=("a", "A")), "á")
    assert arrives(flag("--x", choices=("a", "A")), "A") == "A"


@pytest.mark.parametrize(
    ("type_", "choices", "value"), [("int", (1, 2), 2), ("float", (1, 0.5), 1), ("float", (0.5,), 0.5)]
)
def test_choices_may_be_numbers(type_: str, choices: tuple[Any, ...], value: float) -> None:
    assert arrives(flag("--x", type=type_, choices=choices), value) == value


# Dashes.


@pytest.mark.parametrize("value", ["-x", "--project", "-1e-05", "-", "---", "-p=3", "-a b"])
@pytest.mark.parametrize("options", [("-x", "--x-value"), ("-xv",)])
def test_a_value_that_looks_like_an_option_is_still_a_value(options: tuple[str, ...], value: str) -> None:
    assert arrives(flag(*options), value) == value


def test_two_dashes_alone_are_refused_since_argparse_drops_them() -> None:
    for options in (("--x",), ("-x",), ("x",)):
        with pytest.raises(ValueError, match="argparse drops it"):
            render(flag(*options), "--")


def test_a_negative_number_needs_no_equals_sign() -> None:
    assert render(flag("-ps", "--pitch-shift-range", type="int", nargs=2), [-2, 2]) == [
        "--pitch-shift-range",
        "-2",
        "2",
    ]
    assert arrives(flag("-it", "--max-steps", type="int"), -1) == -1


def test_a_dash_among_several_values_or_in_a_positional_is_refused() -> None:
    with pytest.raises(ValueError, match="'-b' would be taken for an option"):
        render(flag("--x", nargs=2), ["a", "-b"])
    with pytest.raises(ValueError, match="'-b' would be taken for an option"):
        render(flag("name"), "-b")


# Switches.


@pytest.mark.parametrize(("action", "default"), [("store_true", False), ("store_false", True)])
def test_a_switch_is_given_or_left_out(action: str, default: bool) -> None:
    of = flag("--x", action=action, default=default, type="bool")
    assert arrives(of, True) is True
    assert arrives(of, False) is False
    assert len(render(of, True)) + len(render(of, False)) == 1


@pytest.mark.parametrize(
    ("action", "default", "value", "message"),
    [("store_true", True, False, "only be switched on"), ("store_false", False, True, "only be switched off")],
)
def test_a_switch_that_only_goes_one_way_says_so(action: str, default: bool, value: bool, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        render(flag("--x", action=action, default=default), value)


def test_a_boolean_action_with_a_short_name_only_has_no_no() -> None:
    of = flag("-x", action="BooleanOptionalAction")
    assert arrives(of, True) is True
    with pytest.raises(ValueError, match="only be switched on"):
        render(of, False)


@pytest.mark.parametrize("value", ["true", 1, None])
def test_a_switch_takes_true_or_false_only(value: object) -> None:
    with pytest.raises(ValueError, match="takes true or false"):
        render(flag("--x", action="store_true", default=False), value)


@pytest.mark.parametrize("facts", [{"action": "version"}, {"nargs": "..."}, {"nargs": "A..."}])
def test_a_kind_of_flag_that_ends_or_swallows_the_line_is_refused(facts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="cannot be given from here"):
        render(flag("--x", **facts), "a")


# Means, in order.


def repository(*flags: Flag, config: dict[str, object] | None = None, variables: tuple[str, ...] = ()) -> Repository:
    values = {key: ConfigValue(key, value, CONFIG) for key, value in (config or {}).items()}
    return Repository(
        root=Path("/repo"),
        layout=HOME,
        cwd=Path("/repo/src"),
        train=Path("/repo/src/train.py"),
        config_file=None,
        presets_file=None,
        flags=flags,
        config=values,
        presets={},
        switches=tuple(Switch(name, f"os.environ.get({name!r})", HERE) for name in variables),
        metrics={},
        strings={},
        resumes=(),
    )


def test_the_first_means_that_the_source_has_is_used() -> None:
    means = {"optimizer.lr": ["flag:base_learning_rate", "flag:lr", "env:LR"]}
    both = repository(flag("--lr", type="float"), variables=("LR",))
    assert str(channels(means, both)["optimizer.lr"].carrier) == "flag:lr"
    assert str(channels(means, repository(variables=("LR",)))["optimizer.lr"].carrier) == "env:LR"
    assert channels(means, repository())["optimizer.lr"].carrier is None


def test_what_stands_in_config_only_is_set_by_the_bridge_and_read_without_it() -> None:
    source = repository(config={"shared_cfg.LR.warmup": 1000})
    means = [parse("config:shared_cfg.LR.warmup", "k")]
    found = channel("optimizer.warmup_steps", means, source)
    assert (str(found.carrier), found.current, found.place) == ("config:shared_cfg.LR.warmup", 1000, CONFIG)
    found = channel("optimizer.warmup_steps", means, source, bridged=False)
    assert (found.carrier, found.current, found.place) == (None, 1000, CONFIG)


def test_a_flag_without_a_default_leaves_the_value_of_config_standing() -> None:
    means = [parse("flag:warmup_steps", "k"), parse("config:c.w", "k")]
    given_default = channel("k", means, repository(flag("--warmup-steps", type="int", default=5), config={"c.w": 9}))
    assert (given_default.current, given_default.place) == (5, HERE)
    none = channel("k", means, repository(flag("--warmup-steps", type="int"), config={"c.w": 9}))
    assert (none.current, none.place, str(none.carrier)) == (9, CONFIG, "flag:warmup_steps")


def test_a_flag_that_nothing_reads_is_no_means() -> None:
    dead, undecided = flag("--lr", reads=()), flag("--lr", reads=None)
    assert channel("optimizer.lr", [parse("flag:lr", "k")], repository(dead)).carrier is None
    assert channel("optimizer.lr", [parse("flag:lr", "k")], repository(undecided)).carrier is not None


def test_one_of_several_values_has_its_own_default() -> None:
    source = repository(flag("--bsz", type="int", nargs=2, default=[12, 24]))
    assert channel("batch.local", [parse("flag:bsz[1]", "k")], source).current == 24
    assert channel("batch.local", [parse("flag:bsz[2]", "k")], source).current is None


def test_a_lookup_takes_the_first_value() -> None:
    means = [parse("flag:save_dir", "k"), parse("config:c.save_dir", "k")]
    assert lookup(means, repository(flag("--save-dir"), config={"c.save_dir": "../logs"})) == "../logs"
    assert lookup(means, repository()) is None


@pytest.mark.parametrize("text", ["flag:", "flags:x", "max_steps", "flag:x[a]", "flag:x y", "flag:x[1", ""])
def test_what_is_no_means_is_refused_with_its_key(text: str) -> None:
    with pytest.raises(AmtError) as error:
        parse(text, "max_steps")
    assert error.value.message.startswith("repo.means.max_steps")
    assert "flag:DEST" in error.value.fix[0]
