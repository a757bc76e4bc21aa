"""Which repository is meant: repo.path, else AMT_REPO, else ~/code/amt_ai, else the bundled one."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from amt_hydra.errors import AmtError, nearest
from amt_hydra.repository.facts import HOME

KINDS = ("auto", "reference", "amt_ai", "yourmt3")
HOME_REPOSITORY = Path("code", "amt_ai")
"""Where the private home layout stands, beneath the home directory."""


@dataclass(frozen=True, slots=True)
class Located:
    """The folder of the repository to train, and why it is that one."""

    root: Path
    """Absolute. That it holds a train.py is for `read` to say."""
    why: str
    """For the first line of every output, e.g. "AMT_REPO"."""
    discovered: bool
    """True where nobody named it and it was merely found at ~/code/amt_ai."""


def locate(kind: str, path: str | None, environ: Mapping[str, str], bundled: Path) -> Located:
    """Apply the rule. What names a folder that is not there is refused, never passed over."""
    if kind not in KINDS:
        raise _unknown(kind)
    if path:
        return Located(_folder(path, "repo.path", environ), "repo.path", discovered=False)
    if kind == "reference":
        return Located(bundled, "repo=reference", discovered=False)
    named = environ.get("AMT_REPO", "")
    if named:
        return Located(_folder(named, "AMT_REPO", environ), "AMT_REPO", discovered=False)
    if kind == "yourmt3":
        raise AmtError(
            "repo=yourmt3 does not say where the YourMT3 repository is: neither repo.path nor AMT_REPO is set",
            fix=("python -m amt_hydra repo=yourmt3 repo.path=/path/to/YourMT3", "export AMT_REPO=/path/to/YourMT3"),
        )
    home = _home(environ)
    found = home is not None and (home / HOME_REPOSITORY / HOME.train).is_file()
    if home is not None and found:
        return Located(home / HOME_REPOSITORY, f"found at ~/{HOME_REPOSITORY.as_posix()}", discovered=kind == "auto")
    if kind == "amt_ai":
        raise AmtError(
            f"repo=amt_ai: there is no ~/{HOME_REPOSITORY.as_posix()}/{HOME.train}"
            + (" (HOME is not set)" if home is None else ""),
            fix=("python -m amt_hydra repo=amt_ai repo.path=/path/to/amt_ai", "export AMT_REPO=/path/to/amt_ai"),
        )
    return Located(bundled, "bundled: nothing else was named or found", discovered=False)


def _unknown(kind: str) -> AmtError:
    near = nearest(kind, KINDS)
    return AmtError(
        f"repo={kind}: there is no such kind of repository; there are {', '.join(KINDS)}",
        fix=(f"repo={near or 'auto'}",),
    )


def _folder(text: str, source: str, environ: Mapping[str, str]) -> Path:
    """Return the absolute folder that `source` names."""
    path = Path(text)
    home = _home(environ)
    if path.parts[:1] == ("~",) and home is not None:
        path = home.joinpath(*path.parts[1:])
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise AmtError(
            f"{source}={text}: {path.absolute()} {what}",
            fix=(
                f"{'unset AMT_REPO' if source == 'AMT_REPO' else 'leave repo.path out'} to use the default repository",
                "python -m amt_hydra inspect PATH shows what is read from a folder",
            ),
        )
    return Path(os.path.normpath(path.absolute()))


def _home(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("HOME", "")
    return Path(home) if home else None
