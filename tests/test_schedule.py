"""Ends of learning-rate schedules, read from the states of torch's own schedulers."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.optim import lr_scheduler as torch_schedules

from amt_hydra.checkpoint import Xray, xray
from amt_hydra.schedule import cosine, rates, restored_end

Make = Callable[[torch.optim.Optimizer], torch_schedules.LRScheduler]


def upstreams(total: int, warmup: int) -> Make:
    """The public family's: a linear warm-up, then a cosine to the end."""

    def make(optimizer: torch.optim.Optimizer) -> torch_schedules.LRScheduler:
        first = torch_schedules.LinearLR(optimizer, 0.5, 1, total_iters=warmup)
        second = torch_schedules.CosineAnnealingLR(optimizer, T_max=total - warmup)
        return torch_schedules.SequentialLR(optimizer, [first, second], milestones=[warmup])

    return make


def trained(folder: Path, make: Make, steps: int, step: int | None = None) -> tuple[Xray, dict[str, object]]:
    """A checkpoint after so many steps, and the state of its scheduler."""
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=1e-3)
    schedule = make(optimizer)
    for _ in range(steps):
        optimizer.step()
        schedule.step()
    state = schedule.state_dict()
    content = {
        "global_step": steps if step is None else step,
        "state_dict": {"w": torch.zeros(1)},
        "optimizer_states": [optimizer.state_dict()],
        "lr_schedulers": [state],
    }
    torch.save(content, folder / "last.ckpt")
    return xray(folder / "last.ckpt"), state


def test_c25_a_cosine_after_a_warm_up_ends_where_both_are_over(tmp_path: Path) -> None:
    end = restored_end(trained(tmp_path, upstreams(total=100, warmup=10), steps=60)[0])
    assert end is not None
    assert (end.step, end.beyond, end.read) == (100, "climbs", "T_max 90 after 10 steps")


def test_c25_beyond_it_the_learning_rate_does_climb(tmp_path: Path) -> None:
    """What the end is reported for: torch restores T_max, whatever the new run was made with."""
    state = trained(tmp_path, upstreams(total=100, warmup=10), steps=100)[1]
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=1e-3)
    longer = upstreams(total=200, warmup=10)(optimizer)
    longer.load_state_dict(state)
    seen = []
    for _ in range(90):
        optimizer.step()
        longer.step()
        seen.append(optimizer.param_groups[0]["lr"])
    assert seen == sorted(seen)
    assert seen[-1] > 0.9e-3


def test_a_plain_cosine_ends_at_t_max(tmp_path: Path) -> None:
    end = restored_end(trained(tmp_path, lambda o: torch_schedules.CosineAnnealingLR(o, T_max=50), steps=7)[0])
    assert end is not None
    assert (end.step, end.read) == (50, "T_max 50")


def test_a_one_cycle_schedule_raises_beyond_its_end(tmp_path: Path) -> None:
    make: Make = lambda o: torch_schedules.OneCycleLR(o, max_lr=1e-3, total_steps=20)  # noqa: E731
    end = restored_end(trained(tmp_path, make, steps=19)[0])
    assert end is not None
    assert (end.step, end.beyond) == (20, "raises")
    with pytest.raises(ValueError, match="20"):
        trained(tmp_path, make, steps=21)


def test_a_schedule_that_keeps_no_length_has_no_end(tmp_path: Path) -> None:
    assert restored_end(trained(tmp_path, lambda o: torch_schedules.LambdaLR(o, lambda _: 1.0), steps=5)[0]) is None
    assert restored_end(trained(tmp_path, lambda o: torch_schedules.StepLR(o, 3), steps=5)[0]) is None


def test_a_schedule_that_counts_epochs_is_not_compared_with_steps(tmp_path: Path) -> None:
    make: Make = lambda o: torch_schedules.CosineAnnealingLR(o, T_max=50)  # noqa: E731
    assert restored_end(trained(tmp_path, make, steps=3, step=300)[0]) is None


def test_the_rates_of_a_checkpoint(tmp_path: Path) -> None:
    ray, _ = trained(tmp_path, lambda o: torch_schedules.CosineAnnealingLR(o, T_max=50), steps=25)
    base, now = rates(ray)
    assert base == [1e-3]
    assert now == pytest.approx([0.5e-3])


def test_the_share_that_a_half_cosine_leaves() -> None:
    assert [cosine(step, 100) for step in (0, 50, 100, 150)] == pytest.approx([1, 0.5, 0, 0])
