"""Damage never raises and is never taken for a whole file."""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amt_hydra.checkpoint import xray

Write = Callable[..., Path]

ANY = settings(
    max_examples=150,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def _written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "last.ckpt"
    path.write_bytes(data)
    return path


def _pickle_at(data: bytes) -> tuple[int, int]:
    """Where data.pkl lies in the file: start and length."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (info,) = (i for i in archive.infolist() if i.filename.endswith("/data.pkl"))
    names, extras = struct.unpack_from("<2H", data, info.header_offset + 26)
    return info.header_offset + 30 + names + extras, info.file_size


def _with_pickle(data: bytes, changed: bytes) -> bytes:
    """Put a pickle of the same length in place, with its CRC, so that only the opcodes can tell."""
    start, length = _pickle_at(data)
    assert len(changed) == length
    old, new = (struct.pack("<L", zlib.crc32(b)) for b in (data[start : start + length], changed))
    return (data[:start] + changed + data[start + length :]).replace(old, new)


@ANY
@given(cut=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_anywhere_is_not_whole(checkpoint_bytes: bytes, tmp_path: Path, cut: float) -> None:
    seen = xray(_written(tmp_path, checkpoint_bytes[: int(cut * len(checkpoint_bytes))]))
    assert not seen.whole
    assert seen.problem
    assert seen.global_step is None


def test_every_cut_near_the_end_and_the_beginning(checkpoint_bytes: bytes, tmp_path: Path) -> None:
    for keep in (*range(64), *(len(checkpoint_bytes) - n for n in range(1, 300))):
        assert not xray(_written(tmp_path, checkpoint_bytes[:keep])).whole


def test_cut_short_says_so_and_how_large_it_is(checkpoint_bytes: bytes, tmp_path: Path) -> None:
    problem = xray(_written(tmp_path, checkpoint_bytes[:2000])).problem or ""
    assert problem.startswith("cut short: 2000 bytes")
    assert "still being written" in problem


@ANY
@given(at=st.integers(0, 1 << 20), value=st.integers(1, 255))
def test_a_flipped_byte_of_the_pickle_is_found_by_its_crc(
    checkpoint_bytes: bytes, tmp_path: Path, at: int, value: int
) -> None:
    start, length = _pickle_at(checkpoint_bytes)
    data = bytearray(checkpoint_bytes)
    data[start + at % length] ^= value
    assert xray(_written(tmp_path, bytes(data))).problem == "damaged: the CRC of its data.pkl does not match"


@ANY
@given(flips=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=8))
def test_opcodes_changed_under_a_right_crc_never_raise(
    checkpoint_bytes: bytes, tmp_path: Path, flips: list[tuple[int, int]]
) -> None:
    start, length = _pickle_at(checkpoint_bytes)
    changed = bytearray(checkpoint_bytes[start : start + length])
    for at, value in flips:
        changed[at % length] = value
    seen = xray(_written(tmp_path, _with_pickle(checkpoint_bytes, bytes(changed))))
    assert seen.whole == (seen.problem is None)


@ANY
@given(data=st.binary(max_size=300))
def test_any_bytes_as_a_pickle_never_raise(craft: Write, data: bytes) -> None:
    seen = xray(craft(data))
    assert seen.whole == (seen.problem is None)


@ANY
@given(flips=st.lists(st.tuples(st.integers(1, 800), st.integers(0, 255)), min_size=1, max_size=4))
def test_changes_to_the_central_directory_never_raise(
    checkpoint_bytes: bytes, tmp_path: Path, flips: list[tuple[int, int]]
) -> None:
    data = bytearray(checkpoint_bytes)
    for from_end, value in flips:
        data[-from_end] = value
    seen = xray(_written(tmp_path, bytes(data)))
    assert seen.whole == (seen.problem is None)


@ANY
@given(data=st.binary(max_size=600))
def test_any_bytes_as_a_file_never_raise_and_are_not_whole(tmp_path: Path, data: bytes) -> None:
    assert not xray(_written(tmp_path, data)).whole


def test_a_pickle_that_stops_early(craft: Write) -> None:
    assert xray(craft(b"\x80\x02}q\x00X\x05\x00\x00\x00epo")).problem == "damaged: its pickle does not read to its end"


def test_a_storage_missing_or_too_small(saved: Write, tmp_path: Path) -> None:
    path = saved({"state_dict": {"w": torch.zeros(100)}})
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for content, words in ((None, "names data/0, which the archive does not have"), (b"x" * 399, "needs 400")):
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                if not name.endswith("/data/0"):
                    archive.writestr(name, data)
                elif content is not None:
                    archive.writestr(name, content)
        seen = xray(path)
        assert not seen.whole
        assert words.replace("needs", "need") in (seen.problem or "")


def test_bytes_lost_in_the_middle_are_noticed(checkpoint_bytes: bytes, tmp_path: Path) -> None:
    seen = xray(_written(tmp_path, checkpoint_bytes[:1000] + checkpoint_bytes[1200:]))
    assert not seen.whole


def test_members_that_claim_more_than_the_file(checkpoint_bytes: bytes, tmp_path: Path) -> None:
    at = checkpoint_bytes.index(b"PK\1\2")
    data = bytearray(checkpoint_bytes)
    data[at + 20 : at + 28] = struct.pack("<2L", 1 << 30, 1 << 30)
    assert "would take more than" in (xray(_written(tmp_path, bytes(data))).problem or "")


def test_a_file_padded_with_zeros_behind_its_end(checkpoint_bytes: bytes, tmp_path: Path) -> None:
    """Block storage may do so, and torch does not mind."""
    path = _written(tmp_path, checkpoint_bytes + b"\0" * 512)
    assert xray(path).whole
    torch.load(path, weights_only=True)


@pytest.mark.parametrize("comment", [b"", b"a comment", b"PK\5\6 in the comment, and long enough to look like an end"])
def test_an_archive_with_a_comment(pickled: Write, comment: bytes) -> None:
    path = pickled({"global_step": 1})
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = comment
    assert xray(path).whole == (b"PK" not in comment)
