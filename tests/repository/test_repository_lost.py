"""Flags that can be given and have no effect: what they set is read by nothing, or only of the original of a copy."""

from pathlib import Path

import pytest
from small_repository import repository

from amt_hydra.repository import Repository

TRAIN = """\
import argparse
from setup import update
from net import Net
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=int)
args = parser.parse_args()
cfg = update(args)
net = Net(cfg)
"""
CONFIG = "model_cfg = {'depth': 1, 'encoder': {'small': {'width': 2}}}\nshared_cfg = {'BSZ': {'sub': 1, 'local': 2}}\n"


def sets(statement: str) -> str:
    return (
        "from config import model_cfg as default_cfg\n"
        "def update(args):\n    model_cfg = default_cfg\n    if args.x is not None:\n"
        f"        {statement}\n    return model_cfg\n"
    )


def lost(root: Path, setup: str, net: str, **modules: str) -> str:
    found: Repository = repository(root, TRAIN, **{"setup": setup, "net": net, "config": CONFIG, **modules})
    flag = found.flag("x")
    assert flag is not None
    assert flag.reads
    return flag.lost


NET = "class Net:\n    def __init__(self, cfg):\n        self.depth = cfg['depth']\n"

# A key that nothing reads.


def test_a_key_that_is_read_by_another_name(tmp_path: Path) -> None:
    words = lost(tmp_path, sets("model_cfg['dpeth'] = int(args.x)"), NET)
    assert words == "sets dpeth of model_cfg at src/setup.py:5, which nothing reads"


def test_a_key_deep_inside(tmp_path: Path) -> None:
    net = "class Net:\n    def __init__(self, cfg):\n        self.width = cfg['encoder']['small']['width']\n"
    words = lost(tmp_path, sets("model_cfg['encoder']['small']['wdith'] = args.x"), net)
    assert words == "sets encoder.small.wdith of model_cfg at src/setup.py:5, which nothing reads"


@pytest.mark.parametrize(
    "net",
    [
        "class Net:\n    def __init__(self, cfg):\n        self.d = cfg['key']\n",
        "class Net:\n    def __init__(self, cfg):\n        self.d = cfg.get('key', 1)\n",
        "class Net:\n    def __init__(self, cfg):\n        self.d = cfg.pop('key')\n",
        "class Net:\n    def __init__(self, cfg):\n        self.d = cfg.key\n",
        "class Net:\n    def __init__(self, cfg):\n        self.d = getattr(cfg, 'key')\n",
        "class Net:\n    def __init__(self, cfg):\n        self.d = 1 if 'key' in cfg else 2\n",
        "class Net:\n    def __init__(self, cfg):\n        self.d = [cfg[k] for k in ('key', 'b')]\n",
        "KEYS = ['key']\nclass Net:\n    def __init__(self, cfg):\n        for k in KEYS:\n            print(cfg[k])\n",
        "class Net:\n    def __init__(self, cfg):\n        name = 'key'\n        self.d = cfg[name]\n",
        "class Net:\n    def __init__(self, cfg):\n        self.d = cfg[f'k{\"e\"}y']\n",
        "class Net:\n    def __init__(self, cfg):\n        for k, v in cfg.items():\n            if k == 'key':\n"
        "                self.d = v\n",
        "def build(key=1):\n    pass\nclass Net:\n    def __init__(self, cfg):\n        build(**cfg)\n",
        "class Net:\n    def __init__(self, cfg):\n        for k, v in cfg.items():\n            setattr(self, k, v)\n"
        "        print(self.key)\n",
        "from dataclasses import dataclass\n@dataclass\nclass Settings:\n    key: int = 1\n"
        "class Net:\n    def __init__(self, cfg):\n        self.s = Settings(**cfg)\n",
        "class Net:\n    def __init__(self, cfg):\n        cfg['key'] += 1\n",
        "class Net:\n    def __init__(self, cfg):\n        self.d = item(cfg, 'key')\n",
    ],
)
def test_a_key_that_may_be_read(tmp_path: Path, net: str) -> None:
    assert lost(tmp_path, sets("model_cfg['key'] = args.x"), net) == ""


@pytest.mark.parametrize(
    "net",
    [
        "class Net:\n    def __init__(self, cfg):\n        self.key = 1\n        print(self.key)\n",
        "class Net:\n    def __init__(self, cfg):\n        self.d = cfg['depth'] == 'key'\n",
        "class Net:\n    def __init__(self, cfg, kind='key'):\n        self.kind = kind\n",
        "no_decay = ['bias', 'key']\nclass Net:\n    def __init__(self, cfg):\n"
        "        self.p = [n for n in names if any(w in n for w in no_decay)]\n",
        'class Net:\n    """A net: {"key": 1}."""\n    def __init__(self, cfg):\n        pass  # cfg["key"]\n',
        "class Net:\n    def __init__(self, cfg):\n        cfg['key'] = 2\n",
    ],
)
def test_the_same_word_for_something_else_is_no_read(tmp_path: Path, net: str) -> None:
    assert "which nothing reads" in lost(tmp_path, sets("model_cfg['key'] = args.x"), net)


def test_a_read_outside_of_the_training_does_not_count(tmp_path: Path) -> None:
    assert lost(tmp_path, sets("model_cfg['key'] = args.x"), NET, app="print(cfg['key'])\n")


@pytest.mark.parametrize(
    "setup",
    [
        sets("model_cfg['key'] = args.x; build(args.x)"),
        sets("model_cfg['key'] = build(args.x)"),
        sets("model_cfg['key'] = args.x; y = args.x; build(y)"),
        sets("model_cfg['key'] = args.x; build()"),
        sets("model_cfg[args.x] = 1"),
        sets("model_cfg['key'] = args.x; model_cfg['depth'] = args.x"),
        sets("import os; os.environ['KEY'] = str(args.x)").replace("os.environ", "environ"),
        sets("args.y = args.x"),
        sets("return args.x"),
    ],
)
def test_a_value_that_does_anything_else(tmp_path: Path, setup: str) -> None:
    net = NET if "environ" not in setup else "class Net:\n    def __init__(self, cfg):\n        self.d = cfg['KEY']\n"
    assert lost(tmp_path, setup, net) == ""


def test_a_value_that_goes_through_a_name_a_test_and_a_message(tmp_path: Path) -> None:
    setup = sets(
        "first = int(args.x)\n        if first > 0:\n            model_cfg['key'] = first\n"
        "        else:\n            raise ValueError(f'{first} is too small')"
    )
    assert lost(tmp_path, setup, NET) == "sets key of model_cfg at src/setup.py:7, which nothing reads"


@pytest.mark.parametrize(
    "net",
    [
        "class Net:\n    def __init__(self, cfg):\n        foreign(**cfg['encoder']['small'])\n",
        "class Net:\n    def __init__(self, cfg):\n        foreign(cfg['encoder']['small'])\n",
        "class Net:\n    def __init__(self, cfg):\n        part = cfg['encoder'][kind]\n        foreign(part)\n",
        "class Net:\n    def __init__(self, cfg):\n        all = {**cfg['encoder']['small']}\n        foreign(all)\n",
        "import transformers\nclass Net:\n    def __init__(self, cfg):\n        c = transformers.T5Config()\n"
        "        c.update(cfg['encoder']['small'])\n",
        "def own(part):\n    foreign(**part)\nclass Net:\n    def __init__(self, cfg):\n"
        "        own(cfg['encoder']['small'])\n",
        "class Net:\n    def __init__(self, cfg):\n        model_cfg = cfg\n        foreign(**model_cfg)\n",
    ],
)
def test_a_dictionary_that_goes_where_its_keys_are_read_unseen(tmp_path: Path, net: str) -> None:
    assert lost(tmp_path, sets("model_cfg['encoder']['small']['key'] = args.x"), net) == ""


def test_a_dictionary_that_goes_into_the_repositorys_own_class(tmp_path: Path) -> None:
    net = (
        "from settings import Settings\nclass Net:\n    def __init__(self, cfg):\n        own = Settings()\n"
        "        own.update(cfg['encoder']['small'])\n        self.width = own.width\n"
    )
    setup = sets("model_cfg['encoder']['small']['wdith'] = args.x")
    assert lost(
        tmp_path, setup, net, settings="class Settings(Base):\n    def __init__(self, width=1):\n        pass\n"
    )


# A copy, of which the original is read.

COPIES = """\
from copy import deepcopy
from config import shared_cfg as default_cfg
def update(args):
    shared_cfg = deepcopy(default_cfg)
    if args.x is not None:
        shared_cfg["BSZ"]["sub"] = int(args.x)
    return shared_cfg
"""
LOADERS = """\
from config import shared_cfg
class Net:
    def __init__(self, cfg):
        self.sub = shared_cfg["BSZ"]["sub"]
"""
WORDS = "sets BSZ.sub of a copy made at src/setup.py:4; src/net.py:4 reads the original"


def test_a_copy_that_the_loaders_do_not_see(tmp_path: Path) -> None:
    assert lost(tmp_path, COPIES, LOADERS) == WORDS


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from copy import deepcopy", "import copy"),
        ("from config import shared_cfg as default_cfg", "import config"),
        ("def update(args):\n    shared_cfg = deepcopy(default_cfg)\n",
         "def make():\n    return 1, deepcopy(default_cfg)\n_, made = make()\ndef update(args, shared_cfg=made):\n"),
    ],
)  # fmt: skip
def test_a_copy_by_another_way(tmp_path: Path, old: str, new: str) -> None:
    setup = COPIES.replace(old, new)
    if "import copy\n" in setup:
        setup = setup.replace("deepcopy(", "copy.deepcopy(")
    if "import config\n" in setup:
        setup = setup.replace("deepcopy(default_cfg", "deepcopy(config.shared_cfg")
    assert lost(tmp_path, setup, LOADERS).endswith("src/net.py:4 reads the original")


@pytest.mark.parametrize(
    "read", ['shared_cfg["BSZ"]["sub"]', "shared_cfg['BSZ'].get('sub')", 'shared_cfg["BSZ"]', 'shared_cfg["BSZ"][name]']
)
def test_what_reads_the_original(tmp_path: Path, read: str) -> None:
    assert lost(tmp_path, COPIES, LOADERS.replace('shared_cfg["BSZ"]["sub"]', read)) == WORDS


@pytest.mark.parametrize(
    ("setup", "net"),
    [
        (COPIES, LOADERS.replace('shared_cfg["BSZ"]["sub"]', 'cfg["BSZ"]["sub"]')),
        (COPIES, LOADERS + '        self.other = cfg["BSZ"]["sub"]\n'),
        (COPIES, LOADERS + '        self.cfg = cfg\n        self.other = self.cfg["BSZ"]\n'),
        (COPIES, LOADERS.replace('["sub"]', '["local"]') + "        print(cfg['sub'])\n"),
        (COPIES, LOADERS.replace("(self, cfg)", "(self, shared_cfg)")),
        (COPIES.replace("deepcopy(default_cfg)", "default_cfg"), LOADERS),
        (COPIES.replace("deepcopy(default_cfg)", "dict(default_cfg)"), LOADERS),
        (COPIES + "def back(cfg):\n    default_cfg['BSZ'] = cfg['BSZ']\n", LOADERS),
        (COPIES.replace("    return", "    default_cfg.update(shared_cfg)\n    return"), LOADERS),
        (COPIES.replace("import shared_cfg as default_cfg", "import other_cfg as default_cfg"), LOADERS),
    ],
)
def test_a_copy_or_none_that_may_be_seen(tmp_path: Path, setup: str, net: str) -> None:
    assert lost(tmp_path, setup, net) == ""


def test_two_values_of_which_one_is_read_of_the_copy_too(tmp_path: Path) -> None:
    setup = COPIES.replace("    return", "        shared_cfg['BSZ']['local'] = int(args.x)\n    return")
    net = LOADERS + "        self.local = shared_cfg['BSZ']['local']\n        self.shape = cfg['BSZ']['local']\n"
    assert lost(tmp_path, setup, net) == WORDS


# The arguments themselves.


@pytest.mark.parametrize("line", ["print(vars(args)['x'])", "run(**vars(args))", "foreign(args)"])
def test_arguments_that_go_out_of_sight_may_be_read(tmp_path: Path, line: str) -> None:
    modules = {"setup": sets("model_cfg['dpeth'] = args.x"), "net": NET, "config": CONFIG}
    flag = repository(tmp_path, TRAIN + line + "\n", **modules).flag("x")
    assert flag is not None
    assert flag.lost == ""


def test_a_flag_that_is_read_nowhere_is_dead_and_not_lost(tmp_path: Path) -> None:
    train = TRAIN.replace("args = parser", "parser.add_argument('--dead')\nargs = parser")
    flag = repository(tmp_path, train, setup=sets("model_cfg['depth'] = args.x"), net=NET, config=CONFIG).flag("dead")
    assert flag is not None
    assert (flag.reads, flag.lost) == ((), "")
