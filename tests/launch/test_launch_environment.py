"""What train.py's environment is made of."""

import socket

import pytest

from amt_hydra.launch.environment import child_environment, free_port, removed

RANKS = [
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "NODE_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    "PL_GLOBAL_SEED",
    "PL_SEED_WORKERS",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "PMIX_RANK",
    "JSM_NAMESPACE_RANK",
    "LSB_JOBID",
]
KEPT = [
    "PATH",
    "HOME",
    "CUDA_VISIBLE_DEVICES",
    "WANDB_API_KEY",
    "AMT_FORCE_SCRATCH",
    "NCCL_DEBUG",
    "OMPI_MCA_btl",
    "SLURM_CONF",
    "SLURM_JOB_ID",
    "RANKS",
    "MY_RANK",
    "PL_TRAINER_DEVICES",
]


@pytest.mark.parametrize("name", RANKS)
def test_c03_rank_variables_are_taken_out(name):
    assert child_environment({name: "1", "A": "b"}, {}) == {"A": "b"}
    assert removed({name: "1", "A": "b"}) == (name,)


@pytest.mark.parametrize("name", ["SLURM_NTASKS", "SLURM_PROCID", "SLURM_JOB_NAME", "SLURM_CPUS_PER_TASK"])
def test_c07_what_slurm_says_of_a_step_is_taken_out_and_named(name):
    assert child_environment({name: "1"}, {}) == {}
    assert removed({name: "1", "SLURM_JOB_ID": "5"}) == (name,)


@pytest.mark.parametrize("name", KEPT)
def test_the_rest_is_the_callers(name):
    assert child_environment({name: "1"}, {}) == {name: "1"}
    assert removed({name: "1"}) == ()


def test_what_is_set_wins_and_what_is_unset_goes():
    caller = {"MASTER_PORT": "1", "A": "1", "B": "1", "C": "1"}
    assert child_environment(caller, {"MASTER_PORT": "2", "B": "2", "D": "2"}, ["A", "B", "nothing"]) == {
        "MASTER_PORT": "2",
        "B": "2",
        "C": "1",
        "D": "2",
    }
    assert caller["MASTER_PORT"] == "1"


def test_the_names_are_sorted():
    assert removed({"WORLD_SIZE": "", "RANK": "", "SLURM_NTASKS": ""}) == ("RANK", "SLURM_NTASKS", "WORLD_SIZE")


def test_c03_a_free_port_can_be_bound():
    with socket.socket() as one, socket.socket() as two:
        one.bind(("", free_port()))
        two.bind(("", free_port()))
