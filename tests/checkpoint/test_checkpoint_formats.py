"""Every format that torch.save writes: protocols, dtypes, layouts, subclasses, byte orders; torch is the oracle."""

import argparse
import collections
import dataclasses
import os
import pathlib
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from amt_hydra.checkpoint import xray

Save = Callable[..., Path]


class Sub(torch.Tensor):
    pass


@dataclasses.dataclass
class TaskManager:
    name: str = "mt3"


def _listed(path: Path) -> list[tuple[str, tuple[int, ...], str]]:
    seen = xray(path)
    assert seen.whole, seen.problem
    return [(t.name, t.shape, f"torch.{t.dtype}") for t in seen.tensors]


def _wanted(state: dict[str, Any]) -> list[tuple[str, tuple[int, ...], str]]:
    return [(name, tuple(t.shape), str(t.dtype)) for name, t in state.items() if isinstance(t, torch.Tensor)]


DTYPES = [
    *("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"),
    *("complex64", "complex128", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"),
]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickle_protocols(saved: Save, protocol: int) -> None:
    state = torch.nn.Linear(3, 2).state_dict()
    path = saved({"state_dict": state, "global_step": 70000, "epoch": 300}, pickle_protocol=protocol)
    seen = xray(path)
    assert (seen.global_step, seen.epoch) == (70000, 300)
    assert _listed(path) == _wanted(state)
    assert bool(seen.refused_opcodes) == (protocol > 3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(saved: Save, dtype: str) -> None:
    state = {"w": torch.zeros(2, 3).to(getattr(torch, dtype)), "scalar": torch.zeros(()).to(getattr(torch, dtype))}
    assert _listed(saved({"state_dict": state})) == _wanted(state)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_score_is_read_whatever_its_dtype(saved: Save, dtype: str) -> None:
    value = torch.tensor([1, 0, 1]).to(getattr(torch, dtype))[2]  # a view: the storage holds three elements
    unread = dtype.startswith(("complex", "float8"))
    assert xray(saved(_with_score(value))).score == (None if unread else 1.0)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if not d.startswith(("complex", "uint", "float8"))])
def test_a_score_is_read_in_the_other_byte_order(saved: Save, dtype: str) -> None:
    path = saved(_with_score(torch.tensor(1).to(getattr(torch, dtype))))
    _swap_bytes(path, getattr(torch, dtype).itemsize)
    loaded = torch.load(path, weights_only=False)["callbacks"]["ModelCheckpoint"]["current_score"]
    assert xray(path).score == float(loaded) == 1.0


def _with_score(value: torch.Tensor) -> dict[str, Any]:
    state = {"monitor": "f", "best_model_path": "", "best_model_score": None, "current_score": value}
    return {"callbacks": {"ModelCheckpoint": state}}


def _swap_bytes(path: Path, width: int) -> None:
    """Rewrite an archive as a big-endian machine would have written it."""
    import zipfile

    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            swapped = b"".join(data[at : at + width][::-1] for at in range(0, len(data), width))
            order = b"big" if name.endswith("/byteorder") else data
            archive.writestr(name, swapped if "/data/" in name else order)


def test_layouts_views_parameters_and_subclasses(saved: Save) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    with_attribute = torch.zeros(5)
    with_attribute.note = "kept"  # type: ignore[attr-defined]
    parameter_with_attribute = torch.nn.Parameter(torch.zeros(7))
    parameter_with_attribute.note = "kept"  # type: ignore[attr-defined]
    state = {
        "base": base,
        "view": base[1:, ::2].T,
        "same": base,
        "parameter": torch.nn.Parameter(torch.zeros(2, 2)),
        "buffer": torch.nn.Buffer(torch.zeros(3)),
        "attribute": with_attribute,
        "parameter_with_attribute": parameter_with_attribute,
        "subclass": torch.zeros(2, 9).as_subclass(Sub),
        "empty": torch.zeros(0, 4),
        "expanded": torch.zeros(1).expand(1000),
        "meta": torch.zeros(8, 8, device="meta", dtype=torch.float16),
        "conjugate": torch.zeros(3, dtype=torch.complex64).conj(),
        "coo": torch.eye(5).to_sparse(),
        "csr": torch.eye(5, 6, dtype=torch.float64).to_sparse_csr(),
        "bsr": torch.eye(6).to_sparse_bsr((2, 2)),
        "quantized": torch.quantize_per_tensor(torch.zeros(4, 4), 0.1, 3, torch.qint8),
        "per_channel": torch.quantize_per_channel(torch.zeros(4, 4), torch.ones(4), torch.zeros(4), 0, torch.quint8),
    }
    assert _listed(saved({"state_dict": state})) == _wanted(state)


def test_a_bare_state_dict_a_nested_one_a_tensor_and_a_module(saved: Save) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.BatchNorm1d(2)))
    wanted = _wanted(model.state_dict())
    for content in (model.state_dict(), {"model": model.state_dict()}, {"model_state_dict": model.state_dict()}):
        path = saved(content)
        assert _listed(path) == wanted
        assert xray(path).global_step is None
    for content in (model, {"model": model}):
        path = saved(content)
        assert sorted(_listed(path)) == sorted(wanted)
        assert "torch.nn.modules.container.Sequential" in xray(path).refused_globals
    assert _listed(saved(torch.zeros(3, 1))) == [("", (3, 1), "torch.float32")]
    assert _listed(saved([1, 2])) == []


def test_tensors_elsewhere_become_numbers_or_placeholders(saved: Save) -> None:
    groups = [
        {"lr": torch.tensor(0.25), "params": [0, 1], "betas": (0.9, torch.tensor([0.5])), "mask": torch.zeros(2, 2)}
    ]
    seen = xray(saved({"optimizer_states": [{"param_groups": groups}], "lr_schedulers": [{"best": torch.tensor(2)}]}))
    assert seen.optimizer_groups == (({"lr": 0.25, "betas": (0.9, 0.5), "mask": "<tensor float32 (2, 2)>"},),)
    assert seen.schedulers == ({"best": 2},)


def test_hyper_parameters_of_many_kinds(saved: Save) -> None:
    class_with_state = TaskManager()
    values = {
        "int": 7,
        "negative": -300,
        "large": 1 << 40,
        "float": 1e-5,
        "text": "日本 'x' = \n",
        "list": [1, [2, (3,)]],
        "ordered": collections.OrderedDict(a=1),
        "default": collections.defaultdict(list, b=[2]),
        "counter": collections.Counter("aab"),
        "namespace": argparse.Namespace(lr=0.1, more=[1]),
        "omega": OmegaConf.create({"a": {"b": [1, "x", None]}}),
        "numbers": {1: "one", 2.5: "float", None: "none", (1, 2): "pair"},
        "object": class_with_state,
        "path": pathlib.PurePosixPath("/data"),
        "dtype": torch.float32,
        "class": TaskManager,
        "bytes": b"abc",
        "array": np.zeros(100_000),
        "set": {1, 2},
        "complex": 1j,
        "huge": 1 << 4000,
    }
    for protocol in (2, 4):
        got = xray(saved({"hyper_parameters": values}, pickle_protocol=protocol)).hyper_parameters
        plain = ("int", "negative", "large", "float", "text", "list", "ordered", "default", "counter")
        assert {key: got[key] for key in plain} == {key: values[key] for key in plain}
        assert got["namespace"] == {"lr": 0.1, "more": [1]}
        assert got["omega"] == {"a": {"b": [1, "x", None]}}
        assert got["numbers"] == {"1": "one", "2.5": "float", "None": "none", "(1, 2)": "pair"}
        assert got["object"] == got["class"] == f"<{__name__}.TaskManager>"
        assert got["dtype"] == "<torch.float32>"
        assert all(
            isinstance(got[key], str) and got[key].startswith("<")
            for key in ("path", "array", "set", "complex", "huge")
        )


def test_keys_repeat_and_shared_storages_do_not_confuse(saved: Save) -> None:
    shared = torch.zeros(1000)
    state = {f"layer.{n}": shared[n : n + 2] for n in range(300)}
    assert _listed(saved({"state_dict": state})) == _wanted(state)


@pytest.fixture
def unchecked() -> Iterator[None]:
    torch.serialization.set_crc32_options(False)
    yield
    torch.serialization.set_crc32_options(True)


@pytest.mark.usefixtures("unchecked")
def test_an_archive_without_crcs_is_whole(saved: Save) -> None:
    assert xray(saved({"global_step": 1})).whole


def test_repacked_archives_are_read(pickled: Save) -> None:
    seen = xray(pickled({"global_step": 5}, packed=True))
    assert (seen.whole, seen.global_step) == (True, 5)
    assert torch.load(seen.path)["global_step"] == 5


@pytest.mark.parametrize("protocol", range(6))
def test_pickles_of_all_protocols(pickled: Save, protocol: int) -> None:
    value = {
        "hyper_parameters": {
            "a": [1, -1, 300, 70000, 1 << 40, -(1 << 40), 1.5, True, False, None, "ü", "x" * 300],
            "t": (1, 2, 3, 4),
        }
    }
    seen = xray(pickled(value, protocol))
    assert seen.whole, seen.problem
    assert seen.hyper_parameters == value["hyper_parameters"]


@pytest.mark.parametrize("name", ["a b.ckpt", "a='q',x.ckpt", "日本.ckpt", "epoch=1-step=2.ckpt"])
def test_odd_names(saved: Save, name: str) -> None:
    assert xray(saved({"global_step": 1}, name)).global_step == 1


def test_a_relative_path_is_made_absolute(saved: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved({"global_step": 1})
    monkeypatch.chdir(path.parent)
    seen = xray(Path(path.name))
    assert (seen.path, seen.mtime) == (path, os.stat(path).st_mtime)  # noqa: PTH116 - the oracle


def test_the_loop_and_the_table_agree(checkpoint_bytes: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The frequent opcodes are written twice, once for speed: run each pickle with only the table as well."""
    import zipfile

    from amt_hydra.checkpoint import interpreter
    from amt_hydra.checkpoint.machine import Machine
    from amt_hydra.checkpoint.opcodes import TABLE

    def plainly(machine: Machine) -> object:
        while (code := machine.number(1)) != pickle.STOP[0]:
            TABLE[code](machine)
        return machine.stack.pop()

    path = tmp_path / "a.ckpt"
    path.write_bytes(checkpoint_bytes)
    with zipfile.ZipFile(path) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("data.pkl"))
        data = bytearray(archive.read(name))
    quick = xray(path)
    monkeypatch.setattr(interpreter, "_loop", plainly)
    assert interpreter.run(data)[1].at == len(data)
    assert xray(path) == quick
    assert quick.tensors
    assert quick.score == 0.5
