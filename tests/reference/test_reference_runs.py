"""What train.py does with its identity, its checkpoints and its logs: real runs, a few steps each."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from trainer import SRC, clean_env, train_process, train_runs

TINY = ["-pr", "32", "-nw", "0", "-bsz", "1", "1", "--val-clips", "1", "--logger", "csv", "--warmup-steps", "2"]


def load(path: Path) -> dict:
    return torch.load(path, weights_only=True, map_location="cpu")


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def assert_same(first: Path, second: Path) -> None:
    one, two = load(first), load(second)
    assert one["global_step"] == two["global_step"]
    assert all(torch.equal(one["state_dict"][k], two["state_dict"][k]) for k in one["state_dict"])
    for a, b in zip(one["optimizer_states"], two["optimizer_states"], strict=True):
        assert [g["lr"] for g in a["param_groups"]] == [g["lr"] for g in b["param_groups"]]
        assert all(torch.equal(a["state"][i][k], b["state"][i][k]) for i in a["state"] for k in a["state"][i])
    assert one["lr_schedulers"] == two["lr_schedulers"]


def test_identity_follows_the_three_facts(tmp_path):
    args = [*TINY, "--save-dir", str(tmp_path), "-vit", "1"]
    last = tmp_path / "melody" / "a" / "checkpoints" / "last.ckpt"
    forced = {"AMT_FORCE_SCRATCH": "1"}
    scratch, resume, both, warm, again, off = train_runs(
        ["a", "-it", "2", *args],
        ["a", "-it", "3", *args],
        ["a", "-it", "4", "--init-ckpt", str(last), *args],
        ["b", "-it", "1", "--init-ckpt", str(last), *args],
        (["a", "-it", "1", "--init-ckpt", str(last), *args], forced),
        (["a", "-it", "2", *args], {"AMT_FORCE_SCRATCH": "0"}),
    )
    assert [r.code for r in (scratch, resume, both, warm, again, off)] == [0] * 6
    assert scratch.identity.startswith("identity: scratch")
    assert resume.identity.startswith("identity: resume")
    assert "at step 2" in resume.identity
    assert both.identity.startswith("identity: resume")
    assert f"not used: --init-ckpt {last}" in both.identity
    assert warm.identity.startswith("identity: warm-start")
    assert "39 tensors matched, 0 missing, 0 unused" in warm.identity
    assert load(tmp_path / "melody" / "b" / "checkpoints" / "last.ckpt")["global_step"] == 1
    assert again.identity.startswith("identity: scratch")
    assert "AMT_FORCE_SCRATCH is on" in again.identity
    (aside,) = last.parent.parent.glob("checkpoints.*")
    assert load(aside / "last.ckpt")["global_step"] == 4  # moved, not lost
    assert len(list(last.parent.parent.glob("metrics.csv.*"))) == 1
    assert off.identity.startswith("identity: resume")
    assert load(last)["global_step"] == 2


def test_a_wrong_start_ends_in_one_line(tmp_path):
    args = [*TINY, "--save-dir", str(tmp_path)]
    foreign, cut, empty = tmp_path / "foreign.ckpt", tmp_path / "melody" / "cut" / "checkpoints", tmp_path / "e.ckpt"
    torch.save({"state_dict": {"other.weight": torch.zeros(2)}}, foreign)
    torch.save({"state_dict": {"network.onset.bias": torch.zeros(2)}}, empty)
    cut.mkdir(parents=True)
    (cut / "last.ckpt").write_bytes(foreign.read_bytes()[:100])
    runs = train_runs(
        ["x", "-it", "1", "--init-ckpt", str(tmp_path / "nowhere.ckpt"), *args],
        ["x", "-it", "1", "--init-ckpt", str(foreign), *args],
        ["x", "-it", "1", "--init-ckpt", str(empty), *args],
        ["cut", "-it", "1", *args],
        ["x", "-it", "1", *args, "-bsz", "2", "3"],
        ["x", "-it", "1", "-o", "sgd", *args],
        ["x", "-it", "1", *args, "-pr", "7"],
        ["x", "-it", "1", *args, "-g", "many"],
        ["x", "-it", "1", *args, "-sb", "true"],
        ["x/y", "-it", "1", *args],
        ["a", "-it", "1", *args],
        ["a", "-it", "1", *args],
    )
    assert [r.code for r in runs] == [2] * 10 + [0, 65]
    said = [
        "nowhere.ckpt: no checkpoint that can be read (FileNotFoundError)",
        "none of its 1 tensors",
        "network.onset.bias is (2,) there",
        "no checkpoint that can be read",
    ]
    said += ["LOCAL a multiple of SUB", "adamwscale", "recision", "`devices`", "between GPUs only", "plain folder name"]
    said += ["", "nothing to train"]
    for run, words in zip(runs, said, strict=True):
        assert words in run.err
        assert "Traceback" not in run.err
    assert not (tmp_path / "melody" / "x").exists()


def test_a_resume_equals_an_uninterrupted_run(tmp_path):
    args = [*TINY, "--save-dir", str(tmp_path), "-vit", "4", "-s", "constant"]
    runs = train_runs(
        ["whole", "-it", "20", *args],
        ["between", "-it", "10", *args],  # stopped between two validations
        ["between", "-it", "20", *args],
        ["at", "-it", "8", *args],  # stopped at a validation
        ["at", "-it", "20", *args],
    )
    assert [r.code for r in runs] == [0] * 5
    folders = [tmp_path / "melody" / name for name in ("whole", "between", "at")]
    for folder in folders[1:]:
        assert_same(folders[0] / "checkpoints" / "last.ckpt", folder / "checkpoints" / "last.ckpt")
        assert rows(folder) == rows(folders[0])  # every step once, in the joined file too
        assert not list(folder.glob("checkpoints/last-v*"))
    assert [float(row["step"]) for row in rows(folders[0])] == [4, 8, 10, 12, 16, 20, 20]


def test_c23_last_ckpt_is_current_and_real_on_a_plateau(tmp_path):
    # After so few steps the F1 is 0 at every validation: with top-1 nothing but the first is saved.
    args = [*TINY, "--save-dir", str(tmp_path), "--save-top-k", "1", "-vit", "2"]
    first, second = train_runs(["p", "-it", "5", *args], ["p", "-it", "8", *args])
    folder = tmp_path / "melody" / "p" / "checkpoints"
    assert (first.code, second.code) == (0, 0)
    assert "at step 5" in second.identity  # the end of the first run, not its last validation
    assert sorted(p.name for p in folder.iterdir()) == ["epoch=0-step=2.ckpt", "last.ckpt"]
    assert load(folder / "last.ckpt")["global_step"] == 8
    assert not (folder / "last.ckpt").is_symlink()


@pytest.mark.parametrize(("number", "send"), [(signal.SIGTERM, os.kill), (signal.SIGINT, os.killpg)])
def test_a_signal_stops_with_everything_saved(tmp_path, number, send):
    """Ctrl-C in a terminal goes to the loader workers too."""
    args = [*TINY, "--save-dir", str(tmp_path), "-vit", "30", "-it", "100000", "-nw", "1"]
    metrics, last = tmp_path / "melody" / "s" / "metrics.csv", tmp_path / "melody" / "s" / "checkpoints" / "last.ckpt"
    process = subprocess.Popen(
        [sys.executable, "train.py", "s", *args],
        cwd=SRC,
        env=clean_env(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    deadline = time.monotonic() + 120
    while not metrics.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    send(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    step = load(last)["global_step"]
    assert err.decode().splitlines()[-1] == f"train.py: error: stopped by {number.name} after step {step}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_imports_ends_in_one_line(tmp_path, number):
    slow = tmp_path / "lightning"  # in the place of the real one: its import takes as long as the test needs
    slow.mkdir()
    (slow / "__init__.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, "train.py", "s", *TINY, "--save-dir", str(tmp_path / "logs")]
    env = clean_env(PYTHONPATH=str(tmp_path))
    process = subprocess.Popen(command, cwd=SRC, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    os.kill(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert err == f"train.py: error: stopped by {number.name} before training\n"
    assert not (tmp_path / "logs").exists()


def test_a_folder_that_holds_our_records_alarms_nobody(tmp_path):
    """Lightning says that the logs in it will be deleted, which they are not."""
    records = tmp_path / "melody" / "n" / "launches" / "record.json"
    records.parent.mkdir(parents=True)
    records.touch()
    run = train_process("n", *TINY, "--save-dir", str(tmp_path), "-it", "2", "-vit", "1")
    assert run.code == 0
    assert not re.search("not empty|will be deleted|Warning", run.out + run.err)
    assert records.exists()


def test_a_cosine_run_stopped_by_a_signal_and_resumed_equals_one_that_never_stopped(tmp_path):
    args = [*TINY, "--save-dir", str(tmp_path), "-vit", "4", "-it", "12", "-s", "cosine"]
    whole, stopped, resumed = train_runs(["w", *args], (["s", *args], {"SIGTERM_AT_STEP": "7"}), ["s", *args])
    assert (whole.code, stopped.code, resumed.code) == (0, 128 + signal.SIGTERM, 0)
    assert "at step 7" in resumed.identity
    folders = [tmp_path / "melody" / name for name in ("w", "s")]
    assert_same(folders[0] / "checkpoints" / "last.ckpt", folders[1] / "checkpoints" / "last.ckpt")
    assert rows(folders[0]) == rows(folders[1])


def test_a_non_finite_gradient_is_named(tmp_path):
    args = [*TINY, "--save-dir", str(tmp_path), "-it", "20", "-lr", "1e38"]
    (run,) = train_runs((["n", *args], {"AMT_DEBUG_GRAD_FINITE": "1"}))
    assert run.code == 1
    message = run.err.strip().splitlines()[-1]
    assert re.search(r"non-finite (value|gradient) of parameter network\.\S+ at step \d+$", message)
    assert "Traceback" not in run.err


def test_anomaly_detection_names_the_function_that_made_a_nan(tmp_path):
    run = train_process("n", *TINY, "--save-dir", str(tmp_path), "-it", "20", "-lr", "1e38", AMT_DETECT_ANOMALY="1")
    assert run.code == 1
    assert re.search(r"Function '\w+Backward0' returned nan values", run.err)


def test_a_start_says_nothing_that_nobody_can_act_on(tmp_path):
    args = ["q", *TINY, "--save-dir", str(tmp_path), "-vit", "1"]
    first, second = train_process(*args, "-it", "1"), train_process(*args, "-it", "2")
    assert (first.code, second.code) == (0, 0)
    for run in (first, second):
        lines = [line for line in re.split(r"[\r\n]+", run.out + run.err) if line.strip()]
        said = [line for line in lines if not re.search(r"it/s\b|\x1b\[A", line)]  # but for the progress bar
        assert [line.split()[0] for line in said] == ["identity:", "finished:", "best"]


def test_without_credentials_it_says_so_and_logs_to_csv(tmp_path):
    args = [*TINY, "--save-dir", str(tmp_path), "-it", "2", "-vit", "1", "--logger", "auto"]
    (run,) = train_runs(["c", *args])
    assert run.code == 0
    assert "!!! no W&B credentials" in run.err
    assert [float(row["step"]) for row in rows(tmp_path / "melody" / "c")] == [1, 2]


def test_other_optimizers_accumulation_and_workers_train(tmp_path):
    args = [*TINY, "--save-dir", str(tmp_path), "-it", "2", "-vit", "1"]
    runs = train_runs(
        ["o1", *args, "-o", "AdamWScale", "--accumulate", "2"],
        ["o2", *args, "-o", "Adafactor", "-s", "Constant", "-pr", "bf16-mixed"],
        ["o3", *args, "-nw", "1"],
    )
    assert [r.code for r in runs] == [0, 0, 0], [r.err[-500:] for r in runs]
    for name in ("o1", "o2", "o3"):
        assert load(tmp_path / "melody" / name / "checkpoints" / "last.ckpt")["global_step"] == 2
