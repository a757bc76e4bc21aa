"""The facts of a machine, read from small trees that look like /proc and /sys."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from amt_hydra.machine import Gpu, free_bytes, read_gpus, read_machine

KEY = "0123456789abcdef" * 3


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"sys/devices/system/cpu/online": "0-63\n", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


CPUS = {
    "all of them": ({}, {}, 64, "all 64 of this machine"),
    "affinity": (
        {"proc/self/status": "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,8\n"},
        {},
        5,
        "CPU affinity: 5 of 64",
    ),
    "cgroup v2": (
        {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "400000 100000\n"},
        {},
        4,
        "cgroup quota of 4.0 of 64",
    ),
    "cgroup v2, the parent's quota": (
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
            "sys/fs/cgroup/a/cpu.max": "250000 100000\n",
            "sys/fs/cgroup/cpu.max": "800000 100000\n",
        },
        {},
        2,
        "cgroup quota of 2.5 of 64",
    ),
    "cgroup v2, in a container": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"},
        {},
        1,
        "cgroup quota of 0.5 of 64",
    ),
    "cgroup v1": (
        {
            "proc/self/cgroup": "9:memory:/x\n4:cpu,cpuacct:/job\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "600000\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
        },
        {},
        6,
        "cgroup quota of 6.0 of 64",
    ),
    "cgroup v1, in a container that is told the host's path": (
        {
            "proc/self/cgroup": "4:cpu:/docker/abc\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
        {},
        3,
        "cgroup quota of 3.0 of 64",
    ),
    "cgroup v1 without a quota": (
        {
            "proc/self/cgroup": "4:cpu:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
        {},
        64,
        "all 64 of this machine",
    ),
    "nonsense": (
        {"proc/self/cgroup": "x\n0::/../..\n\n", "proc/self/status": "Cpus_allowed_list:\t?\n"},
        {"SLURM_JOB_ID": "1", "SLURM_CPUS_ON_NODE": "many"},
        64,
        "all 64 of this machine",
    ),
    "c31 Slurm's share of the node": (
        {},
        {"SLURM_JOB_ID": "1", "SLURM_CPUS_ON_NODE": "16", "SLURM_CPUS_PER_TASK": "8"},
        16,
        "SLURM_CPUS_ON_NODE: 16 of 64",
    ),
    "c31 Slurm's share per task": (
        {},
        {"SLURM_JOB_ID": "1", "SLURM_CPUS_PER_TASK": "8", "SLURM_NTASKS_PER_NODE": "2"},
        16,
        "SLURM_CPUS_PER_TASK: 16 of 64",
    ),
    "Slurm variables outside of a job": ({}, {"SLURM_CPUS_ON_NODE": "16"}, 64, "all 64 of this machine"),
    "the smallest wins": (
        {
            "proc/self/status": "Cpus_allowed_list:\t0-7\n",
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cpu.max": "600000 100000\n",
        },
        {"SLURM_JOB_ID": "1", "SLURM_CPUS_ON_NODE": "7"},
        6,
        "cgroup quota of 6.0 of 64",
    ),
}


@pytest.mark.parametrize("case", CPUS)
def test_cpus_are_those_that_the_job_has(tmp_path, case):
    files, environ, cpus, source = CPUS[case]
    machine = read_machine(environ, root=tree(tmp_path, files))
    assert (machine.cpus, machine.cpus_source) == (cpus, source)


@pytest.mark.parametrize(
    ("cpuinfo", "bf16"),
    [
        ("processor : 0\nflags\t\t: fpu avx512_bf16 sse\nflags\t\t: fpu\n", True),
        ("flags : fpu amx_bf16\n", True),
        ("flags : fpu avx512f avx512bf16x\n", False),
        ("vmx flags : amx_bf16\nflags : fpu\n", False),
        ("Features\t: fp asimd i8mm bf16\n", True),
        ("Features\t: fp asimd i8mm\n", False),
        ("", False),
    ],
)
def test_bf16_of_the_cpu(tmp_path, cpuinfo, bf16):
    assert read_machine({}, root=tree(tmp_path, {"proc/cpuinfo": cpuinfo})).cpu_bf16 is bf16


def test_a_system_without_proc_and_sys(tmp_path):
    machine = read_machine({}, root=tmp_path)
    assert machine.cpus == os.cpu_count()
    assert (machine.cpu_bf16, machine.gpus, machine.shm_bytes) == (False, (), None)


def test_this_machine():
    machine = read_machine(os.environ)
    assert 1 <= machine.cpus <= len(os.sched_getaffinity(0))
    assert machine.shm_bytes is None or machine.shm_bytes >= 0


def test_slurm_commands_are_looked_for_in_path(tmp_path):
    (tmp_path / "squeue").touch(0o755)
    assert read_machine({"PATH": str(tmp_path)}).slurm == ("squeue",)
    assert read_machine({}).slurm == ()


# GPUs, by a module that answers as nvidia-ml-py does.


class NotThisOneError(Exception):
    pass


A100, T4 = ("NVIDIA A100", (8, 0), 40 * 2**30), ("Tesla T4", (7, 5), 15 * 2**30)


def fake_nvml(*gpus, init=None, sliced=False, text=str) -> SimpleNamespace:
    def refuse(*_: object) -> None:
        raise NotThisOneError

    def initialize() -> None:
        calls.append("init")
        if init is not None:
            raise init

    calls: list[str] = []
    slice_ = ("slice", (0, 0), 5 * 2**30)
    return SimpleNamespace(
        calls=calls,
        NVMLError=NotThisOneError,
        nvmlInit=initialize,
        nvmlShutdown=lambda: calls.append("shutdown"),
        nvmlDeviceGetCount=lambda: len(gpus),
        nvmlDeviceGetHandleByIndex=lambda index: (index, *gpus[index]),
        nvmlDeviceGetHandleByUUID=lambda uuid: (0, *slice_) if sliced else refuse(),
        nvmlDeviceGetUUID=lambda handle: text(f"GPU-{handle[0]}abc"),
        nvmlDeviceGetMigMode=(lambda handle: [1, 1]) if sliced else refuse,
        nvmlDeviceGetMemoryInfo=lambda handle: SimpleNamespace(total=handle[3]),
        nvmlDeviceGetDeviceHandleFromMigDeviceHandle=lambda handle: (0, *gpus[0]) if handle[1] == "slice" else refuse(),
        nvmlDeviceGetCudaComputeCapability=lambda handle: handle[2],
        nvmlDeviceGetName=lambda handle: text(handle[1]),
    )


def gpus(tmp_path, nvml, **environ):
    found, source = read_gpus(environ, tree(tmp_path, {"dev/nvidiactl": ""}), lambda: nvml)
    assert nvml.calls in ([], ["init"], ["init", "shutdown"])
    return found, source


def test_all_gpus_where_nothing_hides_them(tmp_path):
    found, source = gpus(tmp_path, fake_nvml(A100, T4, text=str.encode))
    assert found == (Gpu(0, *A100), Gpu(1, *T4))
    assert source == "all of this machine"


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        ("1", ["1"]),
        ("2, 0", ["2", "0"]),
        ("1,9,0", ["1"]),
        ("1,x", ["1"]),
        ("GPU-2abc", ["2"]),
        ("GPU-2", ["2"]),
        ("GPU-9,0", []),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
    ],
)
def test_cuda_visible_devices_chooses(tmp_path, visible, names):
    three = [(str(number), (8, 0), 1) for number in range(3)]
    found, source = gpus(tmp_path, fake_nvml(*three), CUDA_VISIBLE_DEVICES=visible, CUDA_DEVICE_ORDER="PCI_BUS_ID")
    assert [(gpu.index, gpu.name) for gpu in found] == list(enumerate(names))
    assert "CUDA_VISIBLE_DEVICES=" in source


def test_c29_unlike_gpus_are_not_told_apart_by_number_where_cuda_counts_by_speed(tmp_path):
    found, source = gpus(tmp_path, fake_nvml(T4, A100), CUDA_VISIBLE_DEVICES="0")
    assert found is None
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in source
    assert gpus(tmp_path, fake_nvml(T4, T4), CUDA_VISIBLE_DEVICES="0")[0] == (Gpu(0, *T4),)


def test_a_divided_gpu(tmp_path):
    assert gpus(tmp_path, fake_nvml(A100, sliced=True))[0] is None
    found, _ = gpus(tmp_path, fake_nvml(A100, sliced=True), CUDA_VISIBLE_DEVICES="MIG-abc")
    assert found == (Gpu(0, "NVIDIA A100", (8, 0), 5 * 2**30),)


@pytest.mark.parametrize("error", [NotThisOneError("driver mismatch"), OSError("no library"), RuntimeError()])
def test_a_driver_that_does_not_answer_is_unknown(tmp_path, error):
    found, source = gpus(tmp_path, fake_nvml(A100, init=error))
    assert found is None
    assert "does not answer" in source


def test_without_a_driver_nothing_is_loaded(tmp_path):
    assert read_gpus({}, tmp_path, lambda: pytest.fail("loaded")) == ((), "no NVIDIA driver")


def test_the_calls_exist_in_nvidia_ml_py():
    pynvml = pytest.importorskip("pynvml")
    assert [name for name in vars(fake_nvml()) if name != "calls" and not hasattr(pynvml, name)] == []


# W&B


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def wandb(home: Path, cwd: Path | None = None, **environ: str):
    found = read_machine({"HOME": str(home), **environ}, cwd=cwd).wandb
    assert KEY not in repr(found)
    return found


def test_c32_no_credentials(home):
    found = wandb(home)
    assert not found.credentials
    assert f"no {home}/.netrc" in found.source
    assert not wandb(home, WANDB_API_KEY="").credentials


@pytest.mark.parametrize("key", [KEY, f"local-{KEY}", "abc.def-_1.ghi"])
def test_c32_a_key_in_the_environment(home, key):
    found = wandb(home, WANDB_API_KEY=key)
    assert (found.credentials, found.source, found.problem) == (True, "WANDB_API_KEY", "")
    assert key not in repr(found)


@pytest.mark.parametrize("key", ["short", "x" * 39, f"{KEY} ", f"local-{KEY}!"])
def test_a_key_that_wandb_refuses_is_a_problem(home, key):
    found = wandb(home, WANDB_API_KEY=key)
    assert "does not have the form" in found.problem
    assert key not in repr(found)


def test_an_identity_token_file(home):
    token = home / "token"
    found = wandb(home, WANDB_IDENTITY_TOKEN_FILE=str(token))
    assert not found.credentials
    assert "not there" in found.problem
    token.write_text(KEY)
    found = wandb(home, WANDB_IDENTITY_TOKEN_FILE=str(token))
    assert (found.credentials, found.source, found.problem) == (True, "WANDB_IDENTITY_TOKEN_FILE", "")
    assert "both set" in wandb(home, WANDB_IDENTITY_TOKEN_FILE=str(token), WANDB_API_KEY=KEY).problem


@pytest.mark.parametrize("name", [".netrc", "_netrc"])
@pytest.mark.parametrize("host", ["api.wandb.ai", "api.forge.coreweave.com"])
def test_c32_a_netrc_entry(home, name, host):
    (home / name).write_text(
        f"machine github.com\n login a\n password b\nmachine {host}\n login user\n password {KEY}\n"
    )
    found = wandb(home)
    assert (found.credentials, found.source) == (True, f"{home / name}: {host}")


def test_a_netrc_entry_that_wandb_refuses_is_a_problem(home):
    (home / ".netrc").write_text("machine api.wandb.ai login user password short\n")
    assert "does not have the form" in wandb(home).problem


def test_a_default_entry_counts_as_it_does_for_wandb(home):
    (home / ".netrc").write_text(f"default login user password {KEY}\n")
    assert wandb(home).credentials


def test_netrc_elsewhere_and_a_server_of_ones_own(home, tmp_path):
    (tmp_path / "n").write_text(f"machine wandb.lab:8080 login user password {KEY}\n")
    assert wandb(home, NETRC=str(tmp_path / "n"), WANDB_BASE_URL="http://wandb.lab:8080/").credentials
    assert not wandb(home, NETRC=str(tmp_path / "n")).credentials
    (home / "n").write_text(f"machine api.wandb.ai login user password {KEY}\n")
    assert wandb(home, NETRC="~/n").credentials
    found = wandb(home, NETRC="~/n", WANDB_BASE_URL="http://wandb.lab:8080/")
    assert not found.credentials
    assert "no entry for wandb.lab:8080" in found.source


@pytest.mark.parametrize("text", [f"machine api.wandb.ai {KEY}", f"password {KEY}", "machine\n", "\0\n"])
def test_a_malformed_netrc_is_no_credentials(home, text):
    (home / ".netrc").write_text(text)
    assert not wandb(home).credentials


def test_a_netrc_that_cannot_be_read(home):
    (home / ".netrc").mkdir()
    assert "cannot be read (IsADirectoryError)" in wandb(home).source
    (home / "bytes").write_bytes(b"machine \xff\xfe\x00 login")
    assert not wandb(home, NETRC=str(home / "bytes")).credentials


@pytest.mark.parametrize(
    ("environ", "mode", "problem"),
    [
        ({}, "online", ""),
        ({"WANDB_MODE": "online"}, "online", ""),
        ({"WANDB_MODE": "shared"}, "online", ""),
        ({"WANDB_MODE": "offline"}, "offline", ""),
        ({"WANDB_MODE": "dryrun"}, "offline", ""),
        ({"WANDB_MODE": "disabled"}, "disabled", ""),
        ({"WANDB_MODE": "OFFLINE"}, "online", "refuses to start"),
        ({"WANDB_MODE": ""}, "online", "refuses to start"),
        ({"WANDB_BASE_URL": ""}, "online", "refuses to start"),
        ({"WANDB_BASE_URL": "http://["}, "online", "refuses to start"),
        ({"WANDB_BASE_URL": "wandb.lab"}, "online", "refuses to start"),
        ({"WANDB_BASE_URL": "https://wandb.lab"}, "online", ""),
        ({"WANDB_DISABLED": "true"}, "online", "no longer reads"),
        ({"WANDB_DISABLED": "false"}, "online", ""),
        ({"WANDB_DISABLED": "true", "WANDB_MODE": "disabled"}, "disabled", ""),
    ],
)
def test_the_mode(home, environ, mode, problem):
    found = wandb(home, **environ)
    assert found.mode == mode
    assert problem in found.problem
    assert bool(problem) == bool(found.problem)


def test_settings_files_count(home, tmp_path):
    user, project = home / ".config/wandb", tmp_path / "src/wandb"
    for folder in (user, project):
        folder.mkdir(parents=True)
    (user / "settings").write_text(f"[default]\nmode = offline\napi_key = {KEY}\n")
    assert (wandb(home).mode, wandb(home).credentials) == ("offline", True)
    assert wandb(home, WANDB_MODE="online").mode == "online"
    assert not wandb(home, WANDB_API_KEY="").credentials
    (project / "settings").write_text("[default]\nmode = disabled\n")
    assert wandb(home, tmp_path / "src").mode == "disabled"
    (project / "settings").write_text("mode without a section")
    assert wandb(home, tmp_path / "src").mode == "offline"
    assert wandb(home, WANDB_CONFIG_DIR="~/nothing").mode == "online"


def test_without_a_home(monkeypatch):
    import pwd

    def unknown(_uid: int) -> None:
        raise KeyError

    assert read_machine({}).wandb.mode == "online"
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    found = read_machine({}).wandb
    assert not found.credentials
    assert "no home folder" in found.source


def test_free_bytes_of_what_is_not_there_yet(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "a/b/c", tmp_path / "file" / "x", Path("outputs/not/there")):
        assert free_bytes(path) > 0


def test_the_import_is_cheap():
    code = (
        "import sys, amt_hydra.machine; "
        "print([m for m in ('psutil', 'pynvml', 'netrc', 'ctypes', 'wandb', 'torch') if m in sys.modules])"
    )
    root = Path(__file__).resolve().parents[1]
    shown = subprocess.run([sys.executable, "-c", code], cwd=root, check=True, capture_output=True, text=True)
    assert shown.stdout == "[]\n"
