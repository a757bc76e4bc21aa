"""What this machine offers a training: CPUs, GPUs, W&B credentials, Slurm. Read once; nothing here raises but
`free_bytes`, and nothing heavy is imported before it is needed.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amt_hydra.machine_wandb import Wandb, read_wandb
from amt_hydra.slurm.allocation import Allocation

__all__ = ["Gpu", "Machine", "Wandb", "free_bytes", "read_gpus", "read_machine"]

_SLURM_COMMANDS = ("sbatch", "srun", "squeue", "sacct", "scontrol", "scancel")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU that a training started here would see."""

    index: int
    """Its place among the visible ones, as in "cuda:0"."""
    name: str
    capability: tuple[int, int]
    """Compute capability; bf16 arithmetic needs (8, 0)."""
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts of one machine, for the environment of one process."""

    cpus: int
    """CPUs that a process started here, and all that it starts, may use; at least 1."""
    cpus_source: str
    """What limits them, e.g. "cgroup quota of 4.0 of 64"."""
    cpu_bf16: bool
    """Whether the CPU computes in bf16 itself; False where that cannot be told."""
    gpus: tuple[Gpu, ...] | None
    """The visible GPUs; None where that cannot be told."""
    gpus_source: str
    """How that is known, or why not."""
    shm_bytes: int | None
    """Free bytes of /dev/shm, through which loader workers hand over their batches; None where there is none."""
    slurm: tuple[str, ...]
    """The Slurm commands in PATH."""
    wandb: Wandb
    job: Allocation | None = None
    """The Slurm job that we are in."""
    to_come: bool = False
    """These are the facts of a job that is yet to be submitted, as far as they can be known."""


def read_machine(environ: Mapping[str, str], *, cwd: Path | None = None, root: Path = Path("/")) -> Machine:
    """Return the facts for a process with the environment `environ` and the folder `cwd` (where wandb keeps settings).

    `root` stands for "/" where /proc, /sys and /dev are read.
    """
    cpus, cpus_source = _cpus(environ, root)
    gpus, gpus_source = read_gpus(environ, root)
    return Machine(
        cpus=cpus,
        cpus_source=cpus_source,
        cpu_bf16=_cpu_bf16(root),
        gpus=gpus,
        gpus_source=gpus_source,
        shm_bytes=_shm_bytes(root),
        slurm=tuple(name for name in _SLURM_COMMANDS if shutil.which(name, path=environ.get("PATH", ""))),
        wandb=read_wandb(environ, cwd),
        job=Allocation.of_environment(environ),
    )


def free_bytes(path: Path) -> int:
    """Return the bytes that we may still write at `path`, or where its nearest existing ancestor is.

    Raises OSError where not even the root answers.
    """
    path = path.absolute()
    for place in (path, *path.parents):
        try:
            return shutil.disk_usage(place).free
        except OSError:
            continue
    return shutil.disk_usage(path.anchor).free


# CPUs


def _cpus(environ: Mapping[str, str], root: Path) -> tuple[int, str]:
    """Return the smallest of the limits, and its name."""
    online = _count(_text(root / "sys/devices/system/cpu/online")) or os.cpu_count() or 1
    best = (online, f"all {online} of this machine")
    for count, source in (*_affinity(root), *_quotas(root), *_slurm_cpus(environ)):
        if count < best[0]:
            best = (count, f"{source} of {online}")
    return max(1, best[0]), best[1]


def _affinity(root: Path) -> Iterator[tuple[int, str]]:
    allowed = _field(_text(root / "proc/self/status"), "Cpus_allowed_list")
    count = _count(allowed)
    if count:
        yield count, f"CPU affinity: {count}"


def _quotas(root: Path) -> Iterator[tuple[int, str]]:
    """Yield the CPU quotas of our cgroup and those above it, in both versions of cgroups.

    Part of a CPU is left out: a worker process on half a CPU makes all of them wait, since the quota is common.
    """
    mounts = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, inner = (*line.split(":", 2), "", "")[:3]
        tops = [mounts / "unified", mounts] if not controllers else []
        if "cpu" in controllers.split(","):
            tops = [mounts / controllers, mounts / "cpu"]
        for top in tops:
            folder = top / inner.strip("/")
            # From inside a container the path may be the host's: then only the top exists.
            for place in (folder, *folder.parents[: len(folder.relative_to(top).parts)]):
                cpus = _quota(place)
                if cpus is not None:
                    yield int(cpus), f"cgroup quota of {cpus:.1f}"


def _quota(folder: Path) -> float | None:
    words = _text(folder / "cpu.max").split()
    if not words:
        words = [_text(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    try:
        quota, period = (int(word) for word in words)
    except ValueError:  # "max", or nothing there
        return None
    return quota / period if quota > 0 and period > 0 else None


def _slurm_cpus(environ: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Yield the job's CPUs on this node; where Slurm does not say, those of its tasks."""
    if not environ.get("SLURM_JOB_ID"):
        return
    on_node = environ.get("SLURM_CPUS_ON_NODE", "")
    per_task = environ.get("SLURM_CPUS_PER_TASK", "")
    if on_node.isdigit():
        yield int(on_node), f"SLURM_CPUS_ON_NODE: {on_node}"
    elif per_task.isdigit():
        tasks = environ.get("SLURM_NTASKS_PER_NODE", "")
        count = int(per_task) * (int(tasks) if tasks.isdigit() else 1)
        yield count, f"SLURM_CPUS_PER_TASK: {count}"


def _cpu_bf16(root: Path) -> bool:
    text = _text(root / "proc/cpuinfo")
    x86 = set((_field(text, "flags") or "").split())
    arm = set((_field(text, "Features") or "").split())
    return bool(x86 & {"avx512_bf16", "amx_bf16"}) or "bf16" in arm


def _count(ranges: str | None) -> int:
    """Return how many numbers a text such as "0-3,8" names."""
    total = 0
    for part in (ranges or "").strip().split(","):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if found:
            total += int(found[2] or found[1]) - int(found[1]) + 1
    return total


# GPUs


def read_gpus(
    environ: Mapping[str, str], root: Path = Path("/"), load: Callable[[], Any] | None = None
) -> tuple[tuple[Gpu, ...] | None, str]:
    """Return the GPUs that a process with `environ` sees, or None, and how that is known.

    `load` returns the module of nvidia-ml-py; it is called only where a driver is.
    """
    if not any((root / path).exists() for path in ("dev/nvidiactl", "proc/driver/nvidia/version", "dev/dxg")):
        return (), "no NVIDIA driver"
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and _is_none(visible):
        return (), f"CUDA_VISIBLE_DEVICES={visible!r} hides all"
    try:
        nvml = (load or _load_nvml)()
        nvml.nvmlInit()
        try:
            return _visible(nvml, visible, environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID")
        finally:
            nvml.nvmlShutdown()
    except Exception as error:  # a driver that does not answer has many ways to say so, and none may stop a plan
        return None, f"the NVIDIA driver does not answer: {error or type(error).__name__}"


def _load_nvml() -> Any:
    import pynvml

    return pynvml


def _is_none(visible: str) -> bool:
    first = visible.split(",", maxsplit=1)[0].strip()
    return not (first.isdigit() or first.startswith(("GPU-", "MIG-")))


def _visible(nvml: Any, visible: str | None, by_bus: bool) -> tuple[tuple[Gpu, ...] | None, str]:
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    if "MIG-" not in (visible or "") and any(_is_sliced(nvml, handle) for handle in handles):
        return None, "a GPU is divided (MIG), and only CUDA knows which part it takes: name it in CUDA_VISIBLE_DEVICES"
    if visible is None:
        return tuple(_gpu(nvml, place, handle) for place, handle in enumerate(handles)), "all of this machine"
    chosen = []
    by_index = False
    for word in (word.strip() for word in visible.split(",")):
        if word.isdigit() and int(word) < len(handles):
            by_index = True
            chosen.append(handles[int(word)])
        elif word.startswith(("GPU-", "MIG-")) and (found := _by_uuid(nvml, word, handles)) is not None:
            chosen.append(found)
        else:
            break  # CUDA stops at the first that makes no sense
    kinds = {_gpu(nvml, 0, handle) for handle in handles}
    if by_index and not by_bus and len(kinds) > 1:
        return None, "CUDA_VISIBLE_DEVICES counts by speed here and the GPUs differ: set CUDA_DEVICE_ORDER=PCI_BUS_ID"
    return tuple(_gpu(nvml, place, handle) for place, handle in enumerate(chosen)), f"CUDA_VISIBLE_DEVICES={visible}"


def _by_uuid(nvml: Any, uuid: str, handles: list[Any]) -> Any:
    """Return the device of that UUID, of which CUDA takes an unambiguous beginning too."""
    if uuid.startswith("GPU-"):
        return next((one for one in handles if _str(nvml.nvmlDeviceGetUUID(one)).startswith(uuid)), None)
    return nvml.nvmlDeviceGetHandleByUUID(uuid)


def _is_sliced(nvml: Any, handle: Any) -> bool:
    try:
        return bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except nvml.NVMLError:  # it cannot be divided
        return False


def _gpu(nvml: Any, place: int, handle: Any) -> Gpu:
    memory = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
    try:
        whole = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)  # a slice has its own memory only
    except nvml.NVMLError:
        whole = handle
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(whole)
    return Gpu(place, _str(nvml.nvmlDeviceGetName(whole)), (int(major), int(minor)), memory)


def _str(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


# Files


def _shm_bytes(root: Path) -> int | None:
    try:
        return shutil.disk_usage(root / "dev/shm").free
    except OSError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _field(text: str, name: str) -> str | None:
    """Return the value of the first line "name : value"."""
    found = re.search(rf"^{name}\s*:\s*(.*)$", text, re.MULTILINE)
    return found[1] if found else None
