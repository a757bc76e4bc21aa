"""Commands to paste: what was typed, changed in one respect, and safe in a shell."""

import os
import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amt_hydra.commands import PROGRAM, Typed, quote, render
from amt_hydra.line import parse

VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def words_of(command: str) -> list[str]:
    """The arguments that a shell would hand to the program."""
    words = shlex.split(command)
    assert words[:3] == shlex.split(PROGRAM)
    return words[3:]


@given(st.lists(VALUES.map("exp_id={}".format)), st.sampled_from(["train", "plan"]), st.none() | VALUES.filter(len))
def test_a_command_survives_the_shell(words: list[str], verb: str, config_dir: str | None) -> None:
    line = parse(words_of(str(Typed(verb, tuple(words), config_dir))))
    assert (line.verb, list(line.words), line.config_dir) == (verb, words, config_dir)


def test_training_is_the_verb_that_is_left_out() -> None:
    assert render("train", ["a=b c"]) == "python -m amt_hydra 'a=b c'"
    assert render("plan", []) == "python -m amt_hydra plan"


@pytest.mark.parametrize("text", ["caf\udce9", "a'b \udcff0\\x.ckpt", "楽譜\udc80\udcfe\n$x", "'\udcff'"])
def test_bytes_that_are_no_utf8_survive_bash(text: str) -> None:
    quoted = quote(text)
    quoted.encode("utf-8")  # it can be printed
    done = subprocess.run(["bash", "-c", f"printf %s {quoted}"], capture_output=True, check=True)
    assert done.stdout == os.fsencode(text)


@pytest.mark.parametrize(
    ("new", "drop", "command"),
    [
        (["seed=null"], [], "python -m amt_hydra plan init=null seed=null"),
        ([], ["seed"], "python -m amt_hydra plan init=null"),
        ([], ["init.mode"], "python -m amt_hydra plan seed=x"),
        ([], ["max_steps"], None),  # no word of it: a config file sets it
    ],
)
def test_a_command_that_is_mended(new: list[str], drop: list[str], command: str | None) -> None:
    assert Typed("plan", ("seed=x", "init=null")).mended(new, drop) == ((command,) if command else ())


TYPED = Typed("train", ("exp_id=a", "+init=resume", "init.ckpt=x=1.ckpt", "++max_steps=5"), "my conf")


def test_overrides_are_replaced_whatever_their_prefix() -> None:
    changed = words_of(TYPED.changed("init=scratch", "max_steps=9"))
    assert changed == ["--config-dir", "my conf", "exp_id=a", "init.ckpt=x=1.ckpt", "init=scratch", "max_steps=9"]


def test_overrides_are_left_out() -> None:
    assert words_of(TYPED.changed(drop=["init.ckpt", "exp_id"])) == [
        "--config-dir",
        "my conf",
        "+init=resume",
        "++max_steps=5",
    ]


@pytest.mark.parametrize(
    ("new", "gone"), [("init=resume", "init.mode=scratch"), ("precision=fp32", "precision.name=x")]
)
def test_a_key_that_would_win_over_the_new_option_is_left_out(new: str, gone: str) -> None:
    assert words_of(Typed("plan", (gone, "seed=1")).changed(new)) == ["plan", "seed=1", new]
