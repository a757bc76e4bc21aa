"""What `auto` becomes, and when a default gives way to the machine."""

import pytest
from stand import MACHINE, Stand, of, option

from amt_hydra.machine import Gpu, Wandb
from amt_hydra.resolve import auto_workers

pytest_plugins = ["desks"]

A100 = Gpu(0, "NVIDIA A100", (8, 0), 80 << 30)
NO_KEY = Wandb(credentials=False, source="none: no WANDB_API_KEY", mode="online")


# The documented rule for CPUs without bf16 arithmetic; the machines are made up.


def test_bf16_that_nobody_set_becomes_32_on_a_cpu_that_emulates_it(stand: Stand) -> None:
    stand.machine(cpu_bf16=False)
    pre = stand.pre()
    decision = pre.subject.decision("precision.name")
    assert decision.value == "32"
    assert decision.origin.where == "documented: bf16-mixed; this CPU emulates it"
    assert option(pre.subject.plan.argv, "--precision") == "32"


def test_bf16_that_the_user_set_is_kept_with_a_warning(stand: Stand) -> None:
    stand.machine(cpu_bf16=False)
    pre = stand.pre("precision=bf16")
    assert pre.subject.settings.precision.name == "bf16-mixed"
    (finding,) = of(pre, "PrecisionFits")
    assert finding.severity == "warning"
    assert "emulated" in finding.message
    assert of(stand.follow(finding.fix[0]), "PrecisionFits") == []


def test_fp16_on_a_cpu_is_kept_with_a_warning(stand: Stand) -> None:
    pre = stand.pre("precision=fp16")
    assert pre.subject.settings.precision.name == "16-mixed"
    assert [f.severity for f in of(pre, "PrecisionFits")] == ["warning"]


@pytest.mark.parametrize(
    "facts", [{"cpu_bf16": True}, {"cpu_bf16": False, "gpus": (A100,)}, {"cpu_bf16": False, "gpus": None}]
)
def test_bf16_stays_where_it_is_computed_or_where_that_is_not_known(stand: Stand, facts: dict[str, object]) -> None:
    stand.machine(**facts)
    pre = stand.pre()
    assert pre.subject.settings.precision.name == "bf16-mixed"
    assert pre.subject.decision("precision.name").origin.who == "documented"


def test_gpus_that_the_run_hides_do_not_count(stand: Stand) -> None:
    stand.machine(cpu_bf16=False, gpus=(A100,))
    pre = stand.pre("ddp=cpu1")
    assert pre.subject.settings.precision.name == "32"
    assert pre.subject.plan.env["CUDA_VISIBLE_DEVICES"] == ""


# Devices.


@pytest.mark.parametrize(("gpus", "devices"), [((), 1), ((A100,), 1), ((A100, A100, A100), 3)])
def test_devices_are_all_visible_gpus_else_one_cpu_rank(stand: Stand, gpus: tuple[Gpu, ...], devices: int) -> None:
    stand.machine(gpus=gpus)
    pre = stand.pre()
    assert pre.subject.settings.ddp.devices == devices
    assert pre.subject.decision("ddp.devices").origin.where == f"{len(gpus)} GPUs visible"


def test_where_gpus_cannot_be_counted_the_reason_is_shown(stand: Stand) -> None:
    stand.machine(gpus=None, gpus_source="the NVIDIA driver does not answer: timeout")
    assert "does not answer" in stand.pre().subject.decision("ddp.devices").origin.where


def test_devices_that_were_given_stay(stand: Stand) -> None:
    stand.machine(gpus=(A100, A100))
    assert stand.pre("ddp.devices=1").subject.settings.ddp.devices == 1


# Workers: max(0, floor((CPUs of the job - ranks) / (ranks x loaders per rank))).


@pytest.mark.parametrize(
    ("cpus", "ranks", "loaders", "workers"),
    [(8, 1, 1, 7), (8, 2, 1, 3), (8, 2, 2, 1), (9, 2, 2, 1), (10, 2, 2, 2), (2, 2, 1, 0), (1, 4, 2, 0), (64, 8, 2, 3)],
)
def test_auto_workers_are_what_the_cpus_leave_room_for(cpus: int, ranks: int, loaders: int, workers: int) -> None:
    assert auto_workers(cpus, ranks, loaders)[0] == workers
    assert workers == 0 or workers * ranks * loaders + ranks <= cpus


def test_loaders_are_counted_as_this_family_has_them_one_per_sub_batch(stand: Stand) -> None:
    stand.machine(cpus=16, gpus=(A100, A100))
    pre = stand.pre("data.num_workers=auto", "batch.sub=4", "batch.local=12")  # (16 - 2) / (2 x 3) = 2.33
    assert pre.subject.settings.data.num_workers == 2
    assert option(pre.subject.plan.argv, "--num-workers") == "2"
    assert "(16 CPUs - 2 ranks) / (2 ranks x 3 loaders)" in pre.subject.decision("data.num_workers").origin.where


def test_the_repositorys_own_batch_counts_where_none_is_given(stand: Stand) -> None:
    stand.machine(cpus=17)
    assert stand.pre("data.num_workers=auto").subject.settings.data.num_workers == 8  # (17 - 1) / (1 x 24/12)


def test_auto_workers_that_do_not_reach_are_no_less_asked_for_than_a_number(plain: Stand) -> None:
    (finding,) = of(plain.pre("data.num_workers=auto"), "SettingReaches")
    assert finding.message.startswith("data.num_workers=")
    assert "config.py" in finding.message


# Logger.


@pytest.mark.parametrize(
    ("wandb", "kind"),
    [(MACHINE.wandb, "wandb"), (NO_KEY, "csv"), (Wandb(credentials=False, source="none", mode="offline"), "wandb")],
)
def test_c32_the_logger_is_wandb_where_the_job_has_credentials_or_needs_none(
    stand: Stand, wandb: Wandb, kind: str
) -> None:
    stand.machine(wandb=wandb)
    pre = stand.pre()
    assert pre.subject.settings.logger.kind == kind
    assert option(pre.subject.plan.argv, "--logger") == kind


def test_a_logger_that_was_given_stays(stand: Stand) -> None:
    assert stand.pre("logger=csv").subject.settings.logger.kind == "csv"


def test_credentials_are_looked_for_where_train_py_will_run(stand: Stand) -> None:
    """W&B reads a settings file of the folder it is started in, which is not the one that the user stands in."""
    stand.monkeypatch.undo()
    stand.monkeypatch.chdir(stand.folder)
    stand.monkeypatch.setenv("HOME", str(stand.folder / "home"))
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_IDENTITY_TOKEN_FILE"):
        stand.monkeypatch.delenv(name, raising=False)
    settings = stand.repository / "src" / "wandb" / "settings"
    settings.parent.mkdir()
    settings.write_text("[default]\nmode = offline\n")
    assert stand.pre().subject.machine.wandb.mode == "offline"
