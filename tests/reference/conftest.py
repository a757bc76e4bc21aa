import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from trainer import SRC

VOCADITO = Path(__file__).resolve().parents[3] / "shared" / "data" / "vocadito"


@pytest.fixture
def reference_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the repository's modules importable for one test, and forget them afterwards: their names are common."""
    monkeypatch.syspath_prepend(str(SRC))
    ours = {path.stem for path in SRC.glob("*.py")}
    before = {name: sys.modules.pop(name) for name in ours if name in sys.modules}
    yield
    for name in ours:
        sys.modules.pop(name, None)
    sys.modules.update(before)


@pytest.fixture
def vocadito() -> Path:
    if not VOCADITO.is_dir():
        pytest.skip("the recording vocadito_1 is not beside this checkout")
    return VOCADITO
