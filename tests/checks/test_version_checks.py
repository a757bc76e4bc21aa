"""The launcher and the training in different environments: what counts is what the repository's own interpreter has."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from stand import Stand, errors, of

pytest_plugins = ["desks"]

LIBRARY = f"python{sys.version_info[0]}.{sys.version_info[1]}"
RESUME = ("init=resume", "max_steps=1000")
FROZEN = "on a plateau it freezes"


class TaskManager:
    """A class of the repository's own, as upstream pickles one into hyper_parameters."""


def environment(stand: Stand, **versions: str) -> Path:
    """Give the repository a real virtual environment of its own, in which these packages are installed."""
    root = stand.repository / ".venv"
    base = Path(sys.base_prefix, "bin", LIBRARY)
    subprocess.run([base, "-m", "venv", "--without-pip", str(root)], check=True)
    for name, version in versions.items():
        info = root / "lib" / LIBRARY / "site-packages" / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return root / "bin" / "python"


def pickled(path: Path) -> Path:
    """A checkpoint that holds an object of a class of the repository's own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = {"global_step": 10, "state_dict": {"w": torch.zeros(1)}, "hyper_parameters": {"task": TaskManager()}}
    torch.save({"pytorch-lightning_version": "2.4.0", **parts}, path)
    return path


# VersionsKnown


def test_the_versions_of_another_environment_are_named(stand: Stand) -> None:
    environment(stand, torch="2.5.1", pytorch_lightning="2.3.3")
    (finding,) = of(stand.pre(), "VersionsKnown")
    assert finding.severity == "info"
    assert "torch 2.5.1, pytorch-lightning 2.3.3" in finding.message
    assert str(stand.repository / ".venv") in finding.message


def test_an_interpreter_that_was_named_counts_before_the_repositorys(stand: Stand) -> None:
    environment(stand, torch="2.5.1", pytorch_lightning="2.3.3")
    pre = stand.pre(f"repo.python={sys.executable}")
    assert of(pre, "VersionsKnown") == []
    assert pre.subject.versions.packages["torch"] == torch.__version__


def test_the_bridge_needs_a_python_that_is_not_too_old(public: Stand) -> None:
    python = environment(public, torch="1.13.1", pytorch_lightning="2.2.0")
    config = python.parent.parent / "pyvenv.cfg"
    config.write_text(config.read_text().replace("version = 3.11", "version = 3.7"))
    folder = python.parent.parent / "lib"
    (folder / LIBRARY).rename(folder / "python3.7")
    pre = public.pre()
    (error,) = [finding for finding in of(pre, "VersionsKnown") if finding.severity == "error"]
    assert f"{python} is Python 3.7" in error.message
    assert "the bridge needs 3.8" in error.message
    assert not [f for f in of(public.follow(error.fix[1]), "VersionsKnown") if f.severity == "error"]


def test_a_lightning_before_2_0_gets_its_own_spelling_of_a_precision(stand: Stand) -> None:
    environment(stand, torch="1.13.1", pytorch_lightning="1.9.5")
    (error,) = [finding for finding in of(stand.pre(), "VersionsKnown") if finding.severity == "error"]
    assert error.message.startswith("precision bf16-mixed: pytorch-lightning 1.9.5 spells it 'bf16'")
    after = stand.follow(error.fix[0])
    assert not [finding for finding in of(after, "VersionsKnown") if finding.severity == "error"]
    assert after.subject.settings.precision.name == "bf16"


@pytest.mark.parametrize("version", ["2.0.9", "2.7.0", "3.0.0"])
def test_a_lightning_that_the_bridge_was_never_tried_with_is_said_where_there_is_one(
    public: Stand, version: str
) -> None:
    environment(public, torch="2.5.1", pytorch_lightning=version)
    pre = public.pre()
    assert pre.subject.plan.bridge is not None
    (warning,) = [finding for finding in of(pre, "VersionsKnown") if finding.severity == "warning"]
    assert f"pytorch-lightning {version}: the bridge was tried with 2.2 to 2.6" in warning.message
    alone = of(public.pre("repo.bridge=false"), "VersionsKnown")
    assert [finding.severity for finding in alone] == ["info"]


# InterpreterRuns


def test_an_environment_without_what_train_py_imports_is_refused_with_the_command(stand: Stand) -> None:
    python = environment(stand, torch="2.5.1", lightning="2.5.0")  # train.py imports pytorch_lightning
    pre = stand.pre()
    (finding,) = of(pre, "InterpreterRuns")
    assert finding in pre.stopped
    assert f"{python} has no pytorch-lightning" in finding.message
    assert shlex.split(finding.fix[0]) == [str(python), "-m", "pip", "install", "pytorch-lightning"]
    assert of(pre, "VersionsKnown") == []  # which would only repeat it
    assert errors(stand.pre(f"repo.python={sys.executable}")) == []


def test_an_empty_environment_lacks_both(stand: Stand) -> None:
    environment(stand)
    (finding,) = of(stand.pre(), "InterpreterRuns")
    assert "has no torch and no pytorch-lightning" in finding.message


def test_an_interpreter_of_which_nothing_is_known_is_not_refused(stand: Stand) -> None:
    """A wrapper around a container, for example."""
    wrapper = stand.folder / "run-in-container"
    wrapper.write_text("#!/bin/sh\n")
    wrapper.chmod(0o755)
    pre = stand.pre(f"repo.python={wrapper}")
    assert of(pre, "InterpreterRuns") == []
    (finding,) = of(pre, "VersionsKnown")
    assert (finding.severity, errors(pre)) == ("info", [])
    assert f"what is installed for {wrapper} is not known" in finding.message


# LastIsWritten


def test_c23_a_lightning_that_freezes_last_ckpt_is_made_good_by_the_bridge_and_that_is_said(public: Stand) -> None:
    environment(public, torch="2.6.0", pytorch_lightning="2.6.1")
    (finding,) = of(public.pre(), "LastIsWritten")
    assert finding.severity == "info"
    assert finding.message.startswith("pytorch-lightning 2.6.1 writes last.ckpt beside a top-k save only")
    assert finding.message.endswith("the bridge keeps it a real file, and current")


def test_c23_without_the_bridge_it_is_a_warning(public: Stand) -> None:
    environment(public, torch="2.6.0", pytorch_lightning="2.6.1")
    (finding,) = of(public.pre("repo.bridge=false"), "LastIsWritten")
    assert finding.severity == "warning"
    assert FROZEN in finding.message
    assert [f.severity for f in of(public.follow(finding.fix[0]), "LastIsWritten")] == ["info"]


def test_c22_lightning_2_1_makes_a_link_of_it(public: Stand) -> None:
    environment(public, torch="2.1.0", pytorch_lightning="2.1.4")
    (finding,) = of(public.pre("repo.bridge=false"), "LastIsWritten")
    assert "makes last.ckpt a link" in finding.message


@pytest.mark.parametrize(
    ("version", "words"), [("2.5.6", ()), ("2.2.0", ()), ("2.6.1", ("checkpoint.save_last=false",))]
)
def test_c23_a_lightning_that_copies_it_or_is_not_asked_to_is_fine(
    public: Stand, version: str, words: tuple[str, ...]
) -> None:
    environment(public, torch="2.5.0", pytorch_lightning=version)
    assert of(public.pre("repo.bridge=false", *words), "LastIsWritten") == []


def test_c23_a_repository_that_saves_itself_is_left_to_it(stand: Stand) -> None:
    environment(stand, torch="2.6.0", pytorch_lightning="2.6.1")
    assert stand.pre().subject.repository.saves
    assert of(stand.pre("repo.bridge=false"), "LastIsWritten") == []


def test_c23_the_launchers_own_lightning_does_not_count(public: Stand) -> None:
    """Ours freezes it; the repository's copies."""
    assert FROZEN in of(public.pre(), "LastIsWritten")[0].message
    environment(public, torch="2.5.0", pytorch_lightning="2.5.6")
    assert of(public.pre(), "LastIsWritten") == []


# LoadsAsIs


def test_c26_classes_that_torch_refuses_are_listed_without_being_loaded(stand: Stand) -> None:
    environment(stand, torch="2.6.0", pytorch_lightning="2.6.1")
    file = pickled(stand.folder / "custom.ckpt")
    pre = stand.pre("init=warmstart", f"init.ckpt={file}", "repo.bridge=false")
    (finding,) = of(pre, "LoadsAsIs")
    assert finding in pre.stopped
    assert "TaskManager, which torch 2.6.0 refuses" in finding.message
    (made_good,) = of(stand.follow(finding.fix[0]), "LoadsAsIs")
    assert made_good.severity == "info"
    assert made_good.message.endswith("the bridge loads this one file without it")
    plain = stand.checkpoint(stand.folder / "plain.ckpt")
    assert of(stand.pre("init=warmstart", f"init.ckpt={plain}", "repo.bridge=false"), "LoadsAsIs") == []


@pytest.mark.parametrize("name", ["stand", "public"])
def test_c26_a_resume_from_such_a_checkpoint_is_made_good_by_the_bridge(
    request: pytest.FixtureRequest, name: str
) -> None:
    there: Stand = request.getfixturevalue(name)
    environment(there, torch="2.6.0", pytorch_lightning="2.6.1")
    pickled(there.experiment() / "last.ckpt")
    pre = there.pre(*RESUME)
    assert [finding.severity for finding in of(pre, "LoadsAsIs")] == ["info"]
    assert errors(pre) == []


def test_c26_an_older_torch_takes_them(stand: Stand) -> None:
    environment(stand, torch="2.5.1", pytorch_lightning="2.3.3")
    file = pickled(stand.folder / "custom.ckpt")
    assert of(stand.pre("init=warmstart", f"init.ckpt={file}", "repo.bridge=false"), "LoadsAsIs") == []


@pytest.mark.parametrize(("lightning", "found"), [("2.3.3", ["error"]), ("2.5.6", []), ("2.6.0", ["error"])])
def test_c26_fit_takes_them_where_lightning_says_so_itself(stand: Stand, lightning: str, found: list[str]) -> None:
    environment(stand, torch="2.6.0", pytorch_lightning=lightning)
    pickled(stand.experiment() / "last.ckpt")
    assert [finding.severity for finding in of(stand.pre(*RESUME, "repo.bridge=false"), "LoadsAsIs")] == found


def test_c26_another_load_that_takes_classes_says_nothing_of_fit(stand: Stand) -> None:
    """The one of a warm start, say: Lightning loads last.ckpt all the same."""
    environment(stand, torch="2.6.0", pytorch_lightning="2.6.1")
    train = stand.repository / "src" / "train.py"
    more = (
        "if args.init_ckpt:\n    model.load_state_dict(torch.load(args.init_ckpt, weights_only=False)['state_dict'])\n"
    )
    train.write_text(
        "import torch\n" + train.read_text().replace("trainer = pl.Trainer(", f"{more}trainer = pl.Trainer(")
    )
    pickled(stand.experiment() / "last.ckpt")
    pre = stand.pre(*RESUME)
    assert any(load.weights_only is False for load in pre.subject.repository.start.loads)
    assert [finding.severity for finding in of(pre, "LoadsAsIs")] == ["info"]
    assert "unpickle" in pre.subject.plan.bridge.capabilities  # type: ignore[union-attr]
    assert [finding.severity for finding in of(stand.pre(*RESUME, "repo.bridge=false"), "LoadsAsIs")] == ["error"]


def test_c26_where_torch_is_not_known_it_is_a_warning(stand: Stand) -> None:
    wrapper = stand.folder / "run-in-container"
    wrapper.write_text("#!/bin/sh\n")
    wrapper.chmod(0o755)
    pickled(stand.experiment() / "last.ckpt")
    pre = stand.pre(*RESUME, "repo.bridge=false", f"repo.python={wrapper}")
    (finding,) = of(pre, "LoadsAsIs")
    assert (finding.severity, errors(pre)) == ("warning", [])
    assert "which torch 2.6 and newer refuses" in finding.message


def test_c26_a_load_of_something_else_that_takes_classes_says_nothing_of_the_init_checkpoint(stand: Stand) -> None:
    """An encoder, say: whose file it takes cannot be told."""
    environment(stand, torch="2.6.0", pytorch_lightning="2.6.1")
    train = stand.repository / "src" / "train.py"
    more = (
        "if args.init_ckpt:\n    model.load_state_dict(torch.load(args.init_ckpt)['state_dict'])\n"
        "model.load_state_dict(torch.load(find_encoder(), weights_only=False))\n"
    )
    train.write_text(
        "import torch\n" + train.read_text().replace("trainer = pl.Trainer(", f"{more}trainer = pl.Trainer(")
    )
    file = pickled(stand.folder / "custom.ckpt")
    pre = stand.pre("init=warmstart", f"init.ckpt={file}")
    assert [finding.severity for finding in of(pre, "LoadsAsIs")] == ["info"]
    assert pre.subject.plan.bridge is not None
    assert "unpickle" in pre.subject.plan.bridge.capabilities
