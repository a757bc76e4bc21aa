"""What git knows about a repository: the commit, and what differs from it. Nothing is written, nobody is asked."""

import os
import subprocess
from pathlib import Path

TIMEOUT = 20.0
"""Seconds. A repository on a stalled network file system must not hold a run up."""
# A repository's own configuration can name programs: the pager, the diff driver, the file system monitor, hooks.
SAFE = ("--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")


def commit(root: Path) -> tuple[str | None, bool | None]:
    """Return the commit's hash and whether tracked or new files differ from it; None where git cannot say."""
    head = _git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    if head is None:
        return None, None
    status = _git(root, "status", "--porcelain", "--ignore-submodules=all", "--", ".")
    return head.decode("ascii", "replace").strip(), None if status is None else bool(status.strip())


def diff(root: Path, limit_bytes: int) -> str:
    """Return how tracked files differ from the commit, cut at `limit_bytes`; empty where git cannot say."""
    found = _git(
        root, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "HEAD", "--", "."
    )
    if found is None:
        return ""
    text = found[:limit_bytes].decode("utf-8", "replace")
    return text if len(found) <= limit_bytes else f"{text}\n… cut: {len(found)} bytes in all\n"


def _git(root: Path, *arguments: str) -> bytes | None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            ["git", *SAFE, "-C", str(root), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None
