"""Which repository is meant."""

from pathlib import Path

import pytest

from amt_hydra.errors import AmtError
from amt_hydra.repository import locate


@pytest.fixture
def bundled(tmp_path: Path) -> Path:
    return folder(tmp_path / "bundled")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return folder(tmp_path / "home")


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def amt_ai(home: Path) -> Path:
    train = folder(home / "code" / "amt_ai" / "src") / "train.py"
    train.write_text("")
    return home / "code" / "amt_ai"


def test_nothing_named_and_nothing_found_is_the_bundled_one(home: Path, bundled: Path) -> None:
    found = locate("auto", None, {"HOME": str(home)}, bundled)
    assert (found.root, found.discovered) == (bundled, False)
    assert "bundled" in found.why


def test_the_home_repository_is_discovered_only_where_it_holds_a_train_py(home: Path, bundled: Path) -> None:
    folder(home / "code" / "amt_ai")
    assert locate("auto", None, {"HOME": str(home)}, bundled).root == bundled
    (home / "code" / "amt_ai").rmdir()
    root = amt_ai(home)
    found = locate("auto", None, {"HOME": str(home)}, bundled)
    assert (found.root, found.discovered, found.why) == (root, True, "found at ~/code/amt_ai")
    named = locate("amt_ai", None, {"HOME": str(home)}, bundled)
    assert (named.root, named.discovered) == (root, False)


@pytest.mark.parametrize("kind", ["auto", "amt_ai", "yourmt3"])
def test_amt_repo_beats_what_is_found(tmp_path: Path, home: Path, bundled: Path, kind: str) -> None:
    amt_ai(home)
    mine = folder(tmp_path / "mine")
    found = locate(kind, None, {"HOME": str(home), "AMT_REPO": str(mine)}, bundled)
    assert (found.root, found.why, found.discovered) == (mine, "AMT_REPO", False)


@pytest.mark.parametrize("kind", ["auto", "reference", "amt_ai", "yourmt3"])
def test_repo_path_beats_everything(tmp_path: Path, home: Path, bundled: Path, kind: str) -> None:
    amt_ai(home)
    mine, other = folder(tmp_path / "mine"), folder(tmp_path / "other")
    found = locate(kind, str(mine), {"HOME": str(home), "AMT_REPO": str(other)}, bundled)
    assert (found.root, found.why, found.discovered) == (mine, "repo.path", False)


def test_reference_beats_amt_repo(tmp_path: Path, bundled: Path) -> None:
    found = locate("reference", None, {"AMT_REPO": str(tmp_path / "nowhere")}, bundled)
    assert (found.root, found.why) == (bundled, "repo=reference")


@pytest.mark.parametrize("kind", ["auto", "amt_ai", "yourmt3"])
def test_amt_repo_that_points_at_nothing_is_refused(tmp_path: Path, home: Path, bundled: Path, kind: str) -> None:
    amt_ai(home)
    with pytest.raises(AmtError, match=r"AMT_REPO=.*does not exist") as caught:
        locate(kind, None, {"HOME": str(home), "AMT_REPO": str(tmp_path / "nowhere")}, bundled)
    assert any("unset AMT_REPO" in fix for fix in caught.value.fix)


def test_repo_path_that_points_at_nothing_is_refused(tmp_path: Path, home: Path, bundled: Path) -> None:
    (tmp_path / "file").write_text("")
    environ = {"HOME": str(home), "AMT_REPO": str(bundled)}
    for name, words in {"nowhere": "does not exist", "file": "is not a folder"}.items():
        with pytest.raises(AmtError, match=rf"repo\.path=.*{words}"):
            locate("auto", str(tmp_path / name), environ, bundled)


def test_yourmt3_must_be_named(home: Path, bundled: Path) -> None:
    amt_ai(home)
    with pytest.raises(AmtError) as caught:
        locate("yourmt3", None, {"HOME": str(home)}, bundled)
    assert any("repo.path=" in fix for fix in caught.value.fix)


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}])
def test_without_a_home(bundled: Path, environ: dict[str, str]) -> None:
    assert locate("auto", None, environ, bundled).root == bundled
    with pytest.raises(AmtError, match="HOME is not set"):
        locate("amt_ai", None, environ, bundled)


def test_an_empty_amt_repo_is_none(bundled: Path) -> None:
    assert locate("auto", None, {"AMT_REPO": ""}, bundled).root == bundled


def test_an_unknown_kind_is_refused(bundled: Path) -> None:
    with pytest.raises(AmtError, match="repo=yourmt"):
        locate("yourmt", None, {}, bundled)


@pytest.mark.parametrize("name", ["with space", "it's", "a=b,c", "採譜", "~tilde"])
def test_weird_names(tmp_path: Path, home: Path, bundled: Path, name: str) -> None:
    mine = folder(tmp_path / name)
    assert locate("auto", str(mine), {"HOME": str(home)}, bundled).root == mine


def test_tilde_and_relative_paths(tmp_path: Path, home: Path, bundled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = amt_ai(home)
    assert locate("auto", "~/code/amt_ai", {"HOME": str(home)}, bundled).root == root
    monkeypatch.chdir(tmp_path)
    assert locate("auto", "./home/../home/code/amt_ai", {}, bundled).root == root
