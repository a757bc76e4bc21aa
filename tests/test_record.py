"""The record of a launch: whole or not there, never shared, and free of secrets."""

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from stand import tree

from amt_hydra import record
from amt_hydra.errors import AmtError, unwritable

ROOT = Path(__file__).parents[1]
KEY = "0123456789abcdef0123456789abcdef01234567"


def read(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / record.FILE).read_text(encoding="utf-8")))


def test_a_record_holds_its_content_and_further_files(tmp_path: Path) -> None:
    folder = record.create(tmp_path / "a" / "launches", {"path": Path("/x y"), "n": 1}, {"config.yaml": "a: é\n"}, [])
    assert folder.parent == tmp_path / "a" / "launches"
    assert read(folder) == {"path": "/x y", "n": 1}
    assert (folder / "config.yaml").read_text(encoding="utf-8") == "a: é\n"
    assert sorted(p.name for p in folder.iterdir()) == ["config.yaml", record.FILE]


def test_names_sort_by_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda *_: "20240102T030405Z")
    first, second = (record.create(tmp_path, {}, {}, []) for _ in range(2))
    assert [first.name, second.name] == ["20240102T030405Z", "20240102T030405Z-2"]


def test_threads_that_record_in_one_second_never_share_a_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        folders = list(pool.map(lambda n: record.create(tmp_path, {"n": n}, {}, []), range(48)))
    assert len(set(folders)) == 48
    assert sorted(read(folder)["n"] for folder in folders) == list(range(48))
    assert not list(tmp_path.glob(".draft-*"))


def _record_many(records: Path, first: int) -> list[tuple[int, str]]:
    return [(n, str(record.create(records, {"n": n}, {}, []))) for n in range(first, first + 20)]


def test_processes_that_record_in_one_second_never_share_a_folder(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        made = [one for part in pool.starmap(_record_many, [(tmp_path, 0), (tmp_path, 20)]) for one in part]
    assert len({folder for _, folder in made}) == 40
    assert all(read(Path(folder))["n"] == n for n, folder in made)


def in_a_process(code: str, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


LIMITED = """
import resource, signal, sys
from pathlib import Path
from amt_hydra import record
from amt_hydra.errors import AmtError, unwritable
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then a write beyond the limit fails, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
folder = Path(sys.argv[1])
"""


def test_a_record_that_finds_no_room_leaves_nothing_not_even_the_folders_above_it(tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    before = tree(tmp_path)
    code = (
        LIMITED
        + """
try:
    record.create(folder / "melody" / "base" / "launches", {"a": 1}, {"repository.diff": "x" * 9999}, [])
except AmtError as error:
    print(error.message, *error.fix)
"""
    )
    done = in_a_process(code, tmp_path / "outputs")
    assert "the record cannot be written to" in done.stdout, done.stderr
    assert "File too large" in done.stdout
    assert "paths.outputs" in done.stdout
    assert {name: facts[3] for name, facts in tree(tmp_path).items()} == {n: f[3] for n, f in before.items()}


def test_a_full_disk_leaves_nothing_either(tmp_path: Path) -> None:
    """A real one: a file system of 64 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a file system takes privileges that we do not have")
    try:
        with pytest.raises(AmtError, match="No space left on device"):
            record.create(disk / "a" / "b", {"a": 1}, {"big": "x" * 200_000}, [])
        assert list(disk.iterdir()) == []
        folder = record.create(disk / "a" / "b", {"a": 1}, {}, [])
        with pytest.raises(AmtError, match="No space left on device"):
            record.complete(folder, {"verdict": "x" * 200_000}, [])
        assert read(folder) == {"a": 1}
        assert [p.name for p in folder.iterdir()] == [record.FILE]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_record_that_is_there_survives_a_completion_that_finds_no_room(tmp_path: Path) -> None:
    folder = record.create(tmp_path, {"a": 1}, {}, [])
    code = (
        LIMITED
        + """
try:
    record.complete(folder, {"verdict": "x" * 9999}, [])
except AmtError as error:
    print(error.message)
"""
    )
    assert "File too large" in in_a_process(code, folder).stdout
    assert read(folder) == {"a": 1}
    assert [p.name for p in folder.iterdir()] == [record.FILE]


def test_a_process_killed_while_it_records_leaves_no_record(tmp_path: Path) -> None:
    code = """
    import os, sys
    from pathlib import Path
    from amt_hydra import record
    record._place = lambda draft, records: os.kill(os.getpid(), 9)  # at the last moment before the record appears
    record.create(Path(sys.argv[1]), {"a": 1}, {}, [])
    """
    assert in_a_process(code, tmp_path).returncode == -signal.SIGKILL
    assert [p.name for p in tmp_path.iterdir() if not p.name.startswith(".draft-")] == []


def test_ctrl_c_while_recording_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(record, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        record.create(tmp_path / "a" / "b", {}, {}, [])
    assert list(tmp_path.iterdir()) == []


def test_a_file_where_the_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(AmtError) as error:
        record.create(tmp_path / "a" / "launches", {}, {}, [])
    assert str(tmp_path / "a" / "launches") in error.value.message


# Completion.


def test_completion_adds_the_outcome_and_keeps_the_rest(tmp_path: Path) -> None:
    folder = record.create(tmp_path, {"a": 1}, {}, [])
    record.complete(folder, {"code": 0, "best": float("nan"), "best_checkpoint": Path("/x")}, [])
    assert read(folder) == {"a": 1, "outcome": {"code": 0, "best": "nan", "best_checkpoint": "/x"}}


def test_a_reader_sees_the_record_as_it_was_or_as_it_is(tmp_path: Path) -> None:
    """Never half of it: it is replaced, not rewritten."""
    folder = record.create(tmp_path, {"a": "x" * 50_000}, {}, [])
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(lambda: [record.complete(folder, {"n": n, "pad": "y" * 50_000}, []) for n in range(30)])
        seen = 0
        while not done.done():
            assert read(folder)["a"] == "x" * 50_000
            seen += 1
        done.result()
    assert seen > 0
    assert read(folder)["outcome"]["n"] == 29


def test_bytes_that_are_no_utf8_come_through_a_completion(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")  # a folder's name on an old disk
    folder = record.create(tmp_path, {"path": name}, {}, [])
    record.complete(folder, {"code": 0}, [])
    text = (folder / record.FILE).read_text(encoding="utf-8", errors="surrogateescape")
    assert json.loads(text) == {"path": name, "outcome": {"code": 0}}


@pytest.mark.parametrize("content", ["", "{", None])
def test_a_record_that_was_damaged_or_removed_meanwhile_is_an_error_in_words(
    tmp_path: Path, content: str | None
) -> None:
    folder = record.create(tmp_path, {"a": 1}, {}, [])
    if content is None:
        (folder / record.FILE).unlink()
        folder.rmdir()
    else:
        (folder / record.FILE).write_text(content)
    with pytest.raises(AmtError, match="cannot be written"):
        record.complete(folder, {"code": 0}, [])
    assert not list(tmp_path.rglob(".*draft*"))


# Secrets.


@pytest.mark.parametrize(
    "secret", [KEY, 'with"quote\\and backslash', "pässword", "geheim ключ 鍵", "1234567890"], ids=range(5)
)
def test_c19_a_secret_reaches_no_file_and_the_record_stays_json(tmp_path: Path, secret: str) -> None:
    content = {"argv": ["train.py", f"--key={secret}"], secret: {"deep": [secret]}, "number": 1234567890}
    folder = record.create(tmp_path, content, {"config.yaml": f"key: {secret}\n"}, [secret])
    record.complete(folder, {"verdict": f"died with {secret}"}, [secret])
    for file in folder.iterdir():
        assert secret not in file.read_text(encoding="utf-8").replace('"number": 1234567890', "")
    assert read(folder)["argv"] == ["train.py", "--key=***"]
    assert read(folder)["outcome"]["verdict"] == "died with ***"


def test_c19_the_values_of_secret_looking_variables_are_the_secrets() -> None:
    environ = {
        "WANDB_API_KEY": KEY,
        "MY_TOKEN": "abcdef",
        "DB_PASSWORD": "x" * 50,
        "PATH": "/bin",
        "SHORT_TOKEN": "abc",
    }
    assert record.secrets_of(environ) == ["x" * 50, KEY, "abcdef"]


def test_the_folder_of_the_shell_is_no_secret_and_a_secret_may_look_like_a_path() -> None:
    environ = {"PWD": "/home/me/runs", "OLDPWD": "/home/me", "S3_SECRET": "/9j/4AAQSkZJRgABAQ=="}
    assert record.secrets_of(environ) == ["/9j/4AAQSkZJRgABAQ=="]


def test_the_variables_that_are_kept() -> None:
    environ = {"AMT_REPO": "/r", "CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]",
               "AMT_TOKEN": "s", "WANDB_API_KEY": "s", "SLURM_CONF": "/etc", "HOME": "/h", "PATH": "/bin"}  # fmt: skip
    assert record.environment_kept(environ).keys() == {
        "AMT_REPO",
        "CUDA_VISIBLE_DEVICES",
        "SLURM_JOB_ID",
        "SLURM_JOB_NODELIST",
    }


@pytest.mark.parametrize(
    "line",
    [
        '+    wandb.login(key="K", api_key="{}")',
        "+WANDB_API_KEY={}",
        '+  "token": "{}",',
        "+hf_token = '{}'  # mine",
        "-PASSWORD: {}",
        "+db_secret_2={}",
    ],
)
def test_c19_what_a_diff_assigns_to_a_secret_looking_name_is_blanked(line: str) -> None:
    assert KEY not in record.redact_assignments(line.format(KEY))
    assert record.redact_assignments(line.format(KEY)).startswith(line.partition("{")[0].rstrip("\"' "))


def test_the_rest_of_a_diff_is_kept() -> None:
    text = "--- a/src/train.py\n+++ b/src/train.py\n@@ -1 +1 @@\n-lr = 1e-3\n+lr = 3e-4\n"
    assert record.redact_assignments(text) == text


def test_a_full_disk_and_a_forbidden_folder_have_ways_out_of_their_own(tmp_path: Path) -> None:
    full, forbidden = (
        OSError(errno.ENOSPC, "No space left on device"),
        PermissionError(errno.EACCES, "Permission denied"),
    )
    assert unwritable("the record", tmp_path, full).fix[0].startswith("make room, or name another folder")
    assert unwritable("the record", tmp_path, forbidden).fix[0].startswith("make it writable, or name another folder")
