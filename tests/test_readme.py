"""README says what is so: its commands parse and compose, its tables are complete, its links lead somewhere."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser

from amt_hydra.compose import compose
from amt_hydra.conf_path import groups, shipped, shipped_groups
from amt_hydra.line import parse, takes_paths
from amt_hydra.overrides import prepare
from amt_hydra.preflight import typed_settings
from amt_hydra.sweep.standing import State
from amt_hydra.sweep.words import typed
from amt_hydra.verbs import VERBS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAM = "python -m amt_hydra"
COMMANDS = sorted(set(re.findall(rf"^    (?:\$ )?(?:\w+=\S+ )?{PROGRAM}(.*)$", README, re.MULTILINE)))


def table(heading: str) -> dict[str, str]:
    """The rows of the first table below a heading: first cell to second."""
    section = README.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    first = next(i for i, row in enumerate(rows) if row[0] == "---")
    found = {}
    for name, text in rows[first + 1 :]:
        if name in ("verb", "group"):
            break
        found[name] = text
    return found


def expanded(words: Sequence[str]) -> list[tuple[str, ...]]:
    """The points of a sweep, by Hydra's own sweeper."""
    parsed = OverridesParser.create().parse_overrides(prepare(words, shipped_groups(), sweep=True))
    return [typed(point) for batch in BasicSweeper.split_arguments(parsed, None) for point in batch]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_parses_and_composes(command: str, tmp_path: Path) -> None:
    line = parse(shlex.split(command))
    assert line.verb in VERBS
    if line.verb in ("cancel", "retry"):
        assert set(line.words) <= set(get_args(State))
    elif not takes_paths(line.verb):
        for words in expanded(line.words) if line.multirun else [line.words]:
            typed_settings(compose(words, [shipped()]), tmp_path)


def test_the_commands_were_found() -> None:
    assert len(COMMANDS) > 4
    assert any("init=warmstart precision=bf16" in command for command in COMMANDS)


def test_the_table_of_verbs_is_complete() -> None:
    assert {name.strip("`").split("`")[0].split(" ")[0] for name in table("Verbs")} == set(VERBS)


def test_the_table_of_groups_is_the_conf_tree() -> None:
    listed = {
        name.strip("`"): set(re.findall(r"`([\w]+)`", text)) for name, text in table("Groups and settings").items()
    }
    tree = {name: {f.stem for f in (shipped() / name).glob("*.yaml")} for name in groups([shipped()])}
    assert listed == tree


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


@pytest.mark.parametrize("name", re.findall(r"^    make (\w+)", README, re.MULTILINE))
def test_every_make_target_is_there(name: str) -> None:
    assert re.search(rf"^{name}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
