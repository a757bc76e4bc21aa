"""The conventions as data, as text and as a page of the docs."""

import json
from pathlib import Path

import pytest

from amt_hydra.checks import CHECKS
from amt_hydra.cli import main
from amt_hydra.conventions import Rule, as_json, as_markdown, rules

PAGE = Path(__file__).parents[1] / "docs" / "conventions.md"
IDS = {check.__name__ for check in CHECKS}


@pytest.mark.parametrize("rule", rules(), ids=lambda r: r.rule[:40])
def test_every_rule_has_its_reason_and_what_holds_it(rule: Rule) -> None:
    assert rule.section
    assert rule.rule.endswith((".", '"'))
    assert len(rule.reason.split()) > 3
    assert {name for name in rule.held_by if not name.startswith("[")} <= IDS


def test_every_check_holds_a_rule() -> None:
    held = {name for rule in rules() for name in rule.held_by if not name.startswith("[")}
    assert held == IDS


def test_the_sections_are_those_of_the_domain() -> None:
    assert list(dict.fromkeys(rule.section for rule in rules())) == [
        "Training identity comes first",
        "Documented defaults",
        "Training scripts keep one shape",
        "Batch size and workers under DDP",
        "The debugging path",
        "Boundaries",
    ]


def test_the_comment_of_a_changed_default_keeps_its_full_width_colon() -> None:
    assert any("# 修改\uff1a" in rule.rule for rule in rules())


def test_the_page_of_the_docs_is_the_generated_one() -> None:
    assert PAGE.read_text(encoding="utf-8") == as_markdown(), "run `make docs`"


def test_the_page_is_made_of_whole_tables() -> None:
    heads = {line.count("|") - line.count("\\|") for line in as_markdown().splitlines() if line.startswith("|")}
    assert heads == {4, 5}  # three and four columns


def test_json_holds_rules_defaults_and_checks() -> None:
    data = json.loads(as_json())
    assert len(data["conventions"]) == len(rules())
    assert data["documented_defaults"]["checkpoint.save_top_k"]["value"] == 7
    assert {check["id"] for check in data["checks"]} == IDS
    assert all(check["title"] and check["reason"] for check in data["checks"])


def test_text_names_every_rule_and_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conventions"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for rule in rules():
        assert rule.rule in shown
        assert rule.reason in shown


@pytest.mark.parametrize("option", ["--json", "--markdown"])
def test_each_form_is_what_the_command_prints(capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert main(["conventions", option]) == 0
    assert capsys.readouterr().out.strip() == {"--json": as_json, "--markdown": as_markdown}[option]().strip()
