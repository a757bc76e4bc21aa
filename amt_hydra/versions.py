"""What is installed beside an interpreter, read from its environment's files: nothing of it is started or imported.

Only where the files do not tell is the interpreter asked, once.
"""

import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("torch", "lightning", "pytorch-lightning", "hydra-core", "wandb")
_LIBRARY = re.compile(r"python(\d+)\.(\d+)")
_METADATA = re.compile(r"(?P<name>[^-]+)-.*\.(?:dist-info|egg-info)|(?P<bare>[^-]+)\.egg-info")
_HEAD = 4096  # bytes: name and version are among the first lines
_PATIENCE = 20.0  # seconds: an interpreter on a network drive is slow to start, and a plan must not hang
_QUESTION = f"""
import json, sys
try:
    from importlib.metadata import PackageNotFoundError, version
except ImportError:
    print(json.dumps([list(sys.version_info[:3]), None]))
    sys.exit()
found = {{}}
for name in {PACKAGES!r}:
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps([list(sys.version_info[:3]), found]))
"""


@dataclass(frozen=True, slots=True)
class Versions:
    """What a process of one interpreter would import."""

    python: tuple[int, ...] | None
    """(3, 11), or longer; None where it cannot be told."""
    packages: Mapping[str, str]
    """Versions of those of `PACKAGES` that are installed, by name as on PyPI."""
    source: str
    """How that is known, or why not."""
    whole: bool = False
    """Whether what is not in `packages` is not installed."""


@dataclass(frozen=True, slots=True)
class _Environment:
    """Where one interpreter looks for packages."""

    python: tuple[int, ...] | None = None
    folders: tuple[Path, ...] = ()
    closed: bool = False
    """Whether nothing outside these folders counts: neither a user's own packages nor PYTHONPATH."""


def read_versions(python: Path, environ: Mapping[str, str] = os.environ) -> Versions:
    """Return what is installed for the interpreter `python` in a process with this environment. Never raises."""
    if not _is_called_python(python):
        return Versions(None, {}, f"{python} is no interpreter by its name")
    paths = [Path(word) for word in environ.get("PYTHONPATH", "").split(os.pathsep) if word]
    try:
        found = _environment(Path(os.path.abspath(python)))  # noqa: PTH100 -- a link to an interpreter is none of a venv
        packages = _installed((*paths, *found.folders))
    except (OSError, ValueError):
        found, packages = _Environment(), {}
    known = found.python is not None and bool(found.folders)
    enough = "torch" in packages and not packages.keys().isdisjoint(("lightning", "pytorch-lightning"))
    if known and (enough or found.closed):
        return Versions(found.python, packages, _named(found.folders), whole=found.closed)
    return _asked(python, environ) or Versions(found.python, packages, _named(found.folders))


def _is_called_python(python: Path) -> bool:
    """Whether it may be asked: a shell would take the question for commands of its own."""
    names = (python.name, os.path.basename(os.path.realpath(python)))  # noqa: PTH119 -- a loop of links raises in Path
    return any(name.startswith(("python", "pypy")) for name in names)


def _named(folders: Iterable[Path]) -> str:
    return (
        f"read from {', '.join(map(str, folders))}" if folders else "it has no folder of packages, and gives no answer"
    )


# Where an interpreter looks


def _environment(python: Path) -> _Environment:
    """By the rules of Python's own start-up: pyvenv.cfg above the interpreter's folder or in it, else the library
    beside the folder that its links lead to."""
    for prefix in (python.parent.parent, python.parent):
        config = _config(prefix / "pyvenv.cfg")
        if "home" in config:
            return _virtual(prefix, config, python.name)
    return _base(Path(os.path.realpath(python)))


def _config(file: Path) -> dict[str, str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _virtual(prefix: Path, config: Mapping[str, str], name: str) -> _Environment:
    """A venv's, virtualenv's or uv's environment; with the packages of its base where it says so."""
    number = re.match(r"\d+(\.\d+)+", config.get("version", "") or config.get("version_info", ""))
    version = tuple(map(int, number[0].split("."))) if number else _library_version(prefix, name)
    shares = config.get("include-system-site-packages", "").lower() == "true"
    base = _base(Path(os.path.realpath(Path(config["home"], name)))) if shares else _Environment()
    return _Environment(version, (*_folders(prefix, version), *base.folders), closed=not shares)


def _base(python: Path) -> _Environment:
    """An installed interpreter's; conda's environments are such too."""
    prefix = python.parent.parent
    version = _library_version(prefix, python.name)
    if (
        python.is_file()
        and version
        and any((prefix / lib / _library(version) / "os.py").exists() for lib in ("lib", "lib64"))
    ):
        return _Environment(version, tuple(_folders(prefix, version)))
    return _Environment()


def _library(version: tuple[int, ...]) -> str:
    return f"python{version[0]}.{version[1]}"


def _library_version(prefix: Path, name: str) -> tuple[int, ...] | None:
    """The version in the interpreter's name, else that of the only library there."""
    there = {entry for lib in ("lib", "lib64") for entry in _names(prefix / lib) if _LIBRARY.fullmatch(entry)}
    named = _LIBRARY.fullmatch(name) or (_LIBRARY.fullmatch(there.pop()) if len(there) == 1 else None)
    return (int(named[1]), int(named[2])) if named else None


def _folders(prefix: Path, version: tuple[int, ...] | None) -> list[Path]:
    """The folders of packages below a prefix that are there, first come first."""
    if version is None:
        return []
    library = _library(version)
    if (prefix / "lib" / "python3" / "dist-packages").is_dir():  # Debian's own interpreter
        names = [f"local/lib/{library}/dist-packages", "lib/python3/dist-packages", f"lib/{library}/dist-packages"]
    else:
        names = [f"{below}{lib}/{library}/site-packages" for below in ("", "local/") for lib in ("lib", "lib64")]
    found = {os.path.realpath(folder): folder for name in reversed(names) if (folder := prefix / name).is_dir()}
    return [*reversed(found.values())]


# What lies there


def _installed(folders: Iterable[Path]) -> dict[str, str]:
    """The version of each package; of two, that of the folder which is looked at first."""
    found: dict[str, str] = {}
    for folder in folders:
        names = _names(folder)
        added = [path for name in names if name.endswith(".pth") for path in _lines_of_pth(folder / name)]
        for place in (folder, *added):
            for name, version in _packages(place, names if place is folder else _names(place)):
                found.setdefault(name, version)
    return {name: found[name] for name in PACKAGES if name in found}


def _packages(folder: Path, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for entry in names:
        match = _METADATA.fullmatch(entry)
        name = re.sub(r"[-_.]+", "-", (match["name"] or match["bare"]).lower()) if match else ""
        if name in PACKAGES and (version := _version(folder / entry)):
            yield name, version


def _version(entry: Path) -> str | None:
    """What the metadata say; a folder without them is what an uninstallation left over."""
    for file in (entry / "METADATA", entry / "PKG-INFO", entry):
        try:
            with file.open("rb") as stream:
                head = stream.read(_HEAD).decode("utf-8", "replace")
        except OSError:
            continue
        found = re.search(r"^Version:[ \t]*(\S+)", head, re.MULTILINE)
        return found[1] if found else None
    return None


def _lines_of_pth(file: Path) -> Iterator[Path]:
    """Folders that a .pth file adds to those that are searched."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in map(str.strip, lines):
        if line and not line.startswith(("#", "import ", "import\t")) and (folder := file.parent / line).is_dir():
            yield folder


def _names(folder: Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


# What the interpreter says itself


def _asked(python: Path, environ: Mapping[str, str]) -> Versions | None:
    """Start the interpreter with the environment that train.py will have. None where it gives no answer."""
    try:
        done = subprocess.run(
            [str(python), "-c", _QUESTION],
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE,
            cwd=python.anchor,
            env=dict(environ),
        )
        version, packages = json.loads(done.stdout)
        known = {name: str(packages[name]) for name in PACKAGES if name in packages} if packages is not None else {}
        return Versions(tuple(map(int, version)), known, f"asked of {python}", whole=packages is not None)
    except (OSError, ValueError, TypeError, subprocess.SubprocessError):
        return None
