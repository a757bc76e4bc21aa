"""The verb status: every point of every sweep, as it stands now."""

import json as json_module
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from amt_hydra.report.data import plain
from amt_hydra.report.sweep import show_standings
from amt_hydra.sweep import ledger
from amt_hydra.sweep.standing import standings

_EVERY_S = 2.0


def status(outputs: Path, environ: Mapping[str, str], *, json: bool, watch: bool) -> int:
    """Show them once, or with `watch` every two seconds until Ctrl-C or until nothing is left to train."""
    while True:
        found = standings(ledger.read(outputs), environ)
        if json:
            print(json_module.dumps([plain(one) for one in found], indent=2))
        else:
            if watch and sys.stdout.isatty():
                print("\x1b[2J\x1b[H", end="")  # from the top of an empty screen
            show_standings(found, outputs)
        if not watch or not any(one.state in ("running", "queued") for one in found):
            return 0
        sys.stdout.flush()
        time.sleep(_EVERY_S)
