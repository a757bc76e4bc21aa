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


def test_a_strategy_that_the_repository_has_by_itself_is_its_own_matter(public: Stand) -> None:
    """Nobody asked for it, and its code may well map the name; one that is computed may be anything."""
    for default in ('"ddp_static"', '"ddp_spawn" if os.name == "nt" else "auto"'):
        family(
            public.repository, changes={'"--strategy", type=str, default="auto"': f'"--strategy", default={default}'}
        )
        pre = public.pre("ddp.strategy=null")
        assert of(pre, "StrategyKnown") == of(pre, "RanksAreStarted") == []


def test_no_way_out_leads_to_what_the_bridge_does_not_reach(public: Stand) -> None:
    (finding,) = of(public.pre("ddp.strategy=ddp_span"), "StrategyKnown")
    assert errors(public.follow(finding.fix[0])) == []
    (finding,) = of(public.pre("ddp.strategy=ddp_span", "repo.bridge=false"), "StrategyKnown")
    assert "ddp.strategy=ddp_spawn" in finding.fix[0]
