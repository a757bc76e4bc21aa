"""The X-ray of one checkpoint: what it holds and whether it is whole, without torch and without executing it."""

import os
import stat
from dataclasses import replace
from pathlib import Path

from amt_hydra.checkpoint.archive import Archive
from amt_hydra.checkpoint.facts import Xray
from amt_hydra.checkpoint.inert import Storage
from amt_hydra.checkpoint.interpreter import run
from amt_hydra.checkpoint.limits import UnreadableError
from amt_hydra.checkpoint.reading import read
from amt_hydra.checkpoint.sniff import describe, describe_folder
from amt_hydra.checkpoint.values import ELEMENTS

_HEAD = 512

_KINDS = (
    (stat.S_ISFIFO, "a named pipe, not a file"),
    (stat.S_ISSOCK, "a socket, not a file"),
    (stat.S_ISCHR, "a device, not a file"),
    (stat.S_ISBLK, "a device, not a file"),
)


def xray(path: Path) -> Xray:
    """Return what the checkpoint at `path` holds; never raises: a bad or missing file has whole=False and a problem.

    Cost: the archive's directory and its pickle are read, the tensors never, so it does not grow with their size. Whole
    means that every byte of every tensor has its place in the file, not that their values are right. No limit of
    `limits` is reached by an ordinary file; one that exceeds them is refused, not read.
    """
    seen = Xray(path=_absolute(Path(path)), size=0, mtime=0.0, link=None, whole=False, problem=None)
    try:
        if seen.path.is_symlink():
            seen = replace(seen, link=Path(os.path.realpath(seen.path)))
        status = seen.path.stat()
        seen = replace(seen, size=status.st_size, mtime=status.st_mtime)
        if stat.S_ISDIR(status.st_mode):
            return replace(seen, problem=describe_folder(p.name for p in seen.path.iterdir()))
        for is_kind, words in _KINDS:
            if is_kind(status.st_mode):
                return replace(seen, problem=words)
        return _open(seen)
    except UnreadableError as refusal:
        return replace(seen, problem=str(refusal))
    except (FileNotFoundError, NotADirectoryError):
        return replace(seen, problem=f"a link to nothing: {seen.link} does not exist" if seen.link else "missing")
    except (OSError, ValueError) as error:
        return replace(seen, problem=f"unreadable: {getattr(error, 'strerror', None) or error}")
    except MemoryError:
        return replace(seen, problem="unreadable: too little memory is left to this process to look into it")


def _absolute(path: Path) -> Path:
    try:
        return path.absolute()
    except OSError:  # the current folder was removed
        return path


def _open(seen: Xray) -> Xray:
    # O_NONBLOCK: the file may have become a named pipe since it was looked at, and opening one waits for a writer.
    fd = os.open(seen.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        head = os.pread(fd, _HEAD, 0)
        if not head.startswith((b"PK\3\4", b"PK\5\6")):
            raise UnreadableError(describe(head, size))
        return _inside(seen, Archive(fd, size))
    finally:
        os.close(fd)


def _inside(seen: Xray, archive: Archive) -> Xray:
    if "constants.pkl" in archive.members:
        raise UnreadableError(
            "a TorchScript archive (torch.jit.save): code and weights, not a checkpoint of torch.save"
        )
    if "data.pkl" not in archive.members:
        raise UnreadableError("a zip archive, but not one that torch.save wrote: it has no data.pkl")
    root, machine = run(archive.content("data.pkl"))
    _check_storages(machine.storages, archive)
    return read(seen, root, machine, archive)


def _check_storages(storages: dict[str, Storage], archive: Archive) -> None:
    """Raise UnreadableError where the bytes of a tensor have no place in the file."""
    for key, storage in storages.items():
        member = archive.members.get(f"data/{key}")
        if member is None:
            raise UnreadableError(f"damaged: its pickle names data/{key}, which the archive does not have")
        needed = storage.numel * ELEMENTS.get(storage.dtype, (0, None))[0]
        if member.size < needed:
            raise UnreadableError(f"damaged: data/{key} takes {member.size} bytes where its tensors need {needed}")
