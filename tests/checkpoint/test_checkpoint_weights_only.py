"""The table of what weights_only accepts, held against the installed torch."""

import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch._weights_only_unpickler import _get_allowed_globals

from amt_hydra.checkpoint import xray
from amt_hydra.checkpoint.opcodes import _CODES
from amt_hydra.checkpoint.weights_only import ALLOWED_GLOBALS, ALLOWED_OPCODES

Write = Callable[..., Path]


class Custom:
    pass


def _accepts(path: Path) -> bool:
    try:
        torch.load(path, weights_only=True)
    except pickle.UnpicklingError:
        return False
    return True


def test_table_equals_the_installed_torchs() -> None:
    assert not set(_get_allowed_globals()) ^ ALLOWED_GLOBALS


def test_every_opcode_of_pickle_is_known() -> None:
    known = {name: code for name, (code, _) in _CODES.items()}
    for opcode in pickletools.opcodes:
        if opcode.name not in ("STOP", "NEXT_BUFFER", "READONLY_BUFFER"):
            assert known[opcode.name] == opcode.code.encode("latin1")


def test_allowed_opcodes_are_those_that_torch_takes() -> None:
    """Each opcode alone: torch says "Unsupported operand" for one that it does not know."""
    import io

    from torch._weights_only_unpickler import Unpickler

    refused = set()
    for opcode in pickletools.opcodes:
        try:
            Unpickler(io.BytesIO(opcode.code.encode("latin1") + b"\0" * 16)).load()
        except Exception as error:
            if str(error).startswith(f"Unsupported operand {ord(opcode.code)}"):
                refused.add(opcode.name)
    assert {opcode.name for opcode in pickletools.opcodes} - refused == ALLOWED_OPCODES


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        ({"w": torch.zeros(2)}, ()),
        ({"a": 1, "b": [None, 1.5, "x", (1,)], "s": {1}, "c": 1j, "y": b"1"}, ()),
        ({"o": Custom()}, (f"{__name__}.Custom",)),
        ({"c": Custom}, (f"{__name__}.Custom",)),
        ({"p": Path("x")}, ("pathlib.PosixPath",)),
        ({"f": print}, ("builtins.print",)),
        ({"s": frozenset([1])}, ("builtins.frozenset",)),
        ({"d": torch.float16, "v": torch.device("cpu"), "z": torch.Size([1])}, ()),
    ],
)
def test_verdict_and_names_are_torchs(saved: Write, value: object, refused: tuple[str, ...]) -> None:
    path = saved(value)
    seen = xray(path)
    assert seen.refused_globals == refused
    assert seen.weights_only == _accepts(path)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_verdict_on_protocols(saved: Write, protocol: int) -> None:
    path = saved({"w": torch.zeros(2), "b": b"1"}, pickle_protocol=protocol)
    assert xray(path).weights_only == _accepts(path)
