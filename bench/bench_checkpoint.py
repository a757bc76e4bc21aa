"""What the X-ray of a checkpoint costs, against the size of the file and the number of its tensors.

Run `python bench/bench_checkpoint.py`: prints a table. The files are written by torch.save with holes for the tensors'
bytes, so that 4 GiB take little of the disk. "ms" is the best of several calls within a running program, "CPU ms" the
same in processor time, which other programs disturb less; "cold ms" a process of its own from its first import to the
facts, without the start of the interpreter; "MiB" that process's peak above the bare interpreter. Ratios are to the
first row of the same block, measured in the same run.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from amt_hydra.checkpoint import xray  # noqa: E402 - from this tree, wherever it is run

COLD = """
import sys, time
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before, start = peak(), time.perf_counter()
from pathlib import Path
import dataclasses
shared = time.perf_counter()
from amt_hydra.checkpoint import xray
imported = time.perf_counter()
xray(Path(sys.argv[1]))
end = time.perf_counter()
mib = (peak() - before) / 1024
print([(end - start) * 1e3, (shared - start) * 1e3, (imported - shared) * 1e3, mib])
"""
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
CALLS = 15


def write(path: Path, parameters: int, size: int) -> None:
    """Write a Lightning-like checkpoint of `parameters` tensors and their AdamW state, `size` bytes in all."""
    numel = max(1, size // (parameters * 3 * 4))

    def hole() -> torch.Tensor:
        return torch.empty(numel)  # never touched, so never in memory

    state = {n: {"step": torch.empty(()), "exp_avg": hole(), "exp_avg_sq": hole()} for n in range(parameters)}
    groups = [{"lr": 1e-3, "betas": (0.9, 0.999), "weight_decay": 0.01, "params": list(range(parameters))}]
    content = {
        "epoch": 1,
        "global_step": 1000,
        "pytorch-lightning_version": "2.4.0",
        "state_dict": {f"encoder.layers.{n}.attention.weight": hole() for n in range(parameters)},
        "optimizer_states": [{"state": state, "param_groups": groups}],
        "hyper_parameters": {"lr": 1e-3},
    }
    with torch.serialization.skip_data():
        torch.save(content, path)


def warm(path: Path) -> tuple[float, float]:
    """Return the least milliseconds of several calls, by the clock and of the processor."""
    times, used = [], []
    for _ in range(CALLS):
        start, cpu = time.perf_counter(), time.process_time()
        seen = xray(path)
        used.append((time.process_time() - cpu) * 1e3)
        times.append((time.perf_counter() - start) * 1e3)
        assert seen.whole, seen.problem
    return min(times), min(used)


def cold(path: Path) -> list[float]:
    """Return [all ms, ms of pathlib and dataclasses, ms of our own import, peak MiB], each the least of five runs."""
    runs = []
    for _ in range(5):
        command = [sys.executable, "-c", COLD, str(path)]
        runs.append(json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout))
    return [min(column) for column in zip(*runs, strict=True)]


def block(title: str, cases: list[tuple[int, int]]) -> None:
    """Print one table."""
    columns = ("parameters", "tensors", "file", "ms", "CPU ms", "ratio", "cold ms", "MiB", "ratio")
    print(f"\n{title}\n" + " ".join(f"{c:>{w}}" for c, w in zip(columns, (10, 8, 10, 8, 8, 6, 8, 6, 6), strict=True)))
    first: tuple[float, float] | None = None
    for parameters, size in cases:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.ckpt"
            write(path, parameters, size)
            (ms, cpu), (all_ms, _, _, mib) = warm(path), cold(path)
            first = first or (cpu, mib)
            shown = path.stat().st_size / MIB
        time_part = f"{ms:>8.1f} {cpu:>8.1f} {cpu / first[0]:>6.2f} {all_ms:>8.1f}"
        print(f"{parameters:>10} {parameters * 4:>8} {shown:>6.0f} MiB {time_part} {mib:>6.1f} {mib / first[1]:>6.2f}")


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.ckpt"
        write(path, 1, KIB)
        _, shared, ours, _ = cold(path)
    print(f"import: pathlib and dataclasses {shared:.1f} ms, amt_hydra.checkpoint on top of them {ours:.1f} ms")
    block("size of the tensors", [(400, 16 * MIB), (400, 256 * MIB), (400, GIB), (400, 4 * GIB)])
    block("number of the tensors, 1 GiB", [(100, GIB), (200, GIB), (400, GIB), (800, GIB), (1600, GIB)])


if __name__ == "__main__":
    main()
