"""The command line as a process: exit codes, streams, and what it does in odd places."""

import ast
import errno
import json
import os
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amt_hydra import __version__, cli
from amt_hydra.cli import main
from amt_hydra.errors import BUG, INTERRUPTED, REFUSED, USAGE
from amt_hydra.outcome import Outcome
from amt_hydra.verbs import VERBS

Run = Callable[..., subprocess.CompletedProcess[Any]]
Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[1]
BROKEN_PIPE = 141


# Exit codes


def test_0_where_all_is_well(here: Path, capsys: Capture) -> None:
    assert main(["plan", "repo=reference", "data.num_workers=0"]) == 0
    assert capsys.readouterr().out.startswith("repository  ")


@pytest.mark.parametrize(
    "words", [["nope=1"], ["plam"], ["--jsn"], ["checkpoint"], ["inspect", "a", "b"], ["max_steps=x"]]
)
def test_64_for_wrong_usage(here: Path, capsys: Capture, words: list[str]) -> None:
    assert main(words) == USAGE
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error ")


def test_78_for_a_run_that_a_check_refuses(here: Path, capsys: Capture) -> None:
    assert main(["plan", "repo=reference", "init=resume"]) == REFUSED
    assert main(["repo=reference", "init=resume"]) == REFUSED
    assert "not started" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["plan"], ["inspect"], ["seed=1"]])
def test_78_where_amt_repo_points_at_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, words: list[str]
) -> None:
    monkeypatch.setenv("AMT_REPO", str(here / "gone"))
    assert main(words) == REFUSED
    assert f"AMT_REPO={here / 'gone'}" in capsys.readouterr().err


def test_inspect_speaks_of_the_path_it_was_given(here: Path, capsys: Capture) -> None:
    assert main(["inspect", str(ROOT / "amt_hydra" / "reference"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["why"] == "PATH"
    for path in ("gone", "."):
        assert main(["inspect", path]) == REFUSED
        shown = capsys.readouterr().err.splitlines()[0]
        assert str(here) in shown
        assert "repo.path" not in shown


def broken(line: object) -> int:
    raise ZeroDivisionError(f"simulated, {os.environ.get('WANDB_API_KEY')}")


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_70_and_a_log_without_secrets_for_a_simulated_bug(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, option: list[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(here))
    monkeypatch.setenv("WANDB_API_KEY", "known-secret")
    monkeypatch.setattr(cli, "_plan_or_train", broken)
    assert main(["plan", "exp_id=楽譜\udcff", "wandb.api_key=sk-secret", *option]) == BUG
    shown = capsys.readouterr()
    (log,) = here.glob("amt_hydra-bug-*.log")
    text = json.loads(shown.out)["error"]["message"] if option else shown.err
    assert "bug in amt_hydra: ZeroDivisionError: simulated" in text
    assert str(log) in shown.out + shown.err
    assert "Traceback" not in shown.out + shown.err
    kept = log.read_text(encoding="utf-8")
    assert "Traceback" in kept
    assert "楽譜" in kept
    assert "sk-secret" not in kept
    assert "known-secret" not in kept


def test_70_shows_the_traceback_where_no_log_can_be_written_simulated(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(here / "gone"))
    monkeypatch.setattr(cli, "_plan_or_train", broken)
    assert main(["plan"]) == BUG
    assert "Traceback" in capsys.readouterr().err


def test_130_for_ctrl_c_simulated(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def interrupted(line: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_plan_or_train", interrupted)
    assert main(["plan"]) == INTERRUPTED
    assert capsys.readouterr().err == "interrupted\n"


# What is shown


def test_version_and_help(here: Path, capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"amt_hydra {__version__}\n"
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [verb for verb in VERBS if f"  {verb} " not in shown] == []


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_for_one_verb(here: Path, capsys: Capture, verb: str, option: str) -> None:
    assert main([verb, option]) == 0
    assert capsys.readouterr().out.startswith(f"usage: python -m amt_hydra {verb} ")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["plan", "repo=reference"], 0),
        (["plan", "repo=reference", "init=resume"], REFUSED),
        (["plan", "nope=1"], USAGE),
        (["train", "repo=reference", "init=resume"], REFUSED),
        (["inspect"], 0),
        (["inspect", "gone"], REFUSED),
        (["checkpoint"], USAGE),
        (["checkpoint", "gone.ckpt"], REFUSED),
        (["conventions"], 0),
        (["conventions", "x"], USAGE),
        (["plan", "--cfg", "job"], USAGE),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else str(x),
)
def test_json_is_one_document(here: Path, capsys: Capture, words: list[str], code: int) -> None:
    assert main([*words, "--json"]) == code
    shown = capsys.readouterr()
    document = json.loads(shown.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert document
    assert shown.err == ""
    if "error" in document:
        assert document["error"]["code"] == code


def test_the_first_line_says_which_repository_and_why(here: Path, capsys: Capture) -> None:
    main(["plan"])
    assert capsys.readouterr().out.splitlines()[0].endswith("(bundled: nothing else was named or found)")


def test_a_repository_that_was_merely_found_is_not_trained(here: Path, capsys: Capture) -> None:
    (here / "code" / "amt_ai" / "src").mkdir(parents=True)
    source = ROOT / "amt_hydra" / "reference" / "src"
    for name in ("train.py", "config.py", "data_presets.py"):
        (here / "code" / "amt_ai" / "src" / name).write_text((source / name).read_text(encoding="utf-8"))
    before = sorted(here.rglob("*"))
    assert main([]) == USAGE
    shown = capsys.readouterr()
    assert "nothing was started" in shown.err
    assert "(found at ~/code/amt_ai)" in shown.out.splitlines()[0]
    assert main(["--json"]) == USAGE
    assert json.loads(capsys.readouterr().out)["repository"]["why"] == "found at ~/code/amt_ai"
    assert sorted(here.rglob("*")) == before


def test_a_command_in_an_error_keeps_the_folder_of_configs(here: Path, capsys: Capture) -> None:
    (here / "my conf").mkdir()
    main(["plan", "--json", "--config-dir", "my conf", "repo=reference", "init=resume"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    commands = [way for finding in findings for way in finding["fix"] if "amt_hydra" in way]
    assert commands
    assert all("--config-dir 'my conf'" in command for command in commands)


# Paths


@pytest.mark.parametrize("verb", ["checkpoint", "inspect"])
def test_verbs_that_take_paths_take_any(here: Path, capsys: Capture, verb: str) -> None:
    for name in ("epoch=3-step=1.ckpt", "init.ckpt=x", "楽譜 (1), {2}", "~nobody-is-called-so/x", "$x;#'"):
        assert main([verb, "--json", name]) == REFUSED
        assert json.dumps(name)[1:-1] in capsys.readouterr().out


def test_c04_paths_are_meant_from_where_the_user_stands(here: Path, capsys: Capture) -> None:
    main(["plan", "--json", "repo=reference", "paths.outputs=my runs", "data.home=my data"])
    document = json.loads(capsys.readouterr().out)
    assert document["plan"]["experiment"] == str(here / "my runs" / "melody" / "base")
    assert document["settings"]["data.home"]["value"] == str(here / "my data")
    assert document["plan"]["cwd"] != str(here)


def test_outputs_in_a_weird_folder(
    here: Path, weird_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(weird_path)
    assert main(["plan", "--json", "repo=reference", "data.num_workers=0"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["records"].startswith(f"{weird_path}{os.sep}outputs")


# Processes


def test_a_terminal_that_knows_ascii_only(run_cli: Run, tmp_path: Path) -> None:
    folder = tmp_path / "楽譜"
    folder.mkdir()
    done = run_cli(
        "plan", "repo=reference", "data.num_workers=0", cwd=folder, env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u697d\\u8b5c" in done.stdout


@pytest.mark.parametrize("words", [("conventions",), ("plan", "nope=1"), ("--cfg", "job")], ids=" ".join)
def test_a_reader_that_goes_away(tmp_path: Path, run_cli: Run, words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        errors = tmp_path / "errors"
        with errors.open("w") as stderr:
            both = {"stdout": pipe, "stderr": pipe if "nope=1" in words else stderr}
            done = run_cli(*words, capture_output=False, **both)
    assert done.returncode == BROKEN_PIPE
    assert errors.read_text() == ""


@pytest.mark.parametrize("words", ["plan repo=reference", "plan --json", "--help", "--cfg job", "inspect", "--version"])
def test_a_full_disk_behind_stdout_is_one_message(run_cli: Run, words: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = run_cli(*words.split(), capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (REFUSED, "error the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("words", ["plan repo=reference", "plan nope=1", "--help", "conventions"])
def test_a_terminal_that_was_closed_is_no_bug_of_ours(run_cli: Run, tmp_path: Path, words: str) -> None:
    master, terminal = os.openpty()
    os.close(master)  # from now on, writing to the terminal gives EIO
    with os.fdopen(terminal, "w") as closed:
        env = {"TMPDIR": str(tmp_path)}
        done = run_cli(*words.split(), env=env, capture_output=False, stdin=closed, stdout=closed, stderr=closed)
    assert done.returncode == REFUSED
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EIO, errno.EPIPE, errno.ENOSPC])
@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_training_that_ended_keeps_its_code_where_nobody_can_be_told_simulated(
    here: Path, monkeypatch: pytest.MonkeyPatch, number: int, option: list[str]
) -> None:
    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    ended = Outcome(143, "ended by signal 15", 175, None, None, 1.0, resumable=True)
    monkeypatch.setattr("amt_hydra.train.launch", lambda *_: (ended, here))
    monkeypatch.setattr("amt_hydra.report.console.show_outcome", fails)
    monkeypatch.setattr(cli, "_without_streams", lambda code: code)
    assert main(["repo=reference", "data.num_workers=0", *option]) == 143


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["+exp_id=q", "seed=1"], "python -m amt_hydra plan seed=1 exp_id=q"),
        (["~init", "seed=1"], "python -m amt_hydra plan seed=1"),
        (["~seed"], "python -m amt_hydra plan seed=null"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)
def test_a_fault_in_one_word_is_shown_with_the_command_that_has_none(
    here: Path, capsys: Capture, words: list[str], command: str
) -> None:
    assert main(["plan", *words]) == USAGE
    assert capsys.readouterr().err.splitlines()[-1] == f"  -> {command}"
    assert main([*shlex.split(command)[3:], "data.num_workers=0"]) == 0


def test_no_home_and_closed_streams(run_cli: Run, tmp_path: Path) -> None:
    assert run_cli("plan", "repo=reference", "data.num_workers=0", env={"HOME": None}).returncode == 0
    command = f"{sys.executable} -m amt_hydra --version >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False).returncode == 0


def test_a_folder_that_is_gone(here: Path, capsys: Capture) -> None:
    gone = here / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        for words in (["plan"], ["checkpoint", "x"], ["inspect", "x"], ["--cfg", "job"]):
            assert main(words) == USAGE
            assert "the folder you stand in is gone" in capsys.readouterr().err
        assert main(["--version"]) == 0
        assert main(["checkpoint", str(here / "x.ckpt")]) == REFUSED
        assert "missing" in capsys.readouterr().out
    finally:
        os.chdir(here)


def test_planning_imports_nothing_heavy(run_cli: Run, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, sys\natexit.register(lambda: print(sorted(sys.modules), file=sys.stderr))\n"
    )
    done = run_cli("plan", "repo=reference", "data.num_workers=0", env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 0
    loaded = set(ast.literal_eval(done.stderr))
    assert "amt_hydra.preflight" in loaded
    assert loaded & {"torch", "lightning", "pytorch_lightning", "wandb", "submitit", "numpy", "scipy"} == set()


# The package


def test_c20_the_pythons_that_hydra_runs_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    from packaging.specifiers import SpecifierSet

    pythons = SpecifierSet(project["requires-python"])
    assert "3.11.9" in pythons
    assert "3.14.0" not in pythons
