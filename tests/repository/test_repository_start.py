"""How a repository starts a run: which checkpoint a model takes, what is missing, which one wins; and what it makes."""

from pathlib import Path

import pytest
from small_repository import repository

from amt_hydra.repository import Repository
from amt_hydra.repository.facts import Load

PARSER = """\
import argparse
import os
import torch
from pathlib import Path
from net import Model
parser = argparse.ArgumentParser()
parser.add_argument("exp_id")
parser.add_argument("--init-ckpt")
parser.add_argument("--other")
args = parser.parse_args()
model = Model()
folder = os.path.join("runs", args.exp_id)
"""
NET = "class Model:\n    pass\n"


def started(root: Path, body: str, **modules: str) -> Repository:
    return repository(root, PARSER + body, **{"net": NET, **modules})


def loads(found: Repository) -> list[tuple[str, bool | None, bool | None]]:
    return [(load.takes, load.strict, load.weights_only) for load in found.start.loads]


# Loads.


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("model.load_state_dict(torch.load(args.init_ckpt))", ("init", True, None)),
        ("model.load_state_dict(torch.load(args.init_ckpt)['state_dict'], strict=False)", ("init", False, None)),
        ("model.load_state_dict(torch.load(args.init_ckpt), False)", ("init", False, None)),
        ("model.load_state_dict(torch.load(args.init_ckpt), strict=args.other)", ("init", None, None)),
        ("model.load_state_dict(torch.load(str(Path(args.init_ckpt)), weights_only=False))", ("init", True, False)),
        ("path = args.init_ckpt\nstate = torch.load(path)\nmodel.load_state_dict(state)", ("init", True, None)),
        ("model.load_state_dict(torch.load(os.path.join(folder, 'last.ckpt')))", ("last", True, None)),
        ("model.load_state_dict(torch.load(f'{folder}/last.ckpt'))", ("last", True, None)),
        ("model.load_state_dict(torch.load(Path(folder) / 'last.ckpt'))", ("last", True, None)),
        ("model = Model.load_from_checkpoint(folder + '/last.ckpt')", ("last", True, None)),
        ("model = Model.load_from_checkpoint(checkpoint_path=args.init_ckpt, strict=False)", ("init", False, None)),
        ("model.load_state_dict(torch.load('backbone.pt'))", ("unknown", True, None)),
        ("model.load_state_dict(torch.load(find_one()))", ("unknown", True, None)),
        (
            "state = {k[6:]: v for k, v in torch.load(args.init_ckpt)['state_dict'].items()}\n"
            "model.load_state_dict(state)",
            ("init", True, None),
        ),
    ],
)
def test_what_a_model_takes(tmp_path: Path, body: str, expected: tuple[str, bool | None, bool | None]) -> None:
    found = started(tmp_path, body)
    assert loads(found) == [expected]
    assert found.start.loads[0].place.file.name == "train.py"


@pytest.mark.parametrize(
    "body",
    [
        "model.load_state_dict(other.state_dict())",
        "model.load_state_dict(args.other)",
        "optimizer.load_state_dict(torch.load(args.init_ckpt)['optimizer_states'][0])",
        "scheduler.load_state_dict(torch.load(args.init_ckpt)['lr_schedulers'])",
        "torch.load(args.init_ckpt)",
    ],
)
def test_what_is_no_load_of_weights(tmp_path: Path, body: str) -> None:
    assert loads(started(tmp_path, body)) == []


def test_a_load_in_a_helper_takes_what_its_caller_hands_over(tmp_path: Path) -> None:
    helper = """\
    import torch
    def load_weights(model, path, strict=True):
        state = torch.load(path, map_location="cpu")["state_dict"]
        model.load_state_dict(state, strict=strict)
    """
    found = started(tmp_path, "from helper import load_weights\nload_weights(model, args.init_ckpt)\n", helper=helper)
    assert found.start.loads == (Load(found.start.loads[0].place, "init", None, None),)
    assert (found.start.loads[0].place.file.name, found.start.loads[0].place.line) == ("helper.py", 4)


def test_a_reader_of_files_that_two_callers_use(tmp_path: Path) -> None:
    """The step of last.ckpt is read by the same helper as the weights of the other one."""
    helper = """\
    import torch
    def read(path):
        return torch.load(path, weights_only=True)
    def warm_start(model, path):
        weights = read(path)["state_dict"]
        model.load_state_dict({k: weights[k] for k in weights}, strict=False)
    """
    body = """\
from helper import read, warm_start
step = read(folder + '/last.ckpt')['step']
warm_start(model, args.init_ckpt)
"""
    assert loads(started(tmp_path, body, helper=helper)) == [("init", False, True)]


def test_the_shape_of_the_family(tmp_path: Path) -> None:
    """A path that another file chooses, handed over in a dictionary in a tuple; a name after "@" replaces last.ckpt."""
    setup = """\
    import os
    def set_up(args, stage="train"):
        if "@" in args.exp_id:
            args.exp_id, name = args.exp_id.split("@")
        else:
            name = "last.ckpt"
        path = os.path.join("logs", args.exp_id, "checkpoints", name)
        if os.path.exists(path):
            print("going on from", path)
        elif stage == "train":
            print("nothing there: from scratch")
            path = None
        else:
            raise ValueError(path)
        info = dict(folder="logs", last_path=path)
        return Trainer(), info
    """
    found = started(
        tmp_path,
        "from setup import set_up\n"
        "trainer, info = set_up(args, stage='train')\n"
        "if info['last_path'] is not None:\n"
        "    state = torch.load(info['last_path'])\n"
        "    weights = state['state_dict']\n"
        "    model.load_state_dict(weights, strict=False)\n"
        "    trainer.fit(model)\n"
        "else:\n"
        "    trainer.fit(model, ckpt_path=info['last_path'])\n",
        setup=setup,
    )
    assert loads(found) == [("last", False, None)]
    assert [(place.file.name, place.line) for place in found.start.falls_through] == [("setup.py", 12)]
    assert (found.resumes, found.goes_on, found.start.precedence) == ((), "warmstart", "unknown")


def test_a_load_that_takes_either_counts_for_both(tmp_path: Path) -> None:
    found = started(
        tmp_path,
        "last = os.path.join(folder, 'last.ckpt')\n"
        "path = last if os.path.exists(last) else args.init_ckpt\n"
        "model.load_state_dict(torch.load(path))\n",
    )
    assert [load.takes for load in found.start.loads] == ["last", "init"]
    assert found.start.precedence == "last"


def test_files_that_train_does_not_import_do_not_count(tmp_path: Path) -> None:
    load = "import torch\nnet.load_state_dict(torch.load('last.ckpt'))\ntrainer.save_checkpoint('x')\n"
    found = started(tmp_path, "", test=load, app=load)
    assert (found.start.loads, found.saves) == ((), ())


@pytest.mark.parametrize(
    "line",
    [
        "import parts.inner.deep",
        "from parts.inner import deep",
        "from parts.inner.deep import net",
        "from parts.inner.deep import (\n    net,  # the model\n)",
        "def later():\n    from parts.inner import deep",
        "import importlib\ndeep = importlib.import_module('parts.inner.deep')",
        "name = 'parts.inner.deep'\ndeep = __import__(name)",
        "import runpy\nrunpy.run_path('parts/inner/deep.py')",
        "import sys\nsys.path.append('parts/inner')\nimport deep",
    ],
)
def test_files_that_train_reaches_or_may_reach_count(tmp_path: Path, line: str) -> None:
    deep = "import torch\nnet.load_state_dict(torch.load('last.ckpt'))\n"
    found = started(tmp_path, line + "\n", parts__inner__deep=deep)
    assert loads(found) == [("last", True, None)]


def test_packages_and_relative_imports_are_followed(tmp_path: Path) -> None:
    found = started(
        tmp_path,
        "from parts import build\n",
        parts____init__="from .build import build\n",
        parts__build="from . import deep\nfrom ..parts.deep import x\n",
        parts__deep="trainer.save_checkpoint('x')\n",
    )
    assert [place.file.name for place in found.saves] == ["deep.py"]


# What is missing.


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("last = folder + '/last.ckpt'\nif not os.path.exists(last):\n    last = None\n", 15),
        ("last = folder + '/last.ckpt'\nckpt = last if os.path.isfile(last) else None\n", 14),
        ("ckpt = None\nif Path(args.init_ckpt).exists():\n    ckpt = args.init_ckpt\n", 14),
        ("if os.path.exists(args.init_ckpt):\n    ckpt = args.init_ckpt\nelse:\n    print('none')\n", 13),
        ("last_ckpt = choose()\nthere = os.path.exists(last_ckpt)\nif not there:\n    last_ckpt = None\n", 16),
        (
            "def find(last_ckpt):\n    if not os.path.exists(last_ckpt):\n        return None\n    return last_ckpt\n",
            15,
        ),
    ],
)
def test_a_missing_checkpoint_that_becomes_scratch(tmp_path: Path, body: str, line: int) -> None:
    assert [place.line for place in started(tmp_path, body).start.falls_through] == [line]


@pytest.mark.parametrize(
    "body",
    [
        "if not os.path.exists(args.init_ckpt):\n    raise FileNotFoundError(args.init_ckpt)\n",
        "if os.path.exists(args.init_ckpt):\n    ckpt = args.init_ckpt\nelse:\n    raise SystemExit(1)\n",
        "if not os.path.exists(args.init_ckpt):\n    print('none')\n    raise SystemExit(1)\n",
        "data = 'data'\nif not os.path.exists(data):\n    data = None\n",
        "if not os.path.exists(args.init_ckpt):\n    fetch(args.init_ckpt)\n",
    ],
)
def test_a_missing_checkpoint_that_is_an_error_or_none_at_all(tmp_path: Path, body: str) -> None:
    assert started(tmp_path, body).start.falls_through == ()


# Which one wins.

LAST = "last = os.path.join(folder, 'last.ckpt')\n"
LOAD_LAST = "    model.load_state_dict(torch.load(last))\n"
LOAD_INIT = "    model.load_state_dict(torch.load(args.init_ckpt))\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"if os.path.exists(last):\n{LOAD_LAST}elif args.init_ckpt:\n{LOAD_INIT}", "last"),
        (f"if args.init_ckpt is not None:\n{LOAD_INIT}elif os.path.exists(last):\n{LOAD_LAST}", "init"),
        (f"if args.init_ckpt and not os.path.exists(last):\n{LOAD_INIT}else:\n{LOAD_LAST}", "last"),
        (f"if os.path.exists(last):\n{LOAD_LAST}if args.init_ckpt:\n{LOAD_INIT}", "init"),
        ("ckpt = args.init_ckpt or last\nmodel.load_state_dict(torch.load(ckpt))\n", "init"),
        ("ckpt = None\nif os.path.exists(last):\n    ckpt = last\nif ckpt is None:\n"
         "    ckpt = args.init_ckpt\nmodel.load_state_dict(torch.load(ckpt))\n", "last"),
        (f"if args.init_ckpt:\n{LOAD_INIT}"
         "trainer.fit(model, ckpt_path=last if os.path.exists(last) else None)\n", "last"),
        ("def pick():\n    if args.init_ckpt:\n        return args.init_ckpt\n    return last\n"
         "model.load_state_dict(torch.load(pick()))\n", "init"),
        (f"if args.other == 'x':\n{LOAD_LAST}else:\n{LOAD_INIT}", "unknown"),
        (f"if os.path.exists(last):\n{LOAD_LAST}", "unknown"),
    ],
)  # fmt: skip
def test_which_checkpoint_counts_where_both_are_there(tmp_path: Path, body: str, expected: str) -> None:
    assert started(tmp_path, LAST + body).start.precedence == expected


def test_a_switch_for_scratch_decides_nothing_about_the_two(tmp_path: Path) -> None:
    found = started(
        tmp_path,
        LAST + "if os.environ.get('AMT_FORCE_SCRATCH') == '1':\n    ckpt = None\nelif os.path.exists(last):\n"
        "    ckpt = last\nelse:\n    ckpt = args.init_ckpt\nif ckpt is not None:\n"
        "    model.load_state_dict(torch.load(ckpt))\n",
    )
    assert found.start.precedence == "last"


# What of Lightning is made.


def test_saves_loggers_and_packages(tmp_path: Path) -> None:
    found = started(
        tmp_path,
        "from parts import make\n",
        parts="""\
        import lightning.pytorch as pl
        from lightning.pytorch.loggers import CSVLogger as Rows
        from wandb_logger import WandbLogger
        import logging
        logging.getLogger("x")
        def make(trainer):
            Rows("a")
            pl.loggers.TensorBoardLogger("b")
            WandbLogger("c")
            trainer.save_checkpoint("last.ckpt")
            # MLFlowLogger("d")
        """,
        wandb_logger="from pytorch_lightning.loggers import WandbLogger\n",
        demo="from pytorch_lightning.loggers import CometLogger\nCometLogger()\n",
    )
    assert {name: place.line for name, place in found.loggers.items()} == {
        "CSVLogger": 7,
        "TensorBoardLogger": 8,
        "WandbLogger": 9,
    }
    assert [place.line for place in found.saves] == [10]
    assert found.lightning == ("pytorch_lightning", "lightning")


def test_a_logger_of_the_repository_itself_is_none_of_lightning(tmp_path: Path) -> None:
    found = started(tmp_path, "from own import WandbLogger\nWandbLogger()\n", own="class WandbLogger:\n    pass\n")
    assert (found.loggers, found.lightning) == ({}, ())
