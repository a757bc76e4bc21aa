"""Settings against machines that are made up: each is a value given to the checks, nothing is measured."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from repos import line_of
from stand import MACHINE, Stand, errors, of, option

from amt_hydra.machine import Gpu, Wandb

pytest_plugins = ["desks"]

T4 = Gpu(0, "Tesla T4", (7, 5), 16 << 30)
A100 = Gpu(0, "NVIDIA A100", (8, 0), 80 << 30)
H100 = Gpu(1, "NVIDIA H100", (9, 0), 80 << 30)
NO_KEY = Wandb(credentials=False, source="none: no WANDB_API_KEY", mode="online")


# DevicesExist


def test_other_nodes_are_not_waited_for(stand: Stand) -> None:
    (finding,) = of(stand.pre("ddp.nodes=2"), "DevicesExist")
    assert finding.severity == "error"
    assert of(stand.follow(finding.fix[0]), "DevicesExist") == []


# PrecisionFits


def test_c29_bf16_on_a_made_up_t4_is_an_error_that_offers_fp16_and_fp32(stand: Stand) -> None:
    stand.machine(gpus=(T4,))
    (finding,) = of(stand.pre(), "PrecisionFits")
    assert finding.severity == "error"
    assert "Tesla T4" in finding.message
    assert "7.5" in finding.message
    assert "8.0" in finding.message
    values = []
    for fix in finding.fix:
        pre = stand.follow(fix)
        assert errors(pre) == []
        values.append(pre.subject.settings.precision.name)
    assert values == ["16-mixed", "32"]


def test_c29_the_ways_out_win_over_a_precision_that_was_typed(stand: Stand) -> None:
    stand.machine(gpus=(T4,))
    (finding,) = of(stand.pre("precision.name=bf16-mixed"), "PrecisionFits")
    assert all(errors(stand.follow(fix)) == [] for fix in finding.fix)


def test_c29_several_made_up_gpus_are_one_finding_and_only_those_in_use_count(stand: Stand) -> None:
    stand.machine(gpus=(T4, T4, T4))
    assert len(of(stand.pre(), "PrecisionFits")) == 1
    stand.machine(gpus=(A100, T4))
    assert of(stand.pre("ddp.devices=1"), "PrecisionFits") == []
    assert len(of(stand.pre("ddp.devices=2"), "PrecisionFits")) == 1


@pytest.mark.parametrize("gpus", [(A100,), (H100,), None, ()])
def test_c29_bf16_passes_where_a_made_up_gpu_computes_it_or_none_can_be_told(
    stand: Stand, gpus: tuple[Gpu, ...] | None
) -> None:
    stand.machine(gpus=gpus)
    assert of(stand.pre(), "PrecisionFits") == []


@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_c29_other_precisions_pass_on_a_made_up_t4(stand: Stand, precision: str) -> None:
    stand.machine(gpus=(T4,))
    assert of(stand.pre(f"precision={precision}"), "PrecisionFits") == []


# DevicesExist


def test_more_devices_than_made_up_gpus_is_an_error_with_the_number_there_is(stand: Stand) -> None:
    stand.machine(gpus=(A100, H100))
    (finding,) = of(stand.pre("ddp.devices=4"), "DevicesExist")
    assert "ddp.devices=4, but 2 GPUs" in finding.message
    assert of(stand.follow(finding.fix[0]), "DevicesExist") == []
    assert of(stand.pre("ddp.devices=2"), "DevicesExist") == []


def test_a_gpu_that_was_asked_for_has_to_be_there(stand: Stand) -> None:
    (finding,) = of(stand.pre("ddp=gpu1"), "DevicesExist")
    assert finding.severity == "error"
    assert errors(stand.follow(finding.fix[0])) == []
    stand.machine(gpus=None)
    assert [f.severity for f in of(stand.pre("ddp=gpu1"), "DevicesExist")] == ["warning"]


def test_several_ranks_on_a_cpu_are_fine(stand: Stand) -> None:
    assert of(stand.pre("ddp.devices=2"), "DevicesExist") == []


# WorkersFit


def test_c31_more_loader_processes_than_the_job_has_cpus(stand: Stand) -> None:
    stand.machine(cpus=8, cpus_source="SLURM_CPUS_ON_NODE: 8 of 64", gpus=(A100, H100))
    (finding,) = of(stand.pre("data.num_workers=3", "batch.sub=12", "batch.local=24"), "WorkersFit")
    assert "12 loader processes (3 x 2 ranks x 2 loaders)" in finding.message
    assert "8 CPUs (SLURM_CPUS_ON_NODE: 8 of 64)" in finding.message
    pre = stand.follow(finding.fix[0])
    assert pre.subject.settings.data.num_workers == 1  # (8 - 2) / (2 x 2) = 1.5
    assert of(pre, "WorkersFit") == []


@pytest.mark.parametrize("cpus", [1, 7, 19])
def test_c31_the_value_that_is_offered_always_fits(stand: Stand, cpus: int) -> None:
    stand.machine(cpus=cpus)
    (finding,) = of(stand.pre("data.num_workers=10"), "WorkersFit")
    assert of(stand.follow(finding.fix[0]), "WorkersFit") == []


def test_workers_that_only_config_py_sets_are_to_be_changed_there(plain: Stand) -> None:
    plain.machine(cpus=2)
    (finding,) = of(plain.pre(), "WorkersFit")  # 4 x 1 rank x 24/12 loaders
    line = line_of(plain.repository / "amt/src/config/config.py", "num_workers")
    assert finding.fix == (f"write 0 at {line}",)


def test_workers_that_fit_are_not_mentioned(stand: Stand) -> None:
    stand.machine(cpus=8)
    assert of(stand.pre("data.num_workers=4"), "WorkersFit") == []
    assert of(stand.pre("data.num_workers=0"), "WorkersFit") == []


# DiskSpace


def with_room_for(stand: Stand, checkpoints: float) -> int:
    """Let the disk have room for so many more checkpoints of the experiment's size; returns that size."""
    size = stand.last(step=10).stat().st_size
    stand.monkeypatch.setattr("amt_hydra.preflight.free_bytes", lambda _: int(checkpoints * size))
    return size


def test_checkpoints_that_do_not_fit_on_the_disk(stand: Stand) -> None:
    with_room_for(stand, 4)
    words = ("init=resume", "max_steps=20", "checkpoint.save_top_k=7")  # 7 + last + one being written - 1 there = 8
    (finding,) = of(stand.pre(*words), "DiskSpace")
    assert "7 checkpoints" in finding.message
    assert finding.fix[0].startswith("make room for")
    pre = stand.follow(finding.fix[1])
    assert pre.subject.settings.checkpoint.save_top_k == 3
    assert of(pre, "DiskSpace") == []


def test_where_not_even_one_fits_room_is_the_only_way(stand: Stand) -> None:
    with_room_for(stand, 0.5)
    (finding,) = of(stand.pre("init=resume", "max_steps=20"), "DiskSpace")
    assert len(finding.fix) == 1


def test_checkpoints_that_fit_or_whose_size_nobody_knows_are_not_mentioned(stand: Stand) -> None:
    with_room_for(stand, 8)
    assert of(stand.pre("init=resume", "max_steps=20"), "DiskSpace") == []
    assert of(stand.pre("init=resume", "max_steps=20", "checkpoint.save_top_k=-1"), "DiskSpace") == []


@pytest.mark.parametrize(("free", "said"), [(300 * 1024, "0.3 MiB"), (50 * 2**20 - 1, "50.0 MiB"), (50 * 2**20, "")])
def test_too_little_room_is_said_where_no_checkpoint_tells_its_size(stand: Stand, free: int, said: str) -> None:
    stand.monkeypatch.setattr("amt_hydra.preflight.free_bytes", lambda _: free)
    found = of(stand.pre(), "DiskSpace")
    assert [(f.severity, said in f.message) for f in found] == ([("warning", True)] if said else [])


def test_a_folder_that_is_moved_aside_keeps_its_place_on_the_disk(stand: Stand) -> None:
    with_room_for(stand, 8.5)
    assert of(stand.pre("init=resume", "max_steps=20"), "DiskSpace") == []
    assert len(of(stand.pre("init.overwrite=true"), "DiskSpace")) == 1


# FoldersWritable


def test_a_file_in_the_place_of_the_outputs_folder_is_in_the_way(stand: Stand) -> None:
    (stand.folder / "outputs").write_text("")
    (finding,) = of(stand.pre(), "FoldersWritable")
    assert f"{stand.folder / 'outputs'} is in the way" in finding.message
    assert of(stand.pre("paths.outputs=elsewhere"), "FoldersWritable") == []


def test_a_file_or_dead_link_above_the_checkpoints_is_in_the_way(stand: Stand) -> None:
    (stand.runs).symlink_to("/nowhere")
    (finding,) = of(stand.pre(f"repo.runs={stand.runs}"), "FoldersWritable")
    assert finding.message.startswith("checkpoints:")
    assert "paths.outputs" not in " ".join(finding.fix)  # would not help: they do not lie there


def test_a_folder_that_cannot_be_written_to_is_named(stand: Stand) -> None:
    stand.folder.joinpath("outputs").mkdir(mode=0o500)
    real = os.access

    def access(path: Path, mode: int) -> bool:  # root may write anywhere
        return real(path, mode) and bool(path.stat().st_mode & 0o200)

    stand.monkeypatch.setattr(os, "access", access)
    (finding,) = of(stand.pre(), "FoldersWritable")
    assert f"{stand.folder / 'outputs'} cannot be written to" in finding.message


def test_folders_that_are_yet_to_be_made_are_fine(stand: Stand) -> None:
    assert of(stand.pre("paths.outputs=a/b/c"), "FoldersWritable") == []


# InterpreterRuns


@pytest.mark.parametrize("kind", ["missing", "a link to nothing", "a folder", "not executable"])
def test_an_interpreter_that_cannot_be_executed(stand: Stand, kind: str) -> None:
    python = stand.repository / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    if kind == "a link to nothing":  # a venv whose Python was upgraded away
        python.symlink_to("/nowhere/python3.11")
    elif kind == "a folder":
        python.mkdir()
    elif kind == "not executable":
        python.write_text("")
    words = ("repo.python=gone",) if kind == "missing" else ()
    (finding,) = of(stand.pre(*words), "InterpreterRuns")
    assert "cannot be executed" in finding.message


def test_the_interpreter_that_runs_us_can_be_executed(stand: Stand) -> None:
    assert of(stand.pre(), "InterpreterRuns") == []


# WandbReady


def test_c32_without_a_key_metrics_go_to_a_file_and_that_is_said(stand: Stand) -> None:
    stand.machine(wandb=NO_KEY)
    (finding,) = of(stand.pre(), "WandbReady")
    assert finding.severity == "info"
    assert "metrics.csv" in finding.message


def test_c32_wandb_that_was_asked_for_without_a_key_is_a_warning(stand: Stand) -> None:
    stand.machine(wandb=NO_KEY)
    (finding,) = of(stand.pre("logger=wandb"), "WandbReady")
    assert finding.severity == "warning"
    assert finding.fix[0] == "wandb login"
    assert of(stand.follow(finding.fix[1]), "WandbReady")[0].severity == "info"


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_c32_a_repository_without_a_csv_logger_may_end_at_its_start(public: Stand, mode: str) -> None:
    """There wandb's own settings file is ignored, and the flag is not."""
    public.machine(wandb=replace(NO_KEY, mode=mode))
    pre = public.pre("repo.bridge=false")
    (finding,) = of(pre, "WandbReady")
    assert finding.severity == "warning"
    assert pre.subject.decision("logger.kind").value is None
    pre = public.follow(finding.fix[1])
    assert of(pre, "WandbReady") == []
    assert option(pre.subject.plan.argv, "--wandb-mode") == "offline"


@pytest.mark.parametrize("wandb", [MACHINE.wandb, Wandb(False, "none", "offline"), Wandb(False, "none", "disabled")])
def test_c32_with_a_key_or_without_a_need_for_one_nothing_is_said(stand: Stand, wandb: Wandb) -> None:
    stand.machine(wandb=wandb)
    assert of(stand.pre(WANDB_MODE=wandb.mode), "WandbReady") == []


def test_c32_a_key_that_wandb_would_refuse_is_named(stand: Stand) -> None:
    stand.machine(wandb=Wandb(True, "WANDB_API_KEY", "online", "WANDB_API_KEY does not have the form of a key."))
    (finding,) = of(stand.pre(), "WandbReady")
    assert "does not have the form of a key" in finding.message
