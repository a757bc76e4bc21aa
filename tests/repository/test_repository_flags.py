"""The argparse reader, against argparse itself wherever it can be asked."""

import argparse
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_repository import repository

from amt_hydra.repository import Computed, Flag


def script(body: str, after: str = "") -> str:
    """A train.py that adds flags to its parser, parses, and does something afterwards."""
    parser = "import argparse\nparser = argparse.ArgumentParser()\n"
    return f"{parser}{textwrap.dedent(body)}\nargs = parser.parse_args()\n{after}\n"


def flags(root: Path, body: str, **modules: str) -> dict[str, Flag]:
    text = (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        + textwrap.dedent(body)
        + "\nargs = parser.parse_args()\n"
    )
    return {flag.dest: flag for flag in repository(root, text, **modules).flags}


# argparse as the oracle: the same calls, made and read.

WORD = st.text("abcxyz", min_size=1, max_size=4)
LONG = st.lists(WORD, min_size=1, max_size=3).flatmap(
    lambda words: st.lists(st.sampled_from("-_"), min_size=len(words) - 1, max_size=len(words) - 1).map(
        lambda seps: "--" + words[0] + "".join(s + w for s, w in zip(seps, words[1:], strict=True))
    )
)
SHORT = WORD.map(lambda word: f"-{word}")
LITERAL = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.text("ab/é' \"", max_size=4),
    st.lists(st.integers(-2, 2), max_size=2),
    st.tuples(st.integers(-2, 2), st.text("a", max_size=1)),
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[tuple[str, ...], dict[str, object]]:
    keywords: dict[str, object] = {}
    action = draw(st.sampled_from([None, "store", "store_true", "store_false", "append", "count", "store_const"]))
    positional = action in (None, "store", "append") and draw(st.integers(0, 4)) == 0
    names: tuple[str, ...]
    if positional:
        names = (draw(WORD | st.sampled_from(["with-dash", "under_score"])),)
    else:
        names = tuple(draw(st.lists(SHORT | LONG, min_size=1, max_size=3, unique=True)))
        if draw(st.booleans()):
            keywords["dest"] = draw(WORD)
        if draw(st.booleans()):
            keywords["required"] = draw(st.booleans())
    if action is not None:
        keywords["action"] = action
    if action == "store_const":
        keywords["const"] = draw(LITERAL)
    if action in (None, "store", "append"):
        nargs = draw(st.sampled_from([None, 1, 2, "?", "*", "+", "..."]))
        if nargs is not None and not (action == "append" and nargs == "..."):
            keywords["nargs"] = nargs
        if draw(st.booleans()):
            keywords["choices"] = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    if draw(st.booleans()):
        keywords["default"] = draw(LITERAL)
    return names, keywords


@given(st.lists(calls(), min_size=1, max_size=6))
def test_reads_what_argparse_makes_of_the_same_calls(made: list[tuple[tuple[str, ...], dict[str, object]]]) -> None:
    import tempfile

    parser = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
    lines = []
    for names, keywords in made:
        try:
            parser.add_argument(*names, **keywords)  # type: ignore[arg-type]
        except (ValueError, TypeError):
            continue
        written = [repr(name) for name in names] + [f"{key}={value!r}" for key, value in keywords.items()]
        lines.append((f"parser.add_argument({', '.join(written)})", parser._actions[-1], names))
    with tempfile.TemporaryDirectory() as folder:
        text = "import argparse\nparser = argparse.ArgumentParser()\n" + "\n".join(line for line, _, _ in lines)
        found = repository(Path(folder), text).flags
    assert len(found) == len(lines)
    for flag, (line, action, names) in zip(found, lines, strict=True):
        assert flag.dest == action.dest, line
        assert flag.options == (names if names[0].startswith("-") else ())
        assert flag.default == action.default, line
        assert flag.choices == (tuple(action.choices) if action.choices is not None else None)
        if not isinstance(action, argparse._StoreTrueAction | argparse._StoreFalseAction | argparse._StoreConstAction):
            assert flag.nargs == (action.nargs if "nargs" in line else None)
        if flag.options:
            assert flag.required == action.required, line
        elif "nargs='*'" in line or "nargs='...'" in line:
            assert not flag.required  # argparse says required, and accepts none
        else:
            assert flag.required == action.required, line


def test_one_option_may_mix_dash_and_underscore(tmp_path: Path) -> None:
    found = flags(tmp_path, "parser.add_argument('-xiaug', '--uhat-intra-stem_augment', type=str)")
    assert found["uhat_intra_stem_augment"].option == "--uhat-intra-stem_augment"


def test_type_is_the_name_as_written(tmp_path: Path) -> None:
    found = flags(
        tmp_path,
        """
        from utils.utils import str2bool
        import utils.utils as u
        parser.add_argument("--a", type=str2bool, default=None)
        parser.add_argument("--b", type=u.str2bool)
        parser.add_argument("--c", type=lambda text: int(text))
        parser.add_argument("--d")
        parser.add_argument("--e", action=argparse.BooleanOptionalAction, default=True)
        parser.add_argument("--f", action="store_true")
        parser.add_argument("--g", type=int, nargs=argparse.REMAINDER)
        """,
        utils__utils="def str2bool(v): return v == '1'",
    )
    assert [found[name].type for name in "abcdefg"] == [
        "str2bool",
        "str2bool",
        "lambda text: int(text)",
        "str",
        "bool",
        "bool",
        "int",
    ]
    assert found["e"].action == "BooleanOptionalAction"
    assert found["e"].default is True
    assert found["g"].nargs == "..."


def test_defaults_that_are_names(tmp_path: Path) -> None:
    found = flags(
        tmp_path,
        """
        from config import shared_cfg, LR as RATE
        import config
        STEPS = 2 * 1000
        parser.add_argument("--steps", type=int, default=STEPS)
        parser.add_argument("--rate", type=float, default=RATE)
        parser.add_argument("--warmup", type=int, default=shared_cfg["LR"]["warmup"])
        parser.add_argument("--module", default=config.LR)
        parser.add_argument("--range", nargs=2, type=int, default=(-2, 2))
        parser.add_argument("--minus", type=int, default=-1)
        parser.add_argument("--joined", default="a" "b")
        parser.add_argument("--computed", default=make())
        """,
        config="LR = 1e-3\nshared_cfg = {'LR': {'warmup': 500}}\n",
    )
    assert found["steps"].default == 2000
    assert found["rate"].default == 1e-3
    assert found["warmup"].default == 500
    assert found["module"].default == 1e-3
    assert found["range"].default == (-2, 2)
    assert found["minus"].default == -1
    assert found["joined"].default == "ab"
    assert found["computed"].default == Computed("make()")


def test_a_parser_in_a_function_with_groups(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        """
        from argparse import ArgumentParser

        def parse(argv=None):
            p = ArgumentParser("x")
            p.add_argument("exp_id")
            group = p.add_argument_group("model")
            group.add_argument("--d-feat", type=int)
            one = p.add_mutually_exclusive_group()
            one.add_argument("--fast", action="store_true")
            one.add_argument("--slow", dest="fast", action="store_false")
            return p.parse_args(argv)

        def main():
            opt = parse()
            print(opt.exp_id, opt.fast)

        main()
        """,
    )
    assert [f.dest for f in found.flags] == ["exp_id", "d_feat", "fast", "fast"]
    assert [len(f.reads or ()) for f in found.flags] == [1, 0, 1, 1]
    assert found.problems == ()


def test_builders_in_a_sibling_module(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        """
        import argparse
        import options
        from options import add_model, Extra
        from cli import build

        parser = build()
        options.add_data(parser)
        add_model(parser)
        Extra.add_specific(parser)
        args = parser.parse_args()
        """,
        options="""
        import argparse
        def add_data(p):
            p.add_argument("--data-home")
        def add_model(parser):
            add = parser.add_argument
            add("--d-model", type=int, default=WIDTH)
        class Extra:
            @staticmethod
            def add_specific(parent):
                parent.add_argument("--extra")
        WIDTH = 512
        if __name__ == "__main__":
            p = argparse.ArgumentParser()
            p.add_argument("--only-as-script")
        def never_called():
            p = argparse.ArgumentParser()
            p.add_argument("--other-program")
        """,
        cli="""
        import argparse
        def build():
            parser = argparse.ArgumentParser()
            parser.add_argument("exp_id")
            return parser
        """,
    )
    assert [f.dest for f in found.flags] == ["exp_id", "data_home", "d_model", "extra"]
    assert found.flag("d_model").default == 512  # type: ignore[union-attr]
    assert found.flag("data_home").place.file.name == "options.py"  # type: ignore[union-attr]


def test_a_thin_train_py(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        "from amt.trainer import main\nmain()\n",
        amt__trainer="""
        from .options import parse
        def main():
            args = parse()
            fit(args)
        def fit(args):
            print(args.lr)
        """,
        amt__options="""
        import argparse
        def parse():
            parser = argparse.ArgumentParser()
            parser.add_argument("--lr", type=float)
            parser.add_argument("--dead")
            return parser.parse_args()
        """,
    )
    assert [(f.dest, len(f.reads or ())) for f in found.flags] == [("lr", 1), ("dead", 0)]


def test_set_defaults_before_and_after(tmp_path: Path) -> None:
    found = flags(
        tmp_path,
        """
        parser.set_defaults(late=7, mine=1)
        parser.add_argument("--late", type=int)
        parser.add_argument("--mine", type=int, default=2)
        parser.add_argument("--early", type=int, default=3)
        parser.set_defaults(early=4)
        """,
    )
    assert {name: flag.default for name, flag in found.items()} == {"late": 7, "mine": 2, "early": 4}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("for name in names:\n    parser.add_argument(f'--{name}')", "computed"),
        ("for name in ('a', 'b'):\n    parser.add_argument('--' + name)", "computed"),
        ("parser.add_argument(*options, **keywords)", "computed"),
        ("pl.Trainer.add_argparse_args(parser)", "may add flags"),
    ],
)
def test_what_cannot_be_listed_is_said(tmp_path: Path, body: str, words: str) -> None:
    found = repository(tmp_path, script(body, "print(args.anything)"))
    assert found.flags == ()
    assert [problem for problem in found.problems if words in problem]
    assert found.undefined == {}


def test_keywords_that_cannot_be_decided_keep_the_flag(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        """
        import argparse
        parser = argparse.ArgumentParser()
        COMMON = dict(type=int, default=3)
        parser.add_argument("--known", **COMMON)
        parser.add_argument("--unknown", default=1, **make())
        """,
    )
    assert [(f.dest, f.default) for f in found.flags] == [("known", 3), ("unknown", 1)]
    assert found.flags[0].type == "int"
    assert len(found.problems) == 1
    assert "src/train.py:6" in found.problems[0]


# Where flags are read.

UPSTREAM = """
import argparse
from init_train import initialize, update_config
parser = argparse.ArgumentParser()
parser.add_argument("exp_id")
parser.add_argument("-b", "--base-name", default="google/t5")
parser.add_argument("--n-mels", type=int)
parser.add_argument("--strategy", default="auto")
args = parser.parse_args()
trainer = initialize(args, stage="train")
update_config(config_args=args)

def main():
    print(args.strategy.lower())

if __name__ == "__main__":
    main()
"""
INIT_TRAIN = """
import os
def initialize(args, stage):
    if "@" in args.exp_id:
        args.exp_id, name = args.exp_id.split("@")
    logger.experiment.config.update(args, allow_val_change=True)
    def inner():
        return args.exp_id
def update_config(config_args):
    if config_args.n_mels is not None:
        pass
def unrelated(args):
    return args.base_name
"""


def test_reads_follow_parameters_and_dead_flags_stay_dead(tmp_path: Path) -> None:
    found = repository(tmp_path, UPSTREAM, init_train=INIT_TRAIN)
    reads = {f.dest: [(p.file.name, p.line) for p in f.reads or ()] for f in found.flags}
    assert reads == {
        "exp_id": [("init_train.py", 4), ("init_train.py", 5), ("init_train.py", 8)],
        "base_name": [],
        "n_mels": [("init_train.py", 10)],
        "strategy": [("train.py", 14)],
    }
    assert found.flag("base_name").reads == ()  # type: ignore[union-attr]
    assert found.problems == ()


@pytest.mark.parametrize(
    "use",
    [
        "run(**vars(args))",
        "cfg = vars(args)",
        "x = args.__dict__",
        "value = getattr(args, name)",
        "mp.spawn(work, args=(0, args))",
        "everything = [args]",
        "foreign.Trainer.from_argparse_args(args)",
        "holder.args = args",
        "table['args'] = args",
        "import foreign\nforeign.use(args)",
    ],
)
def test_out_of_sight_is_not_dead(tmp_path: Path, use: str) -> None:
    added = "parser.add_argument('--a')\nparser.add_argument('--b')"
    found = repository(tmp_path, script(added, f"print(args.b)\n{use}"))
    assert found.flag("a").reads is None  # type: ignore[union-attr]
    assert len(found.flag("b").reads or ()) == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "use",
    ["print(args)", "wandb.init(config=args)", "logger.log_hyperparams(args)", "print(vars(args))", "x = f'{args}'"],
)
def test_showing_the_arguments_reads_none(tmp_path: Path, use: str) -> None:
    found = repository(tmp_path, script("parser.add_argument('--a')", use))
    assert found.flag("a").reads == ()  # type: ignore[union-attr]


def test_the_many_ways_to_carry_arguments(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        """
        import argparse
        from copy import deepcopy
        from model import Model

        class Runner:
            def __init__(self, args):
                self.args = args
            def run(self):
                return self.args.by_self

        class Child(Runner):
            def more(self):
                return self.args.by_child

        def parser():
            p = argparse.ArgumentParser()
            for_all = ("by_self", "by_child")
            p.add_argument("--by-self"); p.add_argument("--by-child"); p.add_argument("--by-known")
            p.add_argument("--by-copy"); p.add_argument("--by-getattr"); p.add_argument("--by-model")
            p.add_argument("--by-method"); p.add_argument("--by-lambda"); p.add_argument("--by-aug", type=int)
            p.add_argument("--by-hparams"); p.add_argument("--dead"); p.add_argument("--shadowed")
            return p

        def shadow(args):
            return args.shadowed

        def main():
            args, rest = parser().parse_known_args()
            Runner(args).run()
            print(args.by_known)
            other = deepcopy(args)
            other.by_copy.strip()
            getattr(args, "by_getattr", None)
            model = Model(hparams=args)
            model.configure(args)
            key = lambda x: args.by_lambda
            args.by_aug += 1
            args.mine = 3
            print(args.mine)
            shadow(rest)

        main()
        """,
        model="""
        class Model(Base):
            def __init__(self, hparams):
                self.width = hparams.by_model
                self.save_hyperparameters(hparams)
            def configure(self, options):
                return options.by_method
            def training_step(self):
                return self.hparams.by_hparams
        """,
    )
    reads = {f.dest: len(f.reads) if f.reads is not None else None for f in found.flags}
    assert reads == dict.fromkeys(reads, 1) | {"dead": 0, "shadowed": 0}
    assert found.problems == ()


def test_a_read_that_no_flag_defines_is_named(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--a")
        args = parser.parse_args()
        print(args.a, args.foo)
        if hasattr(args, "bar"):
            print(args.bar)
        """,
    )
    assert {name: place.line for name, place in found.undefined.items()} == {"foo": 6}
    assert found.problems == ()


def test_another_script_with_its_own_parser_is_not_read(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        UPSTREAM,
        init_train=INIT_TRAIN,
        test="""
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--base-name")
        parser.add_argument("--only-in-test")
        args = parser.parse_args()
        print(args.base_name, args.nothing)
        """,
    )
    assert [f.dest for f in found.flags] == ["exp_id", "base_name", "n_mels", "strategy"]
    assert found.flag("base_name").reads == ()  # type: ignore[union-attr]
    assert found.problems == ()


def test_arguments_imported_from_another_module(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        "from options import args\nimport options\nprint(args.a, options.args.b)\n",
        options="""
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--a")
        parser.add_argument("--b")
        parser.add_argument("--c")
        args = parser.parse_args()
        """,
    )
    assert [(f.dest, len(f.reads or ())) for f in found.flags] == [("a", 1), ("b", 1), ("c", 0)]


def test_imports_in_a_circle_and_by_star(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        "from a import *\nargs = parse(DEFAULT)\nprint(args.x)\n",
        a="""
        import argparse
        from b import *
        from b import missing, DEFAULT
        def parse(default):
            parser = argparse.ArgumentParser()
            extend(parser)
            parser.add_argument("--y", default=missing)
            return parser.parse_args()
        """,
        b="""
        from a import *
        from a import missing, DEFAULT
        def extend(parser):
            parser.add_argument("--x", default=DEFAULT)
        """,
    )
    assert [(f.dest, str(f.default), len(f.reads or ())) for f in found.flags] == [
        ("x", "computed: DEFAULT", 1),
        ("y", "computed: missing", 0),
    ]
    assert found.problems == ()


def test_a_class_of_options(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        "from options import TrainOptions\nopt = TrainOptions().parse()\nprint(opt.lr)\n",
        options="""
        import argparse
        class Options:
            def __init__(self):
                self.parser = argparse.ArgumentParser()
                self.parser.add_argument("--lr", type=float)
                self.parser.add_argument("--dead")
            def parse(self):
                self.opt = self.parser.parse_args()
                return self.opt
        class TrainOptions(Options):
            pass
        """,
    )
    assert [(f.dest, len(f.reads or ())) for f in found.flags] == [("lr", 1), ("dead", 0)]


def test_a_constructor_that_a_base_class_has(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        script("parser.add_argument('--a')\nparser.add_argument('--b')", "from model import Model\nModel(args)"),
        model="from base import Base\nclass Model(Base):\n    pass\n",
        base="class Base:\n    def __init__(self, hp):\n        print(hp.a)\n",
    )
    assert [(f.dest, len(f.reads or ())) for f in found.flags] == [("a", 1), ("b", 0)]


def test_hyperparameters_kept_by_lightning(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        script("parser.add_argument('--a')", "from model import Model\nModel(args)"),
        model="class Model:\n    def __init__(self, args):\n        self.save_hyperparameters()\n",
    )
    assert found.flag("a").reads is None  # type: ignore[union-attr] # self.hparams.args.a, anywhere


def test_a_parser_of_ones_own_kind(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        """
        import argparse
        class Parser(argparse.ArgumentParser):
            pass
        parser = Parser()
        base = Parser(add_help=False)
        base.add_argument("--shared")
        commands = parser.add_subparsers(dest="command")
        fit = commands.add_parser("fit", parents=[base])
        fit.add_argument("--steps", type=int)
        fit.set_defaults(mode="fit")
        args = parser.parse_args()
        print(args.mode, args.steps, args.command)
        """,
    )
    assert [f.dest for f in found.flags] == ["shared", "steps"]
    assert len(found.problems) == 0


def test_a_parser_that_changes_how_flags_are_written_is_said(tmp_path: Path) -> None:
    found = repository(tmp_path, "import argparse\nparser = argparse.ArgumentParser(prefix_chars='+')\n")
    assert "prefix_chars" in found.problems[0]
