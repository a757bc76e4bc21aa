"""Reads of environment variables, and what counts as on: against Python's own eval of the same expression."""

import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_repository import repository

from amt_hydra.repository import Switch, is_on, reads_switch, switched_on
from amt_hydra.repository.evaluate import Undecided
from amt_hydra.repository.sense import yields

VALUES = [None, "", "0", "1", "true", "True", " yes ", "off", "no", "2", "x"]
PLAIN = """
os.environ.get("X")
os.environ.get("X", "0") == "1"
os.environ.get("X", "") not in ("", "0")
os.environ["X"] == "1"
"X" in os.environ
"X" not in os.environ
os.getenv("X", default="0").lower() in ("1", "true", "yes")
os.getenv("X", "0").strip().upper() == "TRUE"
bool(int(os.environ.get("X", "0")))
bool(os.environ.get("X"))
int(os.environ.get("X", 0)) > 0
not os.environ.get("X")
os.environ.get("X") is not None and os.environ["X"] != "0"
os.environ.get("X") or "default"
str(os.environ.get("X")) == "None"
"yes" if os.environ.get("X") else ""
os.environ.get("X", "a")[:1] == "t"
len(os.environ.get("X", "")) > 1
os.environ.get("X", "0").isdigit() and float(os.environ.get("X", "0")) >= 1.5
{"1": True, "0": False}.get(os.environ.get("X", "0"), False)
""".strip().splitlines()


def genuine(expression: str, value: str | None) -> Any:
    environ = {} if value is None else {"X": value}
    with mock.patch.dict(os.environ, environ, clear=True):
        return eval(expression)


@pytest.mark.parametrize("expression", PLAIN)
@pytest.mark.parametrize("value", VALUES)
def test_an_expression_yields_what_python_says(expression: str, value: str | None) -> None:
    switch = Switch("X", expression, place=None)  # type: ignore[arg-type]
    try:
        expected = genuine(expression, value)
    except Exception:
        with pytest.raises(Undecided):
            yields(switch, value)
        return
    assert yields(switch, value) == expected


READ = st.sampled_from(['os.environ.get("X")', 'os.environ.get("X", "0")', 'os.getenv("X", "")', '("X" in os.environ)'])
COMPARISON = st.sampled_from(["==", "!=", "in", "not in", "is", ">", "<="])
OTHER = st.sampled_from(['"1"', '"0"', '""', "None", '("1", "true")', "1", "True"])


def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        inner.map(lambda a: f"(not {a})"),
        inner.map(lambda a: f"bool({a})"),
        inner.map(lambda a: f"str({a})"),
        inner.map(lambda a: f"str({a}).lower()"),
        inner.map(lambda a: f"int({a})"),
        st.tuples(inner, st.sampled_from(["==", "!=", "in", "not in", "is", ">", "<="]), OTHER).map(
            lambda t: f"({' '.join(t)})"
        ),
        st.tuples(inner, st.sampled_from(["and", "or", "+"]), inner | OTHER).map(lambda t: f"({' '.join(t)})"),
        st.tuples(inner, inner, OTHER).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
    )


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@given(st.recursive(READ, grow, max_leaves=6), st.sampled_from(VALUES))
def test_grown_expressions_yield_what_python_says(expression: str, value: str | None) -> None:
    switch = Switch("X", expression, place=None)  # type: ignore[arg-type]
    try:
        expected = genuine(expression, value)
    except Exception:
        with pytest.raises(Undecided):
            yields(switch, value)
    else:
        assert yields(switch, value) == expected


# What is found in a file.


def switches(root: Path, text: str, **modules: str) -> list[tuple[str, str, int]]:
    return [(s.name, s.expression, s.place.line) for s in repository(root, text, **modules).switches]


def test_every_way_to_read(tmp_path: Path) -> None:
    assert switches(
        tmp_path,
        """\
        import os
        import os as system
        from os import environ, getenv as ge
        a = os.environ.get("A")
        b = system.environ["B"]
        c = environ.get("C", "") == "1"
        d = ge("D")
        e = "E" in environ
        NAME = "F"
        f = os.getenv(NAME)
        os.environ["G"] = "written"
        other.environ.get("H")
        """,
    ) == [
        ("A", 'os.environ.get("A")', 4),
        ("B", 'system.environ["B"]', 5),
        ("C", 'environ.get("C", "") == "1"', 6),
        ("D", 'ge("D")', 7),
        ("E", '"E" in environ', 8),
        ("F", "os.getenv(NAME)", 10),
    ]


def test_the_largest_expression_without_other_unknowns(tmp_path: Path) -> None:
    found = switches(
        tmp_path,
        """\
        import os
        TRUE = ("1", "true")
        if last.exists() and not os.environ.get("A", "").lower() in TRUE:
            pass
        run(force=bool(int(os.environ.get("B", "0"))))
        x = os.environ.get("C") == "1" or os.environ.get("D") == "1"
        y = torch.tensor(os.environ.get("E", "0") == "1")
        """,
    )
    assert found == [
        ("A", 'os.environ.get("A", "").lower() in TRUE', 3),
        ("B", 'bool(int(os.environ.get("B", "0")))', 5),
        ("C", 'os.environ.get("C") == "1"', 6),
        ("D", 'os.environ.get("D") == "1"', 6),
        ("E", 'os.environ.get("E", "0") == "1"', 7),
    ]


def on(root: Path, text: str, value: str | None, **modules: str) -> bool:
    return switched_on(repository(root, text, **modules), "AMT_FORCE_SCRATCH", value)[0]


HELPER = """
import os
TRUE = {"1", "true", "yes"}
def str2bool(v):
    "Make a bool."
    if isinstance(v, bool):
        return v
    if v.lower() in TRUE:
        return True
    elif v.lower() in ("0", "false"):
        return False
    raise ValueError(v)
"""


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ('import os\nif os.environ.get("AMT_FORCE_SCRATCH"): pass', ["1", "0", "false"], [None, ""]),
        ('import os\nx = os.environ.get("AMT_FORCE_SCRATCH", "0") == "1"', ["1"], [None, "", "0", "true"]),
        ('import os\nif os.environ.get("AMT_FORCE_SCRATCH", "0") != "1": resume()', ["1"], [None, "", "0"]),
        ('import os\nif not os.environ.get("AMT_FORCE_SCRATCH"): resume()', ["1", "0"], [None, ""]),
        ('import os\nif ok and not os.environ.get("AMT_FORCE_SCRATCH") == "1": resume()', ["1"], [None, "0"]),
        ('import os\nif "AMT_FORCE_SCRATCH" not in os.environ: resume()', ["", "0", "1"], [None]),
        ('import os\nif os.environ.get("AMT_FORCE_SCRATCH") is None: resume()', ["", "0", "1"], [None]),
        (
            'import os\nif os.getenv("AMT_FORCE_SCRATCH", "0") in ("0", "false"): resume()',
            ["1", "x"],
            [None, "0", "false"],
        ),
        ('import os\nx = os.environ.get("AMT_FORCE_SCRATCH", "1") == "1"', [None, "1"], ["0"]),
        ('import os\nforce = os.environ.get("AMT_FORCE_SCRATCH", "0")\nif force == "1": pass', ["1"], [None, "0", "x"]),
        ('import os\nforce = os.environ.get("AMT_FORCE_SCRATCH", "0")\nif force != "1": resume()', ["1"], [None, "0"]),
        (f'{HELPER}\nx = str2bool(os.environ.get("AMT_FORCE_SCRATCH", "0"))', ["1", "Yes"], [None, "0", "FALSE"]),
        (
            f'{HELPER}\ndef flag(name, default="0"):\n    return str2bool(os.environ.get(name, default))\n'
            'if flag("AMT_FORCE_SCRATCH"): pass\nflag("OTHER")',
            ["1", "true"],
            [None, "0"],
        ),
        ('import os\nx = bool(int(os.environ.get("AMT_FORCE_SCRATCH", "0")))', ["1", "2"], [None, "0"]),
        ('import os\nforce = os.environ.get("AMT_FORCE_SCRATCH", "0")\nforce = force == "1"\n', ["1", "0"], [None, ""]),
        ('import os\nforce = os.environ.get("AMT_FORCE_SCRATCH", "0")\nuse(force)\n', ["1", "0"], [None, ""]),
        ('import os\ncfg = {"force": os.environ.get("AMT_FORCE_SCRATCH", "0")}\n', ["1", "0"], [None, ""]),
        (
            'import os\nclass A:\n    def __init__(self):\n        self.force = os.getenv("AMT_FORCE_SCRATCH", "0")\n'
            '    def go(self):\n        print(f"force {self.force}")\n        return self.force in ("1", "on")\n',
            ["1", "on"],
            [None, "0", "x"],
        ),
        (
            'import os\ndef a():\n    v = os.getenv("AMT_FORCE_SCRATCH", "0")\n    return v == "1"\n'
            'def b():\n    v = os.getenv("OTHER")\n    return v == "2"\n',
            ["1"],
            [None, "2"],
        ),
        ('import os\nx = unknown(os.environ.get("AMT_FORCE_SCRATCH", "0") + suffix)', ["1", "0"], [None, ""]),
    ],
)
def test_on_and_off(tmp_path: Path, text: str, yes: list[str | None], no: list[str | None]) -> None:
    found = repository(tmp_path, text)
    answers = {value: switched_on(found, "AMT_FORCE_SCRATCH", value) for value in (*yes, *no)}
    assert [value for value, (answer, _) in answers.items() if answer] == yes, answers


def test_a_helper_in_another_module(tmp_path: Path) -> None:
    helper = 'import os\ndef env_on(name):\n    return os.environ.get(name, "") == "yes"\n'
    text = 'import env\nif env.env_on("AMT_FORCE_SCRATCH"): pass\n'
    found = repository(tmp_path, text, env=helper)
    assert [(s.name, s.place.file.name, s.place.line) for s in found.switches] == [("AMT_FORCE_SCRATCH", "train.py", 2)]
    assert switched_on(found, "AMT_FORCE_SCRATCH", "yes")[0]
    assert not switched_on(found, "AMT_FORCE_SCRATCH", "1")[0]


def test_undecided_means_any_value_that_is_not_empty(tmp_path: Path) -> None:
    text = 'import os\nfrom foreign import truth\nx = truth(os.environ.get("AMT_FORCE_SCRATCH", "0"))\n'
    found = repository(tmp_path, text)
    assert is_on(found.switches[0], "0") is None
    assert found.switches[0].text_only
    answers = {value: switched_on(found, "AMT_FORCE_SCRATCH", value) for value in (None, "", "0", "x")}
    assert [answer for answer, _ in answers.values()] == [False, False, True, True]
    assert "train.py:3" in answers["0"][1]


def test_a_variable_that_nothing_reads_has_no_effect(tmp_path: Path) -> None:
    found = repository(tmp_path, 'import os\nos.environ.get("OTHER")\n')
    answer, why = switched_on(found, "AMT_FORCE_SCRATCH", "1")
    assert not answer
    assert "read nowhere" in why
    assert not reads_switch(found, "AMT_FORCE_SCRATCH")
    assert reads_switch(found, "OTHER")


def test_a_computed_name_is_said(tmp_path: Path) -> None:
    found = repository(tmp_path, "import os\nfor name in names:\n    os.environ.get(f'AMT_{name}')\n")
    assert found.switches == ()
    assert "src/train.py:3" in found.problems[0]


def test_one_switch_that_is_on_is_enough(tmp_path: Path) -> None:
    text = 'import os\nx = os.environ.get("AMT_FORCE_SCRATCH") == "1"\n'
    found = repository(tmp_path, text, other='import os\ny = os.environ.get("AMT_FORCE_SCRATCH") == "yes"\n')
    assert [switched_on(found, "AMT_FORCE_SCRATCH", v)[0] for v in ("1", "yes", "2", None)] == [
        True,
        True,
        False,
        False,
    ]
