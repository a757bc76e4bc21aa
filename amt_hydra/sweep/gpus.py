"""Leases of this machine's GPUs for points that run at the same time, of this sweep and of others."""

import contextlib
import itertools
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amt_hydra.errors import USAGE, AmtError, Never
from amt_hydra.sweep.points import Point

if TYPE_CHECKING:
    from filelock import BaseFileLock


_NAME = re.compile(r"\d+|(?:GPU|MIG)-[\w/-]+")


class GpuPool:
    """As many points at once as their GPUs are free.

    A lease is a lock on a file that the kernel releases with the process, of whichever sweep of this user on this
    machine. A GPU that another process computes on is not taken, whoever it belongs to.
    """

    full = "the GPUs are in use by others, or leased to another sweep"
    quiet = True

    def __init__(self, gpus: Sequence[str], busy: Callable[[str], bool], folder: Path | None = None) -> None:
        self.gpus = tuple(gpus)
        """As CUDA_VISIBLE_DEVICES names them."""
        self._busy = busy
        self._folder = folder or Path(tempfile.gettempdir()) / f"amt_hydra-gpus-{os.getuid()}"
        self._leases: dict[str, list[BaseFileLock]] = {}

    def never(self, point: Point) -> Never | None:
        """Say so where a point has more devices than there are GPUs."""
        wanted, there = _wanted(point), len(self.gpus)
        if wanted <= there:
            return None
        return Never(f"ddp.devices={wanted}, and the pool has {there} GPUs", (f"ddp.devices={there}",))

    def take(self, point: Point) -> Mapping[str, str] | None:
        """Lease as many GPUs as the point has devices; None where so many are not free."""
        from filelock import FileLock, Timeout

        wanted = _wanted(point)
        self._folder.mkdir(parents=True, exist_ok=True)
        found: dict[str, BaseFileLock] = {}
        for gpu in self.gpus:
            lock: BaseFileLock = FileLock(self._folder / f"{gpu.replace('/', '_')}.lock")
            with contextlib.suppress(Timeout):
                lock.acquire(timeout=0)
                if self._busy(gpu):
                    lock.release()
                    continue
                found[gpu] = lock
                if len(found) == wanted:
                    self._leases[point.exp_id] = list(found.values())
                    return {"CUDA_VISIBLE_DEVICES": ",".join(found)}
        for lock in found.values():
            lock.release()
        return None

    def give_back(self, point: Point) -> None:
        """Release the point's GPUs."""
        for lock in self._leases.pop(point.exp_id, ()):
            lock.release()


def _wanted(point: Point) -> int:
    return point.devices or 1  # left to the machine: one each, so that most points run


def pool(named: object, environ: Mapping[str, str]) -> GpuPool:
    """The pool of the GPUs named, else of those visible. Raises AmtError where there are none."""
    if named is not None and (isinstance(named, str) or not isinstance(named, Sequence)):
        raise AmtError(
            f"hydra.launcher.gpus={named} is no list of GPUs", new=[f"hydra.launcher.gpus=[{named}]"], code=USAGE
        )
    if named is not None:
        gpus = list(dict.fromkeys(str(gpu) for gpu in named))
    else:
        visible = environ.get("CUDA_VISIBLE_DEVICES")
        gpus = _all() if visible is None else [word.strip() for word in visible.split(",")]
        gpus = list(itertools.takewhile(lambda word: word not in ("", "-1"), gpus))  # as CUDA reads it
    wrong = [gpu for gpu in gpus if not _NAME.fullmatch(gpu)]
    if wrong:
        raise AmtError(f"{wrong[0]!r} names no GPU: valid are numbers and UUIDs (GPU-…, MIG-…)", code=USAGE)
    if not gpus:
        raise AmtError(
            "hydra/launcher=gpu_pool: no GPU is visible here",
            new=["hydra/launcher=local"],
            drop=["hydra.launcher.gpus"],
        )
    return GpuPool(gpus, _is_busy)


def _all() -> list[str]:
    with _nvml() as nvml:
        return [] if nvml is None else [str(number) for number in range(nvml.nvmlDeviceGetCount())]


def _is_busy(gpu: str) -> bool:
    """Whether any process computes on it; False where no driver answers, as of GPUs that are only pretended."""
    with _nvml() as nvml:
        if nvml is None:
            return False
        find = nvml.nvmlDeviceGetHandleByIndex if gpu.isdigit() else nvml.nvmlDeviceGetHandleByUUID
        return bool(nvml.nvmlDeviceGetComputeRunningProcesses(find(int(gpu) if gpu.isdigit() else gpu)))
    return False


@contextlib.contextmanager
def _nvml() -> Iterator[Any]:
    """NVML while it is needed; None where no driver answers."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()
