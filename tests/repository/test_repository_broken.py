"""Names that are None where train.py uses them: said only where no other value, and no way around, is possible."""

from pathlib import Path

import pytest
from small_repository import repository

from amt_hydra.repository import Repository

SETUP = """\
def set_up(args):
    # logger = WandbLogger(id=args.exp_id)
    logger = None
    trainer = Trainer()
    return trainer, logger
"""
PARSER = """\
import argparse
from setup import set_up
parser = argparse.ArgumentParser()
parser.add_argument("exp_id")
args = parser.parse_args()
"""


def broken(found: Repository) -> list[tuple[str, str, str]]:
    return [
        (b.expression, f"{b.none.file.name}:{b.none.line}", f"{b.used.file.name}:{b.used.line}") for b in found.broken
    ]


def test_a_logger_that_is_none_by_the_time_it_comes_back(tmp_path: Path) -> None:
    body = """\
trainer, logger = set_up(args)
def main():
    if trainer.global_rank == 0:
        logger.experiment.config.update({})
    logger.watch(model)
if __name__ == "__main__":
    main()
"""
    assert broken(repository(tmp_path, PARSER + body, setup=SETUP)) == [
        ("logger.watch", "setup.py:3", "train.py:10"),
        ("logger.experiment", "setup.py:3", "train.py:9"),
    ]


@pytest.mark.parametrize(
    ("body", "expression"),
    [
        ("x = None\nx.go()", "x.go"),
        ("x = None\nx['a']", "x['a']"),
        ("x = None\nx()", "x"),
        ("x = y = None\ny.go()", "y.go"),
        ("def f():\n    x = None\n    return x.go\nf()", "x.go"),
        ("def f():\n    return None\nx = f()\nx.go()", "x.go"),
        ("x = {'a': None}\nx['a'].go()", "x['a'].go"),
        ("x = dict(a=None)\nx['a'].go()", "x['a'].go"),
        ("class A:\n    def __init__(self):\n        self.x = None\n        self.x.go()\nA()", "self.x.go"),
    ],
)
def test_what_dies(tmp_path: Path, body: str, expression: str) -> None:
    assert [b.expression for b in repository(tmp_path, PARSER + body).broken] == [expression]


@pytest.mark.parametrize(
    "body",
    [
        "x = None\nx = 1\nx.go()",
        "x = None\nif args.exp_id:\n    x = 1\nx.go()",
        "x = None\nif x is not None:\n    x.go()",
        "x = None\nif x:\n    x.go()",
        "x = None\nx and x.go()",
        "x = None\ny = x.go() if x else 1",
        "x = None\nassert x is not None\nx.go()",
        "x = None\ntry:\n    x.go()\nexcept AttributeError:\n    pass",
        "x = None\nif args.exp_id == 'a':\n    x.go()",
        "x = None\nfor y in args.exp_id:\n    x.go()",
        "x = None\ndef later():\n    x.go()",
        "x = None\ndef later():\n    global x\n    x = 1\nlater()\nx.go()",
        "x = None\nfor x in range(3):\n    pass\nx.go()",
        "x = None\nwith open('a') as x:\n    pass\nx.go()",
        "x = None\nx += 1\nx.go()",
        "x = None\ndef f(x):\n    x.go()\nf(1)",
        "x = None\ny = lambda: x.go()",
        "x = None\nimport x\nx.go()",
        "def f():\n    x = None\n    if args.exp_id:\n        return\n    x.go()\nf()",
        "def f(a):\n    if a:\n        return 1\n    return None\nx = f(1)\nx.go()",
        "def f():\n    yield None\nx = f()\nx.go()",
        "x = {'a': None}\nx['a'] = 1\nx['a'].go()",
        "x = {'a': None}\nx.update(a=1)\nx['a'].go()",
        "x = {'a': None, **more}\ny = {'a': 1}\nx['a'].go()",
        "class A:\n    def __init__(self):\n        self.x = None\n    def go(self):\n        self.x.go()\nA()",
        "class A(B):\n    def __init__(self):\n        self.x = None\n        self.x.go()\nA()",
        "class A:\n    def __init__(self):\n        self.x = None\n        self.set()\n        self.x.go()\n"
        "    def set(self):\n        self.x = 1\nA()",
    ],
)
def test_what_may_live(tmp_path: Path, body: str) -> None:
    assert repository(tmp_path, PARSER + body, setup=SETUP).broken == ()


def test_a_helper_that_returns_something_in_one_of_its_ways(tmp_path: Path) -> None:
    setup = SETUP + "def other(args):\n    return None, None\n"
    either = setup.replace(
        "    trainer = Trainer()\n", "    trainer = Trainer()\n    if args.x:\n        return 1, 2\n"
    )
    found = repository(tmp_path, PARSER + "trainer, logger = set_up(args)\nlogger.watch()\n", setup=either)
    assert found.broken == ()


def test_a_name_that_another_module_sets(tmp_path: Path) -> None:
    found = repository(tmp_path, PARSER + "import hooks\nx = None\nx.go()\n", hooks="import train\ntrain.x = 1\n")
    assert found.broken == ()
