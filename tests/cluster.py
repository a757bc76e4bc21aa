"""A real Slurm of one machine, for tests: munged, slurmctld and slurmd on loopback, as root."""

import os
import shutil
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from counting import until

CPUS, GPUS = 8, 4
"""Pretended. The GPUs are character devices that nobody computes on: Slurm sets CUDA_VISIBLE_DEVICES by them."""
_PROGRAMS = ("munged", "slurmctld", "slurmd")
_CONF = """\
ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
SlurmdTimeout=10
ReturnToService=2
JobRequeue=1
KillWait=10
OverTimeLimit=0
InactiveLimit=0
EnforcePartLimits=ALL
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} Sockets=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory={memory} \
Gres=gpu:fake:{gpus} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=1-00:00:00 DefaultTime=00:10:00 State=UP
PartitionName=short Nodes={host} MaxTime=01:00:00 State=UP
"""


@dataclass
class Cluster:
    """`environ` is what its commands need, and whoever calls them."""

    folder: Path
    host: str = field(default_factory=lambda: socket.gethostname().split(".")[0])
    environ: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """Write its configuration and start it. It is idle when this returns."""
        munge = self.folder / "munge"
        for name in ("munge", "state", "spool", "dev"):
            (self.folder / name).mkdir(mode=0o700)
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o600)
        for number in range(GPUS):
            os.mknod(self.folder / "dev" / f"gpu{number}", 0o20666, os.makedev(1, 3))
        gpus = f"{self.folder}/dev/gpu[0-{GPUS - 1}]"
        gres = f"NodeName={self.host} Name=gpu Type=fake Flags=nvidia_gpu_env File={gpus}\n"
        (self.folder / "gres.conf").write_text(gres)
        controller, daemon = _free_ports()
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
        conf = _CONF.format(
            folder=self.folder,
            host=self.host,
            controller=controller,
            daemon=daemon,
            memory=memory,
            cpus=CPUS,
            gpus=GPUS,
        )
        (self.folder / "slurm.conf").write_text(conf)
        self.environ = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self._run(
            *("munged", "--force", f"--key-file={munge}/key", f"--socket={self.folder}/munge.socket"),
            *(f"--pid-file={self.folder}/munged.pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed"),
        )
        self._run("slurmctld", "-i")
        self.start_node()
        until(lambda: "idle" in self("sinfo", "-h", "-o", "%T"), 30)

    def start_node(self) -> None:
        """Start the daemon of its one machine."""
        self._run("slurmd", "-N", self.host)

    def stop_node(self) -> None:
        """Stop that daemon, as where a machine no longer answers."""
        _kill(self.folder / "slurmd.pid")

    def stop(self) -> None:
        """End all jobs, and it."""
        self("scancel", "-u", str(os.getuid()))
        for name in ("slurmd", "slurmctld", "munged"):
            _kill(self.folder / f"{name}.pid")

    def __call__(self, *command: str) -> str:
        """What one of its commands prints."""
        done = subprocess.run(
            command, env={**os.environ, **self.environ}, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout + done.stderr

    def jobs(self) -> dict[str, str]:
        """States of the jobs that it still has to do with, by id."""
        rows = (line.split("|") for line in self("squeue", "-h", "-r", "-o", "%i|%T").splitlines())
        return {row[0]: row[1] for row in rows if len(row) == 2}

    def _run(self, *command: str) -> None:
        program = shutil.which(command[0], path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        assert program is not None
        subprocess.run([program, *command[1:]], env={**os.environ, **self.environ}, check=True, timeout=60)


def missing() -> str:
    """Why no Slurm can be started here; "" where one can."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    absent = [name for name in _PROGRAMS if shutil.which(name, path=path) is None]
    if absent:
        return f"{', '.join(absent)} not installed (apt-get install slurm-wlm munge)"
    return "" if os.getuid() == 0 else "a Slurm of one's own takes root"


def _free_ports() -> list[int]:
    probes = [socket.socket() for _ in range(2)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def _kill(pid_file: Path) -> None:
    try:
        pid = int(pid_file.read_text())
        os.kill(pid, 15)
    except (OSError, ValueError):
        return
    until(lambda: not Path(f"/proc/{pid}/exe").exists(), 30)
