"""The environment of train.py, and a free port for its ranks. Pure but for `free_port`."""

import socket
from collections.abc import Iterable, Mapping

_RANKS = frozenset(
    {
        # torch.distributed and Lightning: a left-over one makes the trainer believe that it is a rank of another run.
        "RANK",
        "LOCAL_RANK",
        "NODE_RANK",
        "GROUP_RANK",
        "ROLE_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "GROUP_WORLD_SIZE",
        "ROLE_WORLD_SIZE",
        "ROLE_NAME",
        "MASTER_ADDR",
        "MASTER_PORT",
        # Lightning writes these two for the ranks that it starts. Inherited from another run they would seed this one
        # behind the plan's back; the setting `seed` is the way to ask for a seed.
        "PL_GLOBAL_SEED",
        "PL_SEED_WORKERS",
        # LSF, by whose variables Lightning takes itself for a job step.
        "LSB_JOBID",
        "LSB_AFFINITY_HOSTFILE",
        # MPI libraries that have no prefix of their own.
        "MPI_LOCALRANKID",
        "MPI_LOCALNRANKS",
        "OMPI_UNIVERSE_SIZE",
    }
)
# OMPI_MCA_* and the like stay: they tune the library and say nothing about ranks.
_RANK_PREFIXES = (
    "TORCHELASTIC_",
    "OMPI_COMM_WORLD_",
    "PMI_",
    "PMIX_",
    "PALS_",
    "MV2_COMM_WORLD_",
    "JSM_NAMESPACE_",
)
_SLURM_KEPT = frozenset({"SLURM_CONF", "SLURM_JOB_ID"})


def removed(caller: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names that `child_environment` takes out of `caller` unasked, sorted, so that the plan can say so."""
    return tuple(sorted(name for name in caller if _is_rank(name) or _is_slurm(name)))


def described(caller: Mapping[str, str]) -> dict[str, str]:
    """Return what Slurm tells of the job that the caller is in: its CPUs count, though train.py is not told of them."""
    return {name: value for name, value in caller.items() if name.startswith("SLURM_")}


def child_environment(caller: Mapping[str, str], set_: Mapping[str, str], unset: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment of train.py for a local launch.

    It is `caller` without what belongs to another launch (ranks, Slurm's description of a job step) and without
    `unset`; `set_` comes last, so it may name any of these.
    """
    out = set(removed(caller)) | set(unset)
    return {**{name: value for name, value in caller.items() if name not in out}, **set_}


def free_port() -> int:
    """Return a TCP port that is free on this host now, for MASTER_PORT.

    It is not held: two calls at the same instant differ, but another program could take the port before train.py does.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _is_rank(name: str) -> bool:
    return name in _RANKS or name.startswith(_RANK_PREFIXES)


def _is_slurm(name: str) -> bool:
    return name.startswith("SLURM_") and name not in _SLURM_KEPT
