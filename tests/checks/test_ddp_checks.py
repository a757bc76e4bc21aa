"""How the ranks of a run are started."""

import pytest
from lightning.pytorch.strategies import StrategyRegistry
from repos import family
from stand import Stand, errors, of, recorded

from amt_hydra.checks.ddp_checks import STRATEGIES
from amt_hydra.machine import Gpu

pytest_plugins = ["desks"]

GPUS = tuple(Gpu(number, "NVIDIA A100", (8, 0), 80 << 30) for number in range(8))


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


# BatchIsMeant


def test_the_batch_of_a_step_is_shown_beside_that_of_one_device(public: Stand) -> None:
    public.machine(gpus=GPUS[:4])
    pre = public.pre("ddp=gpus4", "batch.sub=6", "batch.local=12", "batch.accumulate=2")
    (finding,) = of(pre, "BatchIsMeant")
    assert "96 (12 clips per device x 4 devices x 2 batches accumulated), on one device 12" in finding.message
    assert "times the root (2.83), with SGD 8 times" in finding.message
    assert finding.fix == ()  # 12 clips are no whole number for each of 8 parts
    (finding,) = of(public.pre("ddp=gpus2", "batch.sub=6", "batch.local=12"), "BatchIsMeant")
    shared = public.follow(finding.fix[0])
    assert (shared.subject.settings.batch.local, errors(shared)) == (6, [])


def test_one_device_has_nothing_to_multiply(public: Stand) -> None:
    assert of(public.pre("batch.local=24"), "BatchIsMeant") == []


def test_nodes_count_as_well(public: Stand) -> None:
    (finding,) = of(public.pre("ddp=nodes2x8", "batch.local=24"), "BatchIsMeant")
    assert "384 (24 clips per device x 8 devices x 2 nodes)" in finding.message


@pytest.fixture
def trained_on_two(public: Stand) -> Stand:
    """A run whose last launch had 2 GPUs of 12 clips each."""
    public.machine(gpus=GPUS[:4])
    public.last(step=100)
    recorded(public, ddp__devices=2, ddp__nodes=1, batch__local=12, batch__sub=6, batch__accumulate=1)
    return public


RESUME = ("init=resume", "max_steps=2000", "batch.sub=6", "batch.accumulate=1")


def test_a_resume_with_another_global_batch_is_refused(trained_on_two: Stand) -> None:
    (finding,) = of(trained_on_two.pre(*RESUME, "ddp=gpu1", "batch.local=12"), "BatchIsMeant")
    assert "a global batch of 12 (12 clips per device x 1 devices), but the run so far had 24" in finding.message
    for way_out in finding.fix:
        assert errors(trained_on_two.follow(way_out)) == []


@pytest.mark.parametrize(("ddp", "local"), [("gpus2", 12), ("gpus4", 6), ("gpu1", 24)])
def test_the_same_batch_shared_out_otherwise_goes_on(trained_on_two: Stand, ddp: str, local: int) -> None:
    pre = trained_on_two.pre(*RESUME, f"ddp={ddp}", f"batch.local={local}")
    assert errors(pre) == []


def test_another_local_batch_is_named_by_its_setting(trained_on_two: Stand) -> None:
    pre = trained_on_two.pre(*RESUME, "ddp=gpus2", "batch.local=24")
    assert of(pre, "BatchIsMeant") == []
    (finding,) = of(pre, "SettingsContinue")
    assert finding.message.startswith("batch.local=24, but the run so far had 12")
