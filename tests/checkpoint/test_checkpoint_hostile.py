"""Files made to hurt: nothing of them is executed, and what they cost is bounded, whatever they claim."""

import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amt_hydra.checkpoint import xray

Write = Callable[..., Path]
Look = Callable[[Path], dict[str, Any]]

BOUND = 250  # MiB


class Evil:
    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch '{self.marker}'",)


@pytest.mark.parametrize("protocol", range(6))
def test_a_malicious_pickle_is_listed_and_not_executed(pickled: Write, tmp_path: Path, protocol: int) -> None:
    marker = tmp_path / "executed"
    seen = xray(pickled({"global_step": 1, "hyper_parameters": {"x": Evil(marker)}}, protocol))
    assert seen.whole
    assert seen.refused_globals == ("posix.system",)
    assert seen.hyper_parameters == {"x": "<posix.system>"}
    assert not marker.exists()


@pytest.mark.parametrize(
    "code",
    [
        b"cos\nsystem\n(S'touch MARK'\ntR.",
        b"(S'touch MARK'\nios\nsystem\n.",
        b"(cos\nsystem\nS'touch MARK'\no.",
        b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x0atouch MARK\x85R.",
        b"\x80\x02cbuiltins\neval\nX\x10\x00\x00\x00open('MARK','w')\x85\x81.",
        b"\x80\x02cbuiltins\nobject\n)\x81}X\x0c\x00\x00\x00__setstate__cos\nsystem\nsb.",
        b"\x80\x02\x82\x01.",
        b"\x80\x02ccopyreg\n_reconstructor\ncos\nsystem\nX\x0a\x00\x00\x00touch MARK\x86R.",
        b"\x80\x02cos\nsystem\nX\x0a\x00\x00\x00touch MARKQ\x85R.",
    ],
)
def test_every_way_to_call_builds_an_inert_record(
    craft: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: bytes
) -> None:
    monkeypatch.chdir(tmp_path)
    seen = xray(craft(code))
    assert seen.whole, seen.problem
    assert seen.refused_globals
    assert not (tmp_path / "MARK").exists()


def test_names_of_members_are_only_names(craft: Write, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.ckpt", "w") as archive:
        archive.writestr("../../../etc/x", b"1")
        archive.writestr("../data.pkl", pickle.dumps({"global_step": 4}, 2))
        archive.writestr("/etc/passwd", b"x")
        archive.writestr("../data.pkl/../../../tmp/y", b"x")
    seen = xray(tmp_path / "a.ckpt")
    assert seen.global_step == 4  # ".." is just the folder of the first member
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.ckpt"]


def _text(value: bytes) -> bytes:
    return b"X" + struct.pack("<L", len(value)) + value


def _hyper(value: bytes) -> bytes:
    """A pickle of {"hyper_parameters": {"x": value}} around the opcodes of a value."""
    return b"\x80\x02}" + _text(b"hyper_parameters") + b"}" + _text(b"x") + value + b"ss."


def _dict(**entries: bytes) -> bytes:
    return b"}(" + b"".join(_text(key.encode()) + value for key, value in entries.items()) + b"u"


def _long(number: int) -> bytes:
    return b"\x8a\x08" + struct.pack("<q", number)


def _module(child: bytes) -> bytes:
    """An object m.M whose state names the same child twice."""
    return b"cm\nM\n)\x81" + _dict(_modules=_dict(a=child, b=child)) + b"b"


# Opcodes by name: ( MARK, 0 POP, 1 POP_MARK, 2 DUP, q PUT, h GET, R REDUCE, b BUILD, s SETITEM, u SETITEMS, e APPENDS.
BOMBS: dict[str, bytes] = {
    "deep tuples": _hyper(b")" + b"\x85" * 1_500_000),
    "deep tuples as a key": b"\x80\x02})" + b"\x85" * 1_000_000 + b"Ns.",
    "deep lists": _hyper(b"]" * 900_000 + b"a" * 899_999),
    "doubling tuples": _hyper(b")" + b"2\x86" * 200_000),
    "doubling lists": _hyper(b"(]q\0" + b"]h\0ah\0aq\0" * 200_000 + b"1h\0"),
    "memo index": _hyper(b"Nr\xff\xff\xff\xff"),
    "huge frame": b"\x80\x04\x95" + b"\xff" * 8 + b"N.",
    "huge text": b"\x80\x02X\xff\xff\xff\xff.",
    "huge text of protocol 4": b"\x80\x04\x8d" + b"\xff" * 8 + b".",
    "huge bytes": b"\x80\x04\x8e" + b"\xff" * 8 + b".",
    "huge integer": _hyper(b"\x8b" + struct.pack("<L", 8_000_000) + b"\x7f" * 8_000_000),
    "huge decimal": _hyper(b"I" + b"9" * 8_000_000 + b"\n"),
    "huge memo key": _hyper(b"Np" + b"9" * 4_000_000 + b"\n"),
    "one long text": _hyper(_text(b"x" * (60 << 20))),
    "many long texts": b"\x80\x02]" + (_text(b"x" * 60_000) + b"a") * 1_000 + b".",
    "one long text everywhere": _hyper(_text(b"x" * 65_000) + b"q\x000](" + b"h\0" * 900_000 + b"e"),
    "long name everywhere": b"\x80\x04(" + _text(b"m" * 65_000) + b"q\0" + b"h\0h\0\x93" * 300_000 + b"l.",
    "many names": b"\x80\x02(" + b"".join(b"cm\nn%d\n" % n for n in range(400_000)) + b"l.",
    "empty dicts": b"\x80\x04(" + b"}\x94" * 990_000 + b"l.",
    "dicts of one": b"\x80\x02(" + b"}NNs" * 490_000 + b"l.",
    "records of one": b"\x80\x02cm\nn\nq\0(" + b"h\0)RNNs" * 330_000 + b"l.",
    "marks": b"\x80\x02" + b"(" * 1_990_000 + b".",
    "too many opcodes": b"\x80\x02" + b"N0" * 3_000_000 + b"N.",
    "colliding keys": b"\x80\x02}(" + b"".join(_long(n % 4 * ((1 << 61) - 1)) + b"N" for n in range(600_000)) + b"u.",
    "copies of one dict": b"\x80\x02}q\0("
    + b"".join(b"M%bN" % struct.pack("<H", n) for n in range(60_000))
    + b"u0ccollections\nOrderedDict\nq\1("
    + b"h\1h\0\x85R" * 390_000
    + b"l.",
    "optimizers of groups": b"\x80\x02"
    + _dict(
        optimizer_states=b"]" + _dict(param_groups=b"](" + b"}q\1" + b"h\1" * 300_000 + b"e") + b"q\x020"
        b"(" + b"h\2" * 300_000 + b"e"
    )
    + b".",
    "modules of modules": b"\x80\x02(Nq\1" + (_module(b"h\1") + b"q\1") * 60 + b"1h\1.",
    "sparse tensors of many parts": b"\x80\x02ctorch._utils\n_rebuild_sparse_tensor\nq\0("
    + b"("
    + b"N" * 500_000
    + b"tq\1("
    + b"h\0Nh\1\x86R" * 280_000
    + b"ll.",
    "wrappers with a long dtype": b"\x80\x02c"
    + b"t" * 60_000
    + b"\nx\nq\0ctorch._utils\n_rebuild_wrapper_subclass\nq\1(Nh\0))tq\2("
    + b"h\1h\2R" * 600_000
    + b"l.",
}
REFUSED = {"many long texts", "long name everywhere", "many names", "too many opcodes"}
DAMAGED = {"huge text", "huge text of protocol 4", "huge bytes", "huge memo key", "marks"}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_cost_a_bounded_amount(craft: Write, look: Look, bomb: str) -> None:
    seen = look(craft(BOMBS[bomb]))
    assert seen["mib"] < BOUND
    words = "refused: " if bomb in REFUSED else "damaged: " if bomb in DAMAGED else "None"
    assert str(seen["problem"]).startswith(words)


def test_a_zip_bomb_is_not_unpacked(craft: Write, look: Look) -> None:
    seen = look(craft(b"\0" * (80 << 20), packed=True))
    assert seen["problem"] == "refused: its data.pkl takes 80 MiB; at most 64 are read"
    assert seen["mib"] < 30


def test_a_zip_bomb_that_claims_to_be_small(craft: Write, look: Look) -> None:
    path = craft(b"\0" * (80 << 20), packed=True)
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\1\2")
    data[at + 24 : at + 28] = struct.pack("<L", 1000)
    path.write_bytes(data)
    seen = look(path)
    assert "CRC" in seen["problem"]
    assert seen["mib"] < 30


def _members(count: int) -> bytes:
    """The central directory of an archive of many empty members, which all claim to start at 0."""
    entry = b"PK\1\2" + b"\0" * 24 + struct.pack("<H", 1) + b"\0" * 16 + b"x"
    return entry * count


def test_millions_of_members(tmp_path: Path, look: Look) -> None:
    directory = _members(2_000_000)
    locator = b"PK\6\7" + struct.pack("<LQL", 0, 4 + len(directory), 1)
    record = b"PK\6\6" + struct.pack("<Q2H2L4Q", 44, 45, 45, 0, 0, 2_000_000, 2_000_000, len(directory), 4)
    end = b"PK\5\6" + struct.pack("<4H2LH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path = tmp_path / "a.ckpt"
    path.write_bytes(b"PK\3\4" + directory + record + locator + end)
    seen = look(path)
    assert seen["problem"].startswith("refused: an archive of 2000000 members")
    assert seen["mib"] < 30


def test_members_that_overlap(tmp_path: Path) -> None:
    directory = _members(1000)
    end = b"PK\5\6" + struct.pack("<4H2LH", 0, 0, 1000, 1000, len(directory), 100, 0)
    path = tmp_path / "a.ckpt"
    path.write_bytes(b"PK\3\4".ljust(100, b"\0") + directory + end)
    assert "would take more than the 100 bytes" in (xray(path).problem or "")
