"""Where a repository keeps its runs is read from it; repo.runs says it only where it cannot be read."""

import pytest
from stand import Stand

from amt_hydra.errors import AmtError

pytest_plugins = ["desks"]


def test_repo_runs_that_differs_from_what_the_repository_does_is_refused(stand: Stand) -> None:
    stand.last()
    with pytest.raises(AmtError) as refused:
        stand.pre("repo.runs=elsewhere")
    assert f"repo.runs={stand.folder / 'elsewhere'}" in refused.value.message
    assert str(stand.runs) in refused.value.message
    assert refused.value.code == 78


def test_repo_runs_that_says_the_same_is_no_fault(stand: Stand) -> None:
    pre = stand.pre(f"repo.runs={stand.runs}")
    assert pre.subject.plan.place.runs == stand.runs


def test_where_it_cannot_be_read_repo_runs_says_it(stand: Stand) -> None:
    for file in stand.repository.rglob("*.py"):
        file.write_text(file.read_text().replace('"../logs"', "__import__('os').sep"))
    with pytest.raises(AmtError, match="could not be read"):
        stand.pre()
    assert stand.pre("repo.runs=runs").subject.plan.place.runs == stand.folder / "runs"


def test_the_bundled_repository_is_told_by_paths_outputs(stand: Stand) -> None:
    with pytest.raises(AmtError) as refused:
        stand.pre("repo=reference", "repo.path=null", "repo.runs=elsewhere")
    assert "paths.outputs" in " ".join(refused.value.fix)


def test_null_leaves_the_place_to_the_repository(public: Stand) -> None:
    pre = public.pre("extra.config.shared_cfg.WANDB.save_dir=null")
    assert pre.subject.plan.place.runs == public.runs
