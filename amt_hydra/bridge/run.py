"""Started by its path in place of train.py, with train.py's own arguments; AMT_BRIDGE_PLAN names the plan."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

PACKAGE = "_amt_bridge"
"""A name of our own: the repository may well have modules called `plan` or `hooks`."""


def load_package() -> None:
    """Import the modules beside this file under a name of their own; sys.path is left alone."""
    folder = os.path.dirname(os.path.abspath(__file__))
    init = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(PACKAGE, init, submodule_search_locations=[folder])
    assert spec is not None  # the file is there: this one lies beside it
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    load_package()
    importlib.import_module(PACKAGE + ".start").main()
elif __name__ == "__mp_main__":  # a process that multiprocessing has spawned imports what was started: this file
    load_package()
    importlib.import_module(PACKAGE + ".start").worker(globals())
