"""Values of config.py, set where its dictionaries are made: what train.py and its modules then read."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from bridge_runs import Ended, start

SHOW = "import json\nfrom config.config import *\nprint('seen', json.dumps({}))\n"


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Ended]:
    """Write config/config.py and train.py, start it with values."""

    def with_values(config: str, train: str, values: dict[str, object], **how: object) -> Ended:
        folder = tmp_path / "src"
        (folder / "config").mkdir(parents=True, exist_ok=True)
        (folder / "config" / "config.py").write_text(config)
        (folder / "train.py").write_text(train)
        plan = tmp_path / "plan" / "bridge.json"
        return start(folder / "train.py", plan, config={folder / "config" / "config.py": values}, **how)  # type: ignore[arg-type]

    return with_values


def seen(ended: Ended) -> object:
    assert ended.code == 0, ended.all
    return json.loads(next(line for line in ended.out.splitlines() if line.startswith("seen ")).removeprefix("seen "))


def test_what_is_made_of_a_dictionary_further_down_has_the_value(run: Callable[..., Ended]) -> None:
    config = """\
from copy import deepcopy
cfg = {"BSZ": {"sub": 12}, "other": [1]}
copied = deepcopy(cfg)
twice = 2 * cfg["BSZ"]["sub"]
"""
    train = SHOW.format("[cfg, copied, twice]")
    assert seen(run(config, train, {"cfg.BSZ.sub": 6})) == [{"BSZ": {"sub": 6}, "other": [1]}] * 2 + [12]


def test_a_value_that_the_file_changes_again_is_set_again(run: Callable[..., Ended]) -> None:
    config = "cfg = {'a': 1}\ncfg['a'] = 2\ncfg = dict(cfg, a=3)\n"
    assert seen(run(config, SHOW.format("cfg"), {"cfg.a": 9})) == {"a": 9}


def test_a_scalar_that_the_file_binds_again_is_set_before_it_is_used(run: Callable[..., Ended]) -> None:
    config = "rate = 16000\nrate = rate * 2\nframes = rate // 10\nnested = {'rate': rate}\n"
    assert seen(run(config, SHOW.format("[rate, frames, nested]"), {"rate": 8000})) == [8000, 800, {"rate": 8000}]


BLOCKS = {
    "if": "if True:\n    cfg = {'a': 1}\n    copied = dict(cfg)",
    "else": "if False:\n    pass\nelif False:\n    pass\nelse:\n    cfg = {'a': 1}\n    copied = dict(cfg)",
    "try": "try:\n    cfg = {'a': 1}\n    copied = dict(cfg)\nfinally:\n    pass",
    "except": "try:\n    import nothing_\nexcept ImportError:\n    cfg = {'a': 1}\n    copied = dict(cfg)",
    "try else": "try:\n    pass\nexcept OSError:\n    pass\nelse:\n    cfg = {'a': 1}\n    copied = dict(cfg)",
    "finally": "try:\n    pass\nfinally:\n    cfg = {'a': 1}\n    copied = dict(cfg)",
    "with": "import contextlib\nwith contextlib.suppress(OSError):\n    cfg = {'a': 1}\n    copied = dict(cfg)",
    "for": "for _ in range(2):\n    cfg = {'a': 1}\n    copied = dict(cfg)",
    "while": "while True:\n    cfg = {'a': 1}\n    copied = dict(cfg)\n    break",
    "match": "match 1:\n    case 1:\n        cfg = {'a': 1}\n        copied = dict(cfg)",
    "nested": "if True:\n    with open(__file__):\n        cfg = {'a': 1}\n        copied = dict(cfg)",
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS.keys())
def test_what_a_block_makes_of_a_dictionary_has_the_value(run: Callable[..., Ended], block: str) -> None:
    assert seen(run(block + "\n", SHOW.format("[cfg, copied]"), {"cfg.a": 2})) == [{"a": 2}, {"a": 2}]


def test_functions_and_classes_of_the_file_are_left_as_they_are(run: Callable[..., Ended]) -> None:
    config = """\
cfg = {"a": 1}
def doubled():
    "Doc."
    a = 5
    return 2 * cfg["a"] + a
class Shape:
    a = 1
made = [doubled(), Shape.a, doubled.__doc__]
"""
    assert seen(run(config, SHOW.format("made"), {"cfg.a": 2})) == [9, 1, "Doc."]


def test_a_docstring_and_future_imports_stay_first(run: Callable[..., Ended]) -> None:
    config = '"""Doc."""\nfrom __future__ import annotations\nfrom __future__ import division\ncfg = {"a": 1}\n'
    train = "import json, config.config as c\nprint('seen', json.dumps([c.cfg, c.__doc__]))\n"
    assert seen(run(config, train, {"cfg.a": 2})) == [{"a": 2}, "Doc."]


def test_a_scalar_a_tuple_and_a_key_that_an_if_sets(run: Callable[..., Ended]) -> None:
    config = """\
rate = 16000
pair = {"size": (1, 2), "nested": ((1, 2), (3, 4))}
if rate > 1:
    late = {"k": None}
else:
    late = {}
frames = rate // 10
"""
    values = {"rate": 8000, "pair.size": [3, 4], "pair.nested": [[5, 6], [7, 8]], "late.k": True}
    train = SHOW.format("[rate, frames, repr(pair), late]")
    expected = [8000, 800, "{'size': (3, 4), 'nested': ((5, 6), (7, 8))}", {"k": True}]
    assert seen(run(config, train, values)) == expected


def test_1_is_not_true(run: Callable[..., Ended]) -> None:
    assert seen(run("cfg = {'a': True}\n", SHOW.format("cfg"), {"cfg.a": 1})) == {"a": 1}


def test_a_value_that_is_there_already_counts_as_set(run: Callable[..., Ended]) -> None:
    ended = run("cfg = {'a': 1}\n", SHOW.format("cfg"), {"cfg.a": 1})
    assert seen(ended) == {"a": 1}
    assert "cfg.a" in ended.patched()


def test_the_report_says_what_it_was(run: Callable[..., Ended]) -> None:
    ended = run("cfg = {'a': 1}\n", SHOW.format("cfg"), {"cfg.a": 2})
    assert ended.patched() == {"cfg.a": "2 (was 1)"}
    assert "[amt_hydra bridge] cfg.a: 2 (was 1)" in ended.out
    first, *_, last = ended.events()
    assert first == {"event": "plan", "rank": 0, "hash": ended.hash}
    assert last["event"] == "end"


def test_a_module_imported_under_two_names_has_it_twice(run: Callable[..., Ended]) -> None:
    train = """\
import json, sys
import config.config as one
sys.path.insert(0, "config")
sys.modules.pop("config")
import config as two
print("seen", json.dumps([one.cfg, two.cfg, one is two]))
"""
    assert seen(run("cfg = {'a': 1}\n", train, {"cfg.a": 2})) == [{"a": 2}, {"a": 2}, False]


def test_a_module_that_is_reloaded_has_it_again(run: Callable[..., Ended]) -> None:
    train = "import importlib, json\nimport config.config as c\nprint('seen', json.dumps(importlib.reload(c).cfg))\n"
    assert seen(run("cfg = {'a': 1}\n", train, {"cfg.a": 2})) == {"a": 2}


def test_a_module_that_an_editable_install_finds_has_it(run: Callable[..., Ended]) -> None:
    train = """\
import importlib.util, json, os, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "family_config":
            return importlib.util.spec_from_file_location(name, os.path.abspath("config/config.py"))

sys.meta_path.append(Finder())
import family_config
print("seen", json.dumps(family_config.cfg))
"""
    assert seen(run("cfg = {'a': 1}\n", train, {"cfg.a": 2})) == {"a": 2}


def test_a_key_of_train_py_itself_is_set(tmp_path: Path) -> None:
    train = tmp_path / "train.py"
    train.write_text("import json\ncfg = {'a': 1}\nprint('seen', json.dumps(cfg))\n")
    assert seen(start(train, tmp_path / "bridge.json", config={train: {"cfg.a": 2}})) == {"a": 2}


def test_a_key_with_a_capabilitys_name_is_a_key(run: Callable[..., Ended]) -> None:
    ended = run("csv = 1\n", "import config.config\n", {"csv": 2}, added={"csv": {}})
    assert ended.code == 78, "no logger was replaced"
    assert "never applied: csv" in ended.err


@pytest.mark.parametrize("start_method", ["fork", "spawn", "forkserver"])
def test_worker_processes_have_it(run: Callable[..., Ended], start_method: str) -> None:
    train = f"""\
import json, multiprocessing
from config.config import cfg

def work(results):
    results.put(cfg["a"])

if __name__ == "__main__":
    context = multiprocessing.get_context({start_method!r})
    results = context.SimpleQueue()
    worker = context.Process(target=work, args=(results,))
    worker.start()
    worker.join()
    print("seen", json.dumps([results.get(), worker.exitcode]))
"""
    assert seen(run("cfg = {'a': 1}\n", train, {"cfg.a": 2})) == [2, 0]


def test_no_bytecode_is_taken_or_left(run: Callable[..., Ended], tmp_path: Path) -> None:
    train, source = SHOW.format("cfg"), tmp_path / "src"
    run("cfg = {'a': 1}\n", train, {"cfg.a": 1})

    def ordinary() -> str:
        words = [sys.executable, "train.py"]
        return subprocess.run(words, cwd=source, env={}, capture_output=True, text=True, check=True, timeout=60).stdout

    before = ordinary()
    assert list(source.rglob("config.*.pyc"))
    assert seen(run("cfg = {'a': 1}\n", train, {"cfg.a": 2})) == {"a": 2}
    assert before == ordinary() == 'seen {"a": 1}\n'


def test_a_fault_in_config_shows_its_own_line(run: Callable[..., Ended]) -> None:
    config = "cfg = {'a': 1}\n\n\ncfg['b'] = cfg['nothing']\n"
    ended = run(config, "import config.config\n", {"cfg.a": 2})
    assert ended.code == 1
    assert 'config.py", line 4, in <module>' in ended.err
    assert "cfg['b'] = cfg['nothing']" in ended.err


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("cfg.BSZ.bus", "has no cfg.BSZ.bus: no 'bus' among sub"),
        ("cfg.BZS.sub", "no 'BZS' among BSZ"),
        ("fcg.BSZ", "no 'fcg' among cfg"),
        ("cfg.BSZ.sub.deeper", "no 'deeper' among nothing"),
    ],
)
def test_a_key_that_is_not_there_is_refused_before_training(run: Callable[..., Ended], key: str, words: str) -> None:
    ended = run("cfg = {'BSZ': {'sub': 1}}\n", "from config.config import cfg\nprint('trained')\n", {key: 2})
    assert ended.code == 78
    assert words in ended.err
    assert "trained" not in ended.out
    assert words in ended.events()[-1]["message"]


def test_a_config_that_is_never_imported_is_refused_at_the_end(run: Callable[..., Ended]) -> None:
    ended = run("cfg = {'a': 1}\n", "print('over')\n", {"cfg.a": 2})
    assert ended.code == 78
    assert "never applied: cfg.a of " in ended.err
    assert "config.py" in ended.err
