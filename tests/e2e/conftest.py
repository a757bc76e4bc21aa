from collections.abc import Callable
from pathlib import Path

import pytest
from counting import Lab, make_lab
from desk import Desk


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk with, spaces=and 日本"))


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return make_lab(tmp_path)


@pytest.fixture
def tree() -> Callable[[Path], dict[str, tuple[int, int, bytes]]]:
    """Everything below a folder: mode, time of change and content by name."""

    def look(folder: Path) -> dict[str, tuple[int, int, bytes]]:
        found = {}
        for path in sorted(folder.rglob("*")):
            stat = path.lstat()
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
            found[str(path.relative_to(folder))] = (stat.st_mode, stat.st_mtime_ns, content)
        return found

    return look
