"""How the ranks of a run are started."""

import pytest
from lightning.pytorch.strategies import StrategyRegistry
from repos import family
from stand import Stand, errors, of

from amt_hydra.checks.ddp_checks import STRATEGIES

pytest_plugins = ["desks"]


# StrategyKnown


def test_the_list_is_lightnings_own() -> None:
    assert {*STRATEGIES} == {*StrategyRegistry.available_strategies(), "auto"}


def test_a_strategy_that_lightning_does_not_know_gets_the_nearest(public: Stand) -> None:
    (finding,) = of(public.pre("ddp.strategy=dpp"), "StrategyKnown")
    assert finding.message.startswith("ddp.strategy=dpp: Lightning knows no such strategy; valid are auto, ddp, ")
    pre = public.follow(finding.fix[0])
    assert (pre.subject.settings.ddp.strategy, of(pre, "StrategyKnown")) == ("ddp", [])


def test_a_repository_that_lists_its_own_strategies_is_judged_by_those(public: Stand) -> None:
    plain = '"--strategy", type=str, default="auto"'
    family(public.repository, changes={plain: f'{plain}, choices=["auto", "hpu"]'})
    assert errors(public.pre("ddp.strategy=hpu")) == []


@pytest.mark.parametrize("name", ["auto", "ddp_find_unused_parameters_true", "deepspeed_stage_2"])
def test_what_lightning_knows_passes(public: Stand, name: str) -> None:
    assert of(public.pre(f"ddp.strategy={name}"), "StrategyKnown") == []


# RanksAreStarted


@pytest.mark.parametrize("name", ["ddp_spawn", "ddp_fork_find_unused_parameters_true", "ddp_notebook"])
def test_ranks_that_are_no_programs_of_their_own_do_not_go_with_the_bridge(public: Stand, name: str) -> None:
    (finding,) = of(public.pre(f"ddp.strategy={name}"), "RanksAreStarted")
    assert public.follow(finding.fix[0]).subject.settings.ddp.strategy == "ddp"
    assert of(public.follow(finding.fix[1]), "RanksAreStarted") == []
    assert of(public.pre(f"ddp.strategy={name}", "repo.bridge=false"), "RanksAreStarted") == []
