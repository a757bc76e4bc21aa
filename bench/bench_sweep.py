"""Time to plan and check the points of a sweep, beside Hydra's own multirun of an empty job over as many."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_plan import empty_app

from amt_hydra.conf_path import groups, shipped

_POINTS = 500


def seconds(command: list[str], cwd: Path) -> float:
    """Wall time of a command that has to end well."""
    start = time.perf_counter()
    subprocess.run(command, cwd=cwd, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Print both and their ratio; the number of points may be given."""
    points = int(sys.argv[1]) if len(sys.argv) > 1 else _POINTS
    names = groups([shipped()])
    sweep = f"seed=range(0,{points})"
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        app = [*empty_app(here, names), "-m", f"+seed=range(0,{points})"]
        plan = [sys.executable, "-m", "amt_hydra", "plan", "-m", "repo=reference", sweep]
        plan += ["data.num_workers=0", f"sweep.max_points={points}"]
        theirs, ours = seconds(app, here), seconds(plan, here)
    print(
        f"Hydra's multirun of an empty job   {theirs:6.1f} s, {theirs / points:.3f} s a point   ({len(names)} groups)"
    )
    print(f"plan -m                            {ours:6.1f} s, {ours / points:.3f} s a point   {ours / theirs:.2f} x")


if __name__ == "__main__":
    main()
