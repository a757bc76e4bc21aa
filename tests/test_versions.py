"""What is installed for an interpreter: real environments, of which nothing is started where their files tell."""

import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest

from amt_hydra.versions import Versions, read_versions

HERE = sys.version_info[:2]
LIBRARY = f"python{HERE[0]}.{HERE[1]}"
BASE = Path(sys.base_prefix, "bin", LIBRARY)


def installed(folder: Path, **versions: str) -> None:
    """Leave what pip would: a dist-info folder per package."""
    for name, version in versions.items():
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nText\n")


def venv(root: Path, *options: str) -> Path:
    """A real virtual environment, without pip; its interpreter."""
    subprocess.run([BASE, "-m", "venv", "--without-pip", *options, str(root)], check=True)
    return root / "bin" / "python"


def site(root: Path) -> Path:
    return root / "lib" / LIBRARY / "site-packages"


def unstartable(root: Path, name: str = "python3.10") -> Path:
    """An interpreter that is laid out as an installed one, and is none."""
    (root / "lib" / name).mkdir(parents=True, exist_ok=True)
    (root / "lib" / name / "os.py").write_text("")
    python = root / "bin" / name
    python.parent.mkdir()
    python.write_text("not an interpreter")
    (root / "bin" / "python").symlink_to(name)
    return root / "bin" / "python"


def test_the_interpreter_that_runs_us_has_what_importlib_finds() -> None:
    found = read_versions(Path(sys.executable), {})
    assert found.python is not None
    assert found.python[:2] == HERE
    names = ("torch", "lightning", "hydra-core", "wandb")
    assert {name: found.packages[name] for name in names} == {name: metadata.version(name) for name in names}


def test_a_second_environment_has_its_own_packages_and_not_ours(tmp_path: Path) -> None:
    python = venv(tmp_path / "the training's")
    installed(site(tmp_path / "the training's"), torch="2.4.1+cu121", pytorch_lightning="2.1.4")
    found = read_versions(python, {})
    assert found.packages == {"torch": "2.4.1+cu121", "pytorch-lightning": "2.1.4"}
    assert found.python is not None
    assert found.python[:2] == HERE
    assert found.whole  # so that wandb is known not to be there
    assert found.source == "read from " + str(site(tmp_path / "the training's"))


def test_an_empty_environment_is_known_to_be_empty(tmp_path: Path) -> None:
    found = read_versions(venv(tmp_path / "venv"), {})
    assert (found.packages, found.whole) == ({}, True)


def test_reading_takes_less_than_20_ms(tmp_path: Path) -> None:
    python = venv(tmp_path / "venv")
    installed(site(tmp_path / "venv"), torch="2.5.0", lightning="2.5.0", **{f"package{n}": "1.0" for n in range(300)})
    read_versions(python, {})

    def took() -> float:
        start = time.perf_counter()
        read_versions(python, {})
        return time.perf_counter() - start

    assert min(took() for _ in range(5)) < 0.02


def test_an_environment_that_shares_its_bases_packages_has_both_its_own_first(tmp_path: Path) -> None:
    base = tmp_path / "base"
    installed(base / "lib" / "python3.10" / "site-packages", torch="2.1.0", lightning="2.1.0")
    unstartable(base)
    for shares in ("true", "false"):
        root = tmp_path / shares
        (root / "bin").mkdir(parents=True)
        (root / "bin" / "python").symlink_to(base / "bin" / "python3.10")
        config = f"home = {base / 'bin'}\nInclude-System-Site-Packages = {shares}\nversion = 3.10.2\n"
        (root / "pyvenv.cfg").write_text(config)
        installed(root / "lib" / "python3.10" / "site-packages", torch="2.6.0")
    assert read_versions(tmp_path / "true/bin/python", {}).packages == {"torch": "2.6.0", "lightning": "2.1.0"}
    assert read_versions(tmp_path / "false/bin/python", {}).packages == {"torch": "2.6.0"}
    assert read_versions(tmp_path / "true/bin/python", {}).python == (3, 10, 2)


@pytest.mark.parametrize("line", ["version_info = 3.10.2.final.0", "version = 3.10.2", ""])
def test_uv_and_virtualenv_write_the_version_as_they_like(tmp_path: Path, line: str) -> None:
    root = tmp_path / "venv"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "python").write_text("")
    (root / "pyvenv.cfg").write_text(f"home = /usr/bin\n{line}\n")
    installed(root / "lib" / "python3.10" / "site-packages", torch="2.6.0", lightning="2.6.0")
    found = read_versions(root / "bin" / "python", {})
    assert found.python is not None
    assert found.python[:2] == (3, 10)
    assert found.packages["torch"] == "2.6.0"


def test_an_environment_of_condas_is_read_as_an_installed_interpreter(tmp_path: Path) -> None:
    python = unstartable(tmp_path / "envs" / "amt")
    (tmp_path / "envs" / "amt" / "conda-meta").mkdir()
    packages = tmp_path / "envs" / "amt" / "lib" / "python3.10" / "site-packages"
    installed(packages, pytorch_lightning="2.3.3")
    egg = packages / "torch-2.3.0-py3.10.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.3.0\n")
    found = read_versions(python, {})
    assert (found.python, found.packages) == ((3, 10), {"pytorch-lightning": "2.3.3", "torch": "2.3.0"})


def test_debians_own_interpreter_looks_in_dist_packages(tmp_path: Path) -> None:
    python = unstartable(tmp_path / "usr")
    installed(tmp_path / "usr/lib/python3/dist-packages", torch="1.13.1", wandb="0.16")
    installed(tmp_path / "usr/local/lib/python3.10/dist-packages", torch="2.2.0", lightning="2.2.0")
    assert read_versions(python, {}).packages == {"torch": "2.2.0", "lightning": "2.2.0", "wandb": "0.16"}


def test_pythonpath_comes_first_and_a_pth_file_adds_a_folder(tmp_path: Path) -> None:
    python = venv(tmp_path / "venv")
    installed(site(tmp_path / "venv"), torch="2.6.0")
    installed(tmp_path / "module", torch="2.8.0")
    installed(tmp_path / "added", lightning="2.5.0")
    (site(tmp_path / "venv") / "more.pth").write_text(f"# a comment\nimport os\n{tmp_path / 'added'}\n/nowhere\n")
    found = read_versions(python, {"PYTHONPATH": f"{tmp_path / 'module'}:/nowhere"})
    assert found.packages == {"torch": "2.8.0", "lightning": "2.5.0"}


def test_what_an_uninstallation_left_over_does_not_count(tmp_path: Path) -> None:
    python = venv(tmp_path / "venv")
    (site(tmp_path / "venv") / "torch-2.1.0.dist-info").mkdir()
    (site(tmp_path / "venv") / "~orch-2.0.0.dist-info").mkdir()
    assert read_versions(python, {}).packages == {}


def test_an_interpreter_that_a_link_leads_to_is_its_own_and_not_of_the_environment_around_it(tmp_path: Path) -> None:
    """As Python does: pyvenv.cfg is looked for beside the link, and not beside what it leads to."""
    python = venv(tmp_path / "venv")
    installed(site(tmp_path / "venv"), torch="2.6.0", lightning="2.6.0")
    link = tmp_path / "elsewhere" / "bin" / "python"
    link.parent.mkdir(parents=True)
    link.symlink_to(python)
    assert "torch" not in read_versions(link, {}).packages


def test_an_installed_interpreter_without_torch_is_asked_once_for_what_its_files_do_not_tell(tmp_path: Path) -> None:
    """A user's own packages count for it, wherever they lie."""
    own = tmp_path / ".local" / "lib" / LIBRARY / "site-packages"
    installed(own, torch="2.7.0")
    found = read_versions(BASE, {"HOME": str(tmp_path)})
    assert found.packages["torch"] == "2.7.0"
    assert found.source == f"asked of {BASE}"
    assert found.whole
    assert found.python == sys.version_info[:3]


@pytest.mark.parametrize("kind", ["missing", "a link to nothing", "a loop", "a folder", "a text", "a shell", "fails"])
def test_a_broken_interpreter_tells_nothing_and_raises_nothing(tmp_path: Path, kind: str) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    if kind in ("a link to nothing", "a loop"):
        python.symlink_to("python" if kind == "a loop" else "/nowhere/python3.11")
    elif kind == "a folder":
        python.mkdir()
    elif kind in ("a text", "fails"):
        python.write_text("" if kind == "a text" else "#!/bin/sh\necho '[1, 2]'\nexit 0\n")
        python.chmod(0o755)
    found = read_versions(Path("/bin/sh") if kind == "a shell" else python, {})
    assert found == Versions(None, {}, found.source)
    assert found.source
