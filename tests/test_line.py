"""The command line taken apart."""

import pytest

from amt_hydra.commands import render
from amt_hydra.errors import USAGE, AmtError
from amt_hydra.line import Line, parse
from amt_hydra.verbs import VERBS


def test_training_is_what_is_done_where_no_verb_is_given() -> None:
    assert parse(["exp_id=x", "init=resume"]) == Line(verb="train", words=("exp_id=x", "init=resume"))
    assert parse(["train", "exp_id=x"]) == parse(["exp_id=x"])


def test_bare_means_no_word_at_all() -> None:
    assert parse([]).bare
    assert parse(["train", "--json"]).bare
    assert not parse(["seed=1"]).bare


@pytest.mark.parametrize("verb", VERBS)
def test_the_verb_comes_first_and_options_anywhere(verb: str) -> None:
    for argv in ([verb, "a=b", "--json"], ["--json", verb, "a=b"], [verb, "--json", "a=b"]):
        line = parse(argv)
        assert (line.verb, line.words, line.json) == (verb, ("a=b",), True)


def test_a_second_verb_is_a_word() -> None:
    assert parse(["checkpoint", "plan"]) == Line(verb="checkpoint", words=("plan",))


@pytest.mark.parametrize(("verb", "second"), [("train", "plan"), ("plan", "plan"), ("conventions", "inspect")])
def test_one_verb_only(verb: str, second: str) -> None:
    with pytest.raises(AmtError) as caught:
        parse([verb, second, "exp_id=a b"])
    assert (caught.value.code, caught.value.message) == (USAGE, f"{verb} {second}: one verb only")
    assert render(second, ["exp_id=a b"]) in caught.value.fix
    assert len(caught.value.fix) == len({verb, second})


def test_the_way_out_of_three_verbs_has_one() -> None:
    with pytest.raises(AmtError) as caught:
        parse(["plan", "train", "plan", "a=b"])
    assert caught.value.fix == (render("plan", ["a=b"]), render("train", ["a=b"]))


@pytest.mark.parametrize("verb", ["checkpoint", "inspect"])
def test_a_path_that_begins_with_a_dash(verb: str) -> None:
    with pytest.raises(AmtError) as caught:
        parse([verb, "-lead/x y.ckpt"])
    assert caught.value.fix == (f"a path that begins with a dash: python -m amt_hydra {verb} './-lead/x y.ckpt'",)


@pytest.mark.parametrize("word", ["--foo", "--lr", "--epochs", "--data-home=/x"])
def test_an_option_like_none_of_ours_is_not_guessed_at(word: str) -> None:
    with pytest.raises(AmtError) as caught:
        parse([word])
    assert not any("did you mean" in way for way in caught.value.fix)


def test_after_two_dashes_everything_is_a_word() -> None:
    assert parse(["checkpoint", "--", "--json", "-x.ckpt"]).words == ("--json", "-x.ckpt")


@pytest.mark.parametrize("argv", [["--config-dir", "a=b c"], ["--config-dir=a=b c"], ["-cd", "a=b c"], ["-cd=a=b c"]])
def test_a_folder_of_configs(argv: list[str]) -> None:
    assert parse([*argv, "plan"]).config_dir == "a=b c"


@pytest.mark.parametrize(
    ("argv", "hydra"),
    [
        (["--cfg", "job"], ("--cfg", "job")),
        (["-c", "job", "--resolve"], ("--cfg", "job", "--resolve")),
        (["--cfg=all", "-p", "optimizer"], ("--cfg", "all", "--package", "optimizer")),
        (["--info"], ("--info",)),
        (["-i", "defaults-tree"], ("--info", "defaults-tree")),
        (["--info", "seed=1"], ("--info",)),
        (["-sc", "query=bash"], ("--shell-completion",)),
        (["--hydra-help"], ("--hydra-help",)),
    ],
)
def test_what_hydra_answers_goes_to_hydra(argv: list[str], hydra: tuple[str, ...]) -> None:
    assert parse(argv).hydra == hydra


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--jsn"], "--jsn: there is no such option"),
        (["--json=1"], "--json=1: there is no such option"),
        (["--config-dir"], "--config-dir needs a value"),
        (["--cfg"], "--cfg needs a value"),
        (["--cfg", "jobs"], "valid are job, hydra, all"),
        (["--resolve=1", "--cfg", "job"], "--resolve 1: valid are no values"),
        (["--resolve"], "give one of --cfg"),
        (["--package", "x"], "give one of --cfg"),
        (["--cfg", "job", "--hydra-help"], "give one of --cfg"),
        (["--cfg", "job", "--json"], "--json does not go with --cfg"),
        (["plan", "--markdown"], "--markdown is an option of conventions"),
        (["-m", "inspect"], "-m sweeps with train and plan, not with inspect"),
        (["-m", "--cfg", "job"], "-m sweeps with train and plan, not with --cfg"),
    ],
)
def test_wrong_options(argv: list[str], says: str) -> None:
    with pytest.raises(AmtError) as caught:
        parse(argv)
    assert caught.value.code == USAGE
    assert says in caught.value.message


def test_an_option_of_train_py_is_told_where_it_belongs() -> None:
    with pytest.raises(AmtError) as caught:
        parse(["--audio-codec=spec"])
    assert "extra.flags.audio_codec=…" in " ".join(caught.value.fix)


def test_a_misspelt_option_gets_the_nearest() -> None:
    with pytest.raises(AmtError) as caught:
        parse(["--config-dri", "x"])
    assert caught.value.fix[0] == "did you mean --config-dir?"
