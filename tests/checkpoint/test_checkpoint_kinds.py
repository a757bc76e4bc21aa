"""Whatever else may lie where a checkpoint is expected gets its own words."""

import os
import socket
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from amt_hydra.checkpoint import xray

Write = Callable[..., Path]


def _problem(path: Path) -> str:
    seen = xray(path)
    assert not seen.whole
    assert seen.problem is not None
    assert not seen.problem.startswith("damaged: its pickle")
    return seen.problem


def test_missing(tmp_path: Path) -> None:
    seen = xray(tmp_path / "none.ckpt")
    assert (seen.problem, seen.whole, seen.size, seen.mtime) == ("missing", False, 0, 0.0)
    assert _problem(tmp_path / "none" / "a.ckpt") == "missing"
    (tmp_path / "file").touch()
    assert _problem(tmp_path / "file" / "a.ckpt") == "missing"


def test_impossible_paths() -> None:
    assert _problem(Path("a\0b")).startswith("unreadable")
    assert _problem(Path("x" * 5000)).startswith("unreadable")


def test_legacy_format(tmp_path: Path) -> None:
    for protocol in (2, 4):
        path = tmp_path / f"legacy{protocol}.ckpt"
        torch.save({"a": torch.zeros(2)}, path, _use_new_zipfile_serialization=False, pickle_protocol=protocol)
        assert _problem(path).startswith("legacy (non-zip) format of torch before 1.6: load it once with torch.load")


def test_tar_of_the_oldest_torch(tmp_path: Path) -> None:
    path = tmp_path / "old.ckpt"
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        archive.add(__file__, "pickle")
    assert _problem(path).startswith("legacy (non-zip) format, a tar archive")


def test_torchscript(tmp_path: Path) -> None:
    path = tmp_path / "script.ckpt"
    torch.jit.trace(torch.nn.Linear(1, 1), torch.zeros(1)).save(str(path))
    assert "TorchScript" in _problem(path)


def test_safetensors(tmp_path: Path) -> None:
    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    path = tmp_path / "a.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 4)
    assert "safetensors" in _problem(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\n<!DOCTYPE html><html>404</html>", "web page"),
        (b"<HTML>", "web page"),
        (b'<?xml version="1.0"?><Error>', "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
        (b'{"error": "not found"}', "JSON"),
        (b"\x1f\x8b\x08\0", "gzip"),
        (b"\x80\x02}q\x00.", "bare pickle"),
        (b"\0" * 9000, "zeros"),
        (b"hello", "not a checkpoint"),
        (b"P", "cut short: only 1 bytes"),
        (b"PK\3\4", "cut short"),
        (b"\x89HDF\r\n\x1a\n", "HDF5"),
    ],
)
def test_content_that_is_no_archive(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "a.ckpt"
    path.write_bytes(content)
    assert words in _problem(path)


def test_other_archives(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", w=np.zeros(3))
    assert "no data.pkl" in _problem(tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    assert "no data.pkl" in _problem(tmp_path / "empty.zip")
    with zipfile.ZipFile(tmp_path / "deep.zip", "w") as archive:
        archive.writestr("a/readme", "x")
        archive.writestr("b/data.pkl", b"N.")
    assert "no data.pkl" in _problem(tmp_path / "deep.zip")  # torch looks in the folder of the first member only


@pytest.mark.parametrize("name", ["checkpoint", "latest", ".metadata", "__0_0.distcp", "zero_pp_rank_0_mp_rank_00.pt"])
def test_a_sharded_checkpoint_is_a_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert "sharded (DeepSpeed or FSDP)" in _problem(tmp_path)


def test_a_directory_a_pipe_a_socket_and_a_device(tmp_path: Path) -> None:
    assert _problem(tmp_path) == "a folder, not a file"
    os.mkfifo(tmp_path / "pipe.ckpt")
    assert _problem(tmp_path / "pipe.ckpt") == "a named pipe, not a file"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        assert _problem(tmp_path / "s") == "a socket, not a file"
    assert _problem(Path("/dev/null")) == "a device, not a file"


def test_links(saved: Write, tmp_path: Path) -> None:
    target = saved({"global_step": 3})
    (tmp_path / "hard.ckpt").hardlink_to(target)
    assert xray(tmp_path / "hard.ckpt").link is None
    (tmp_path / "soft.ckpt").symlink_to(target.name)
    (tmp_path / "twice.ckpt").symlink_to("soft.ckpt")
    for name in ("soft.ckpt", "twice.ckpt"):
        seen = xray(tmp_path / name)
        assert (seen.whole, seen.link, seen.path, seen.global_step) == (True, target.resolve(), tmp_path / name, 3)
    target.unlink()
    broken = xray(tmp_path / "twice.ckpt")
    assert broken.link == target.resolve()
    assert broken.problem == f"a link to nothing: {target.resolve()} does not exist"
    (tmp_path / "loop.ckpt").symlink_to("loop.ckpt")
    assert "symbolic links" in _problem(tmp_path / "loop.ckpt")


def test_a_file_that_may_not_be_read(saved: Write) -> None:
    """In a process of its own, since the tests may run as root, who may read everything."""
    path = saved({"global_step": 3})
    path.chmod(0)
    code = (
        "import os, sys; from pathlib import Path; from amt_hydra.checkpoint import xray\n"
        "if os.geteuid() == 0: os.seteuid(65534)\n"
        "print(xray(Path(sys.argv[1])).problem)"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "unreadable: Permission denied\n"


def test_a_working_folder_that_is_gone(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from amt_hydra.checkpoint import xray\n"
        "os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]); print(xray(Path('a.ckpt')).problem)"
    )
    (tmp_path / "gone").mkdir()
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code, str(tmp_path / "gone")]
    assert subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout == "missing\n"
