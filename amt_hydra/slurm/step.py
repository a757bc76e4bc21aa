"""Ranks that srun has started, asked to end.

srun itself, sent SIGTERM, kills them on the spot (srun.c: it forwards SIGKILL), so it is its step that the signal is
sent to. A program of its own, given the job's id and the step's name: the supervisor of train.py starts it by path.
Standard library only.
"""

import subprocess
import sys
from pathlib import Path


def asking(job: str, name: str) -> tuple[str, ...]:
    """The command that asks the ranks of a job's step to end."""
    return (sys.executable, "-I", "-S", str(Path(__file__).resolve()), job, name)


def main(job: str, name: str) -> int:
    """Send SIGTERM to the tasks of the step, on all its machines; returns an exit code, 1 where it is not there."""
    listed = subprocess.run(
        ["squeue", "--steps", "-h", "-j", job, "-o", "%i|%j"], check=False, capture_output=True, text=True
    )
    rows = (line.partition("|") for line in listed.stdout.splitlines())
    steps = [step for step, _, its_name in rows if its_name == name]
    return subprocess.run(["scancel", "--signal=TERM", *steps], check=False).returncode if steps else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
