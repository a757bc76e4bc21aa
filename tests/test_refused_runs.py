"""A refused run writes nothing: not a file, not a folder, not a time of change."""

from collections.abc import Callable

import pytest
from stand import Stand, tree

from amt_hydra.cli import main
from amt_hydra.errors import REFUSED

pytest_plugins = ["desks"]


def last(stand: Stand) -> None:
    stand.last(step=1000)


def given(stand: Stand) -> None:
    stand.checkpoint(stand.folder / "given.ckpt")


def both(stand: Stand) -> None:
    last(stand)
    given(stand)


def cut(stand: Stand) -> None:
    stand.checkpoint.cut(stand.experiment() / "last.ckpt")
    stand.checkpoint(stand.experiment() / "epoch=1.ckpt")
    stand.checkpoint.cut(stand.folder / "cut.ckpt")


def dangling(stand: Stand) -> None:
    stand.experiment().mkdir(parents=True)
    (stand.experiment() / "last.ckpt").symlink_to("epoch=1.ckpt")


def empty(stand: Stand) -> None:
    stand.checkpoint(stand.folder / "empty.ckpt", weights=False)


def outputs_is_a_file(stand: Stand) -> None:
    (stand.folder / "outputs").write_text("")


def nothing(_: Stand) -> None:
    pass


REFUSED_RUNS = [
    pytest.param(last, [], {}, id="scratch, last.ckpt"),
    pytest.param(given, ["init.ckpt=given.ckpt"], {}, id="scratch, checkpoint given"),
    pytest.param(both, ["init.ckpt=given.ckpt"], {"AMT_FORCE_SCRATCH": "1"}, id="forced, checkpoint given"),
    pytest.param(nothing, ["init=resume"], {}, id="resume, no last.ckpt"),
    pytest.param(both, ["init=resume", "init.ckpt=given.ckpt"], {}, id="resume, checkpoint given"),
    pytest.param(last, ["init=resume", "init.overwrite=true"], {}, id="resume, overwrite"),
    pytest.param(last, ["init=resume"], {"AMT_FORCE_SCRATCH": "1"}, id="resume, forced"),
    pytest.param(last, ["init=resume", "max_steps=1000"], {}, id="C21"),
    pytest.param(cut, ["init=resume"], {}, id="C24"),
    pytest.param(dangling, ["init=resume"], {}, id="C22"),
    pytest.param(nothing, ["init=warmstart"], {}, id="warmstart, none given"),
    pytest.param(nothing, ["init=warmstart", "init.ckpt=gone.ckpt"], {}, id="warmstart, missing"),
    pytest.param(cut, ["init=warmstart", "init.ckpt=cut.ckpt"], {}, id="warmstart, cut"),
    pytest.param(empty, ["init=warmstart", "init.ckpt=empty.ckpt"], {}, id="warmstart, no weights"),
    pytest.param(both, ["init=warmstart", "init.ckpt=given.ckpt"], {}, id="warmstart, last.ckpt"),
    pytest.param(given, ["init=warmstart", "init.ckpt=given.ckpt"], {"AMT_FORCE_SCRATCH": "1"}, id="warmstart, forced"),
    pytest.param(last, ["init.overwrite=true", "seed=1", "repo.bridge=false"], {}, id="a setting that does not reach"),
    pytest.param(last, ["init.overwrite=true", "features.rl=true"], {}, id="a feature that is not there"),
    pytest.param(nothing, ["extra.flags.nope=1"], {}, id="a flag that is not there"),
    pytest.param(nothing, ["data_presets=nope"], {}, id="a preset that is not there"),
    pytest.param(nothing, ["batch.sub=5", "batch.local=12"], {}, id="a batch that does not divide"),
    pytest.param(nothing, ["checks.ignore.Nope=why"], {}, id="a check that is not there"),
    pytest.param(outputs_is_a_file, [], {}, id="outputs is a file"),
    pytest.param(nothing, ["repo.python=gone"], {}, id="no interpreter"),
]


@pytest.mark.parametrize(("prepare", "words", "variables"), REFUSED_RUNS)
def test_a_refused_run_leaves_the_tree_byte_for_byte_as_it_was(
    stand: Stand,
    capsys: pytest.CaptureFixture[str],
    prepare: Callable[[Stand], None],
    words: list[str],
    variables: dict[str, str],
) -> None:
    prepare(stand)
    for name, value in variables.items():
        stand.monkeypatch.setenv(name, value)
    before = tree(stand.folder)
    assert main([f"repo.path={stand.repository}", *words]) == REFUSED
    out, err = capsys.readouterr()
    assert out == ""
    assert "error " in err
    assert "  -> " in err
    assert tree(stand.folder) == before
