"""Leases of GPUs. They are names only; that a real one is busy cannot be shown without a driver."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from stand import Stand

from amt_hydra.errors import AmtError
from amt_hydra.sweep.gpus import GpuPool, pool
from amt_hydra.sweep.points import Point, plan_point

pytest_plugins = ["desks"]


@pytest.fixture
def points(stand: Stand) -> list[Point]:
    words = [(f"repo.path={stand.repository}", f"seed={seed}", "max_steps=9999") for seed in range(3)]
    return [plan_point(one, {}, stand.folder, None) for one in words]


def free(_: str) -> bool:
    return False


def test_each_gets_one_of_its_own_and_the_next_waits(tmp_path: Path, points: list[Point]) -> None:
    gpus = GpuPool(["0", "1"], free, tmp_path)
    first, second, third = points
    assert [gpus.take(one) for one in points] == [{"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "1"}, None]
    gpus.give_back(first)
    assert gpus.take(third) == {"CUDA_VISIBLE_DEVICES": "0"}
    gpus.give_back(second)
    gpus.give_back(third)


def test_as_many_as_it_has_devices_or_none(tmp_path: Path, points: list[Point]) -> None:
    two, one = replace(points[0], devices=2), points[1]
    gpus = GpuPool(["0", "1", "2"], free, tmp_path)
    assert gpus.take(two) == {"CUDA_VISIBLE_DEVICES": "0,1"}
    assert gpus.take(replace(points[2], devices=2)) is None
    assert gpus.take(one) == {"CUDA_VISIBLE_DEVICES": "2"}, "what the one before could not use is free again"


def test_another_sweep_of_the_machine_is_seen(tmp_path: Path, points: list[Point]) -> None:
    ours, theirs = (GpuPool(["0", "1"], free, tmp_path) for _ in range(2))
    assert theirs.take(points[0]) == {"CUDA_VISIBLE_DEVICES": "0"}
    assert ours.take(points[1]) == {"CUDA_VISIBLE_DEVICES": "1"}


def test_a_lease_dies_with_its_process(tmp_path: Path, points: list[Point]) -> None:
    """However it dies: here it is killed with the lease in its hands."""
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom types import SimpleNamespace\n"
        "from amt_hydra.sweep.gpus import GpuPool\n"
        "pool = GpuPool(['0'], lambda gpu: False, Path(sys.argv[1]))\n"
        "print(pool.take(SimpleNamespace(exp_id='x', devices=1)), flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "'CUDA_VISIBLE_DEVICES': '0'" in done.stdout, done.stderr
    assert GpuPool(["0"], free, tmp_path).take(points[0]) == {"CUDA_VISIBLE_DEVICES": "0"}


def test_one_that_somebody_computes_on_is_left_alone(tmp_path: Path, points: list[Point]) -> None:
    busy = {"0"}
    gpus = GpuPool(["0", "1"], busy.__contains__, tmp_path)
    assert gpus.take(points[0]) == {"CUDA_VISIBLE_DEVICES": "1"}
    assert gpus.take(points[1]) is None
    busy.clear()
    assert gpus.take(points[1]) == {"CUDA_VISIBLE_DEVICES": "0"}


def test_a_point_that_would_wait_for_ever_is_told(tmp_path: Path, points: list[Point]) -> None:
    gpus = GpuPool(["0", "1"], free, tmp_path)
    told = gpus.never(replace(points[0], devices=4))
    assert told is not None
    assert (told.why, told.new) == ("ddp.devices=4, and the pool has 2 GPUs", ("ddp.devices=2",))
    assert gpus.never(points[0]) is None


def test_the_pool_is_what_is_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amt_hydra.sweep.gpus._all", list)
    assert pool(None, {"CUDA_VISIBLE_DEVICES": "2, GPU-ab"}).gpus == ("2", "GPU-ab")
    assert pool([3, 5], {"CUDA_VISIBLE_DEVICES": "2"}).gpus == ("3", "5")
    with pytest.raises(AmtError, match="no GPU is visible"):
        pool(None, {})


@pytest.mark.parametrize(
    ("visible", "gpus"),
    [
        ("3", ("3",)),
        ("2,0", ("2", "0")),
        (" 1 , 2 ", ("1", "2")),
        ("1,-1,2", ("1",)),
        ("GPU-0a1b,1", ("GPU-0a1b", "1")),
    ],
)
def test_the_gpus_of_a_pool_are_those_that_cuda_would_see(visible: str, gpus: tuple[str, ...]) -> None:
    assert pool(None, {"CUDA_VISIBLE_DEVICES": visible}).gpus == gpus


@pytest.mark.parametrize("visible", ["", "-1", "-1,0"])
def test_gpus_that_are_hidden_make_no_pool(visible: str) -> None:
    with pytest.raises(AmtError, match="no GPU is visible here"):
        pool(None, {"CUDA_VISIBLE_DEVICES": visible})
