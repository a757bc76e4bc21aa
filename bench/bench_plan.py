"""Whole-process time of `plan` beside an empty Hydra app with as many config groups: the ratio is what counts."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from amt_hydra.conf_path import groups, shipped

_ROUNDS = 15
_APP = """\
import hydra
@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(cfg): pass
main()
"""


def empty_app(folder: Path, names: Sequence[str]) -> list[str]:
    """Write an application that does nothing, with one option in each group; returns its command."""
    for name in names:
        option = folder / "conf" / name / "x.yaml"
        option.parent.mkdir(parents=True)
        option.write_text("name: x\n")
    defaults = "".join(f"  - {name}: x\n" for name in names)
    (folder / "conf" / "config.yaml").write_text(f"defaults:\n{defaults}  - _self_\n")
    (folder / "app.py").write_text(_APP)
    return [sys.executable, "app.py"]


def measure(commands: dict[str, list[str]], cwd: Path) -> dict[str, float]:
    """Median seconds of each command; the commands take turns, so that a busy moment hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(_ROUNDS):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, cwd=cwd, check=True, capture_output=True, env={**os.environ, "HOME": str(cwd)})
            seconds[name].append(time.perf_counter() - start)
    return {name: sorted(values)[_ROUNDS // 2] for name, values in seconds.items()}


def main() -> None:
    """Print the table."""
    names = groups([shipped()])
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "empty Hydra app": empty_app(Path(folder), names),
            "plan": [sys.executable, "-m", "amt_hydra", "plan"],
            "plan --json": [sys.executable, "-m", "amt_hydra", "plan", "--json"],
        }
        medians = measure(commands, Path(folder))
    base = medians["empty Hydra app"]
    for name, value in medians.items():
        print(f"{name:<28} {value * 1000:7.0f} ms   {value / base:4.2f} x   ({len(names)} groups)")


if __name__ == "__main__":
    main()
