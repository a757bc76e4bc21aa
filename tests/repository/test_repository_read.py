"""Layouts, files that are hard to read, metrics and resumes; and that nothing of the target runs."""

import contextlib
import gc
import os
import sys
from pathlib import Path

import pytest
from small_repository import repository

from amt_hydra.errors import AmtError
from amt_hydra.repository import FAMILY, HOME, logs, read
from amt_hydra.repository.source import python_files

TRAIN = (
    "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('exp_id')\nargs = parser.parse_args()\n"
)


def family(root: Path) -> Path:
    for name, text in {
        "train": TRAIN,
        "config/config": "A = 1\n",
        "config/data_presets": "data_preset = {'x': {}}\n",
    }.items():
        path = root / "amt" / "src" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


# Layouts.


@pytest.mark.parametrize("inside", [".", "amt", "amt/src"])
def test_the_family_layout_from_each_of_its_folders(tmp_path: Path, inside: str) -> None:
    found = read(family(tmp_path) / inside)
    assert (found.root, found.layout, found.cwd) == (tmp_path, FAMILY, tmp_path / "amt" / "src")
    assert (found.config["A"].value, list(found.presets)) == (1, ["x"])


@pytest.mark.parametrize("inside", [".", "src"])
def test_the_home_layout_from_each_of_its_folders(tmp_path: Path, inside: str) -> None:
    repository(tmp_path, TRAIN)
    found = read(tmp_path / inside)
    assert (found.root, found.layout, found.train) == (tmp_path, HOME, tmp_path / "src" / "train.py")


def test_home_comes_before_family_and_a_given_layout_before_both(tmp_path: Path) -> None:
    repository(family(tmp_path), TRAIN)
    assert read(tmp_path).layout is HOME
    assert read(tmp_path, FAMILY).layout is FAMILY
    with pytest.raises(AmtError, match="no amt/src/train"):
        read(tmp_path / "src", FAMILY)


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path, TRAIN)
    monkeypatch.chdir(tmp_path)
    assert read(Path()).flags[0].place.file == tmp_path / "src" / "train.py"


def test_what_was_looked_for_is_named(tmp_path: Path) -> None:
    with pytest.raises(AmtError) as caught:
        read(tmp_path)
    assert "no src/train.py and no amt/src/train.py" in caught.value.message
    assert any("repo.path=" in fix for fix in caught.value.fix)
    assert any("python -m amt_hydra inspect" in fix for fix in caught.value.fix)
    with pytest.raises(AmtError, match="does not exist"):
        read(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(AmtError, match="is not a folder"):
        read(tmp_path / "file")


@pytest.mark.parametrize(
    "name", ["with space", 'it\'s "quoted"', "a=b,c", "採譜 モデル", "-dash", "new\nline", "%s {x}"]
)
def test_weird_paths(tmp_path: Path, name: str) -> None:
    root = family(tmp_path / name)
    (root / "amt" / "src" / "broken.py").write_text("import os\nos.environ[")
    found = read(root)
    assert found.flags[0].place.file == root / "amt" / "src" / "train.py"
    assert found.problems[0].startswith("amt/src/broken.py:2: does not parse")


# Nothing of the target runs.


def test_nothing_is_imported_or_executed(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    effect = f"\nimport pathlib\npathlib.Path({str(marker)!r}).write_text('x')\nimport sys\nsys.exit(9)\n"
    before = set(sys.modules)
    found = repository(
        tmp_path,
        TRAIN + "from options import X\nimport config\nparser.add_argument('--x', default=X)\n" + effect,
        options="X = 1" + effect,
        config=f"A = open({str(marker)!r}, 'w')\nB = f'{{open({str(marker)!r}, \"w\")}}'\n" + effect,
        data_presets="data_preset_single_cfg = {'a': exit()}" + effect,
        sitecustomize=effect,
    )
    assert [f.dest for f in found.flags] == ["exp_id", "x"]
    assert not marker.exists()
    assert not {"options", "config", "data_presets", "train"} & (set(sys.modules) - before)
    assert sorted(p.name for p in (tmp_path / "src").iterdir()) == [
        "config.py",
        "data_presets.py",
        "options.py",
        "sitecustomize.py",
        "train.py",
    ]


def test_the_collector_is_left_as_it_was(tmp_path: Path) -> None:
    repository(tmp_path, TRAIN)
    assert gc.isenabled()
    gc.disable()
    try:
        read(tmp_path)
        assert not gc.isenabled()
    finally:
        gc.enable()


# Files that are hard to read.


def put(root: Path, name: str, data: bytes) -> None:
    path = root / "src" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_encodings_and_line_ends(tmp_path: Path) -> None:
    put(tmp_path, "train.py", b"\xef\xbb\xbf" + TRAIN.replace("\n", "\r\n").encode() + b"x = os.environ.get('A')\r\n")
    put(tmp_path, "config.py", "# -*- coding: latin-1 -*-\nNAME = 'Köchel'\n".encode("latin-1"))
    put(
        tmp_path, "data_presets.py", "# coding: shift_jis\nデータ = 1\ndata_preset = {'採譜': {}}\n".encode("shift_jis")
    )
    put(tmp_path, "mac.py", b"import os\rx = 'a'; y = os.environ.get('B')\r")
    put(tmp_path, "empty.py", b"")
    found = read(tmp_path)
    assert found.flags[0].place.line == 3
    assert found.config["NAME"].value == "Köchel"
    assert found.presets["採譜"].place.line == 3
    assert [(s.name, s.expression, s.place.line) for s in found.switches] == [
        ("B", "os.environ.get('B')", 2),
        ("A", "os.environ.get('A')", 5),
    ]
    assert found.problems == ()


def test_text_of_a_computed_value_beside_wide_letters(tmp_path: Path) -> None:
    found = repository(tmp_path, config="名前 = '採譜'; 値 = f(名前)  # 、\n")
    assert str(found.config["値"].value) == "computed: f(名前)"


ELIF = "elif a:\n    pass\n"


@pytest.mark.parametrize(
    "text",
    [
        f"x = 1{'+1' * 3000}",
        f"x = a{'.b' * 3000}",
        f"x = a{'[0]' * 3000}",
        f"x = a{'()' * 3000}",
        f"if a:\n    pass\n{ELIF * 2000}",
        f"args{'.parse_args()' * 3000}",
    ],
)
@pytest.mark.parametrize("name", ["train", "config", "data_presets", "model"])
def test_deep_nesting_is_survived(tmp_path: Path, name: str, text: str) -> None:
    marks = "import os\nos.environ.get('A')\nself.log('a', 1)\ntrainer.fit(m, ckpt_path=last)\n"
    modules = {"train": TRAIN, name: TRAIN + marks + text + "\n"}
    with contextlib.suppress(AmtError):  # refused in words is fine too
        assert repository(tmp_path, **modules).flags[0].dest == "exp_id"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"def (:\n", "invalid syntax"),
        (b"import os\n\nx = (\n", "was never closed"),
        (b"x = '\xe9'\n", "utf-8"),
        (b"# coding: no-such\n", "unknown encoding"),
        (b"x = 1\x00\n", "null bytes"),
        (b"\x00\x01\x02\xff\xfe", ""),
        (b"x = " + b"(" * 5000, ""),
        (b"print 'python 2'\n", "Missing parentheses"),
    ],
)
def test_a_train_py_that_does_not_parse_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    put(tmp_path, "train.py", data)
    with pytest.raises(AmtError) as caught:
        read(tmp_path)
    assert f"{tmp_path}/src/train.py:" in caught.value.message
    assert words in caught.value.message


def test_other_files_that_do_not_parse_are_listed(tmp_path: Path) -> None:
    put(tmp_path, "train.py", TRAIN.encode())
    put(tmp_path, "config.py", b"A = \n")
    put(tmp_path, "model.py", b"import os\nos.environ.get('A') +\n")
    put(tmp_path, "innocent.py", b"%timeit nothing of interest\n")
    problems = read(tmp_path).problems
    assert [p.partition(" (")[0] for p in problems] == [
        "src/config.py:1: does not parse",
        "src/model.py:2: does not parse",
    ]


def test_files_that_cannot_be_read_are_listed(tmp_path: Path) -> None:
    put(tmp_path, "train.py", TRAIN.encode())
    put(tmp_path, "huge.py", b"#" * (5 * 1024 * 1024 + 1))
    (tmp_path / "src" / "folder.py").mkdir()
    (tmp_path / "src" / "gone.py").symlink_to("nowhere.py")
    os.mkfifo(tmp_path / "src" / "pipe.py")  # opening it would wait for ever
    secret = tmp_path / "src" / "secret.py"
    secret.write_text("x = 1\n")
    secret.chmod(0)
    problems = read(tmp_path).problems
    assert [p for p in problems if "huge.py" in p and "5 MB" in p]
    assert len(problems) == (1 if os.access(secret, os.R_OK) else 2)


def test_an_unreadable_train_py_is_refused(tmp_path: Path) -> None:
    put(tmp_path, "train.py", b"#" * (5 * 1024 * 1024 + 1))
    with pytest.raises(AmtError, match=r"train\.py: not read"):
        read(tmp_path)


def test_folders_that_are_left_out(tmp_path: Path) -> None:
    put(tmp_path, "train.py", TRAIN.encode())
    for folder in ("logs", "data", ".venv/lib", "__pycache__", "venv/site-packages", ".git"):
        put(tmp_path, f"{folder}/x.py", b"import os\nos.environ['OUT']\n")
    put(tmp_path, "data/__init__.py", b"")
    put(tmp_path, "utils/deep/x.py", b"import os\nos.environ['IN']\n")
    found = read(tmp_path)
    assert sorted((s.name, s.place.file.parent.name) for s in found.switches) == [("IN", "deep"), ("OUT", "data")]


def test_links_to_folders_are_followed_once(tmp_path: Path) -> None:
    put(tmp_path, "train.py", TRAIN.encode())
    shared = tmp_path / "elsewhere"
    shared.mkdir()
    (shared / "model.py").write_text("import os\nos.environ['A']\n")
    (tmp_path / "src" / "model").symlink_to(shared)
    (tmp_path / "src" / "again").symlink_to(shared)
    (shared / "loop").symlink_to(tmp_path / "src")
    (shared / "self").symlink_to(shared)
    found = read(tmp_path)
    assert [s.name for s in found.switches] == ["A"]


def test_a_large_tree_is_cut_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "train.py", TRAIN.encode())
    for number in range(30):
        put(tmp_path, f"many/m{number:02}.py", b"")
    monkeypatch.setattr("amt_hydra.repository.source.MAX_FILES", 10)
    found, whole = python_files(tmp_path / "src")
    assert (len(found), whole) == (10, False)
    assert "too many files" in read(tmp_path).problems[0]
    monkeypatch.setattr("amt_hydra.repository.source.MAX_ENTRIES", 5)
    assert not python_files(tmp_path / "src")[1]


# Metrics.

UPSTREAM_MODEL = '''\
class Model(pl.LightningModule):
    """Logs 'test/in_a_docstring'."""
    def __init__(self):
        self.macro = Metrics(prefix=f'validation/macro_')  # not 'test/in_a_comment'
        self.path = "../logs"
        self.url = "https://example.org/x"
    def training_step(self):
        self.log('train_loss', loss, on_step=True)
        x = torch.log(mel, out=mel) + math.log(2, 10)
    def on_validation_epoch_end(self):
        self.log_dict(self.macro.bulk_compute(), sync_dist=True)
'''


def test_the_monitor_of_the_family_is_unknown_and_never_absent(tmp_path: Path) -> None:
    monitor = "shared_cfg = {'CHECKPOINT': {'monitor': 'validation/macro_onset_f'}}\n"
    found = repository(tmp_path, TRAIN, model__ymt3=UPSTREAM_MODEL, config=monitor)
    assert list(found.metrics) == ["train_loss"]
    assert [place.line for place in found.computed_metrics] == [11]
    assert logs(found, "train_loss") is True
    assert logs(found, "validation/macro_onset_f") is None
    assert {text: place.line for text, place in found.strings.items()} == {
        "validation/macro_": 4,
        "validation/macro_onset_f": 1,
    }


def test_names_that_are_spelled_out(tmp_path: Path) -> None:
    found = repository(
        tmp_path,
        TRAIN,
        model="""\
        MONITOR = "validation/macro_onset_f"
        class Model:
            def step(self, final):
                self.log(name="train/loss", value=1)
                self.log(MONITOR, 1)
                self.log("a/x" if final else "a/y", 1)
                self.log_dict({"b/x": 1, MONITOR: 2}, prog_bar=True)
                metrics = {"c/x": 1}
                self.log_dict(metrics)
                self.log_dict(dict(d=1))
                logger.log("not one", 1)
                tensor.log()
        """,
    )
    names = {"train/loss": 4, "validation/macro_onset_f": 5, "a/x": 6, "a/y": 6, "b/x": 7, "c/x": 8, "d": 10}
    assert set(found.metrics) == set(names)
    assert found.computed_metrics == ()
    assert logs(found, "validation/macro_onset_f") is True
    assert logs(found, "validation/macro_onset_F") is False


@pytest.mark.parametrize(
    "line",
    [
        "self.log(f'{stage}/loss', 1)",
        "self.log(prefix + 'loss', 1)",
        "metrics = {}\nmetrics[name] = 1\nself.log_dict(metrics)",
        "metrics = {'a': 1}\nmetrics.update(more)\nself.log_dict(metrics)",
        "self.log_dict({**more})",
        "for name in names:\n    self.log(name, 1)",
        "def f(name):\n    self.log(name, 1)",
    ],
)
def test_a_computed_name_leaves_it_open(tmp_path: Path, line: str) -> None:
    assert logs(repository(tmp_path, TRAIN, model=line), "some/loss") is None


@pytest.mark.parametrize(
    ("line", "possible", "impossible"),
    [
        ("self.log(f'{stage}/loss', 1)", "validation/loss", "validation/f1"),
        ("self.log(prefix + '_loss', 1)", "val_loss", "val_f1"),
        ("self.log('val/' + name, 1)", "val/loss", "validation/loss"),
        ("self.log('%s/loss' % stage, 1)", "val/loss", "val/f1"),
        ("self.log('{}/loss_{:.1f}'.format(stage, 1), 1)", "val/loss_1.0", "val/f1"),
        ("self.log_dict({f'{stage}/loss': 1, 'x': 2})", "val/loss", "val/f1"),
        ("name = f'{stage}/loss'\nself.log(name, 1)", "val/loss", "val/f1"),
        ("self.log('train_loss', 1, on_epoch=True)", "train_loss_epoch", "train_f1"),
        ("self.log('loss', 1)", "loss/dataloader_idx_0", "f1/dataloader_idx_0"),
    ],
)
def test_what_is_known_of_a_name_excludes_others(tmp_path: Path, line: str, possible: str, impossible: str) -> None:
    found = repository(tmp_path, TRAIN, model=line)
    assert (logs(found, possible), logs(found, impossible)) == (None, False)


def test_one_name_of_which_nothing_is_known_leaves_all_open(tmp_path: Path) -> None:
    found = repository(tmp_path, TRAIN, model="self.log(f'{stage}/loss', 1)\nself.log(name, 1)")
    assert logs(found, "val/f1") is None


# Resumes.


@pytest.mark.parametrize(
    ("line", "resumes"),
    [
        ("trainer.fit(model, datamodule=dm)", False),
        ("trainer.fit(model, datamodule=dm, ckpt_path=None)", False),
        ("trainer.fit(model, datamodule=dm, ckpt_path=args.resume)", True),
        ("trainer.fit(model, ckpt_path=str(last) if resume else None)", True),
        ("trainer.fit(model, None, None, dm, last)", True),
        ("trainer.fit(model, None, None, dm, None)", False),
        ("trainer.fit(model, ckpt_path='last')", True),
        ("if last is not None:\n    trainer.fit(model, ckpt_path=last)\nelse:\n    trainer.fit(model)", True),
        (
            "if last is not None:\n    load()\n    trainer.fit(model)\nelse:\n    trainer.fit(model, ckpt_path=last)",
            False,
        ),
        ('if d["x"] != None:\n    trainer.fit(m)\nelse:\n    trainer.fit(m, ckpt_path=d["x"])', False),
        ("if not last:\n    trainer.fit(m, ckpt_path=last)", False),
        ("if last is None:\n    pass\nelif other:\n    trainer.fit(m, ckpt_path=last)", True),
        ("trainer.fit(m) if last else trainer.fit(m, ckpt_path=last)", False),
        ("scaler.fit(x, y)", False),
    ],
)
def test_only_a_fit_with_a_checkpoint_resumes(tmp_path: Path, line: str, resumes: bool) -> None:
    found = repository(tmp_path, TRAIN + f"def main():\n    {line.replace(chr(10), chr(10) + '    ')}\n")
    assert bool(found.resumes) is resumes


def test_speed_on_a_family_sized_repository(tmp_path: Path) -> None:
    import time

    family(tmp_path)
    body = "\n".join(f"def f{n}(a, b):\n    return [a * {n}, {{'k{n}': b}}]  # http://x/y" for n in range(150))
    for number in range(90):
        put(tmp_path / "amt", f"utils/m{number}.py", body.encode())
    took = []
    for _ in range(3):
        start = time.process_time()
        read(tmp_path)
        took.append(time.process_time() - start)
    assert min(took) < 0.5  # some 30 ms here; the bound is for a slow and busy machine
