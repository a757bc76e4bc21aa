"""Who decided each value."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amt_hydra.errors import AmtError
from amt_hydra.schema import leaves
from amt_hydra.settings import Settings

Compose = Callable[..., tuple[Any, Any]]


@pytest.fixture
def who(compose_here: Compose) -> Callable[..., dict[str, tuple[str, str]]]:
    """Compose, and return who decided and where, by key."""

    def look(*words: str) -> dict[str, tuple[str, str]]:
        return {key: (origin.who, origin.where) for key, origin in compose_here(*words)[1].origins.items()}

    return look


def experiment(here: Path, text: str, name: str = "mine") -> None:
    file = here / "conf" / f"{name}.yaml" if "/" in name else here / "conf" / "experiment" / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_where_nothing_is_said(who: Callable[..., dict[str, tuple[str, str]]]) -> None:
    found = who()
    for key in ("precision.name", "optimizer.name", "optimizer.warmup_steps", "checkpoint.save_top_k"):
        assert found[key] == ("documented", "conf/documented.yaml")
    assert found["exp_id"] == ("default", "conf/config.yaml")
    assert found["ddp.devices"] == ("default", "ddp=auto")
    maps = {key for key, leaf in leaves(Settings).items() if leaf.is_map}
    assert found.keys() == leaves(Settings).keys() - maps
    assert {by for by, _ in found.values()} == {"documented", "default"}


def test_an_override_of_a_key(who: Callable[..., dict[str, tuple[str, str]]]) -> None:
    found = who("optimizer.lr=1e-4", "extra.env.A=x", "batch={sub: 2, local: 4}")
    for key in ("optimizer.lr", "extra.env.A", "batch.sub", "batch.local"):
        assert found[key] == ("override", "command line")
    assert found["optimizer.name"][0] == "documented"


def test_the_option_of_a_group_decides_what_it_names_and_no_more(
    who: Callable[..., dict[str, tuple[str, str]]],
) -> None:
    found = who("optimizer=adafactor", "init=resume", "data_presets=楽譜")
    assert found["optimizer.name"] == ("override", "optimizer=adafactor")
    assert found["optimizer.warmup_steps"] == ("documented", "conf/documented.yaml")
    assert found["optimizer.lr"] == ("default", "conf/config.yaml")
    assert found["init.mode"] == ("override", "init=resume")
    assert found["init.overwrite"] == ("default", "conf/config.yaml")
    assert found["data_presets.name"] == ("override", "data_presets=楽譜")


def test_the_documented_default_asked_for_by_name_is_asked_for(
    who: Callable[..., dict[str, tuple[str, str]]],
) -> None:
    assert who("precision=bf16")["precision.name"] == ("override", "precision=bf16")


def test_an_experiment(who: Callable[..., dict[str, tuple[str, str]]]) -> None:
    found = who("experiment=quick", "val_interval=5")
    assert found["max_steps"] == ("experiment", "experiment=quick")
    assert found["optimizer.warmup_steps"] == ("experiment", "experiment=quick")
    assert found["val_interval"] == ("override", "command line")
    assert found["precision.name"][0] == "documented"


def test_an_experiment_that_chooses_options_and_pulls_in_others(
    here: Path, compose_here: Compose, who: Callable[..., dict[str, tuple[str, str]]]
) -> None:
    choices = "[quick, override /precision: fp32, override /data_presets: 楽譜, override /optimizer: my_adam, _self_]"
    experiment(here, f"# @package _global_\ndefaults: {choices}\nseed: 7\nmax_steps: 2e3\nexp_id: ???\n")
    experiment(here, "name: AdamW\nlr: 1e-4\n", name="optimizer/my_adam")
    found = who("experiment=mine")
    assert found["precision.name"] == ("experiment", "precision=fp32")
    assert found["data_presets.name"] == ("experiment", "data_presets=楽譜")
    assert found["optimizer.name"] == ("experiment", "optimizer=my_adam")
    assert found["optimizer.lr"] == ("experiment", "optimizer=my_adam")
    assert found["val_interval"] == ("experiment", "experiment=quick")
    assert found["exp_id"] == ("experiment", "experiment=quick")
    assert found["max_steps"] == ("experiment", "experiment=mine")
    assert found["init.mode"] == ("default", "init=scratch")
    origin = compose_here("experiment=mine")[1].origins["seed"]
    assert str(origin) == f"experiment=mine in {here / 'conf' / 'experiment' / 'mine.yaml'}"


def test_the_command_line_wins_over_an_experiment(
    here: Path, compose_here: Compose, who: Callable[..., dict[str, tuple[str, str]]]
) -> None:
    experiment(here, "# @package _global_\ndefaults: [override /precision: fp32]\nseed: 7\n")
    assert compose_here("experiment=mine", "precision=fp16", "seed=8")[0].precision.name == "16-mixed"
    found = who("experiment=mine", "precision=fp16", "seed=8")
    assert found["precision.name"] == ("override", "precision=fp16")
    assert found["seed"] == ("override", "command line")


@pytest.mark.parametrize(
    ("word", "key"),
    [("init=resume", "init.mode=resume"), ("precision=fp16", "precision.name=16-mixed")],
)
def test_c27_an_experiment_takes_back_no_option_that_was_typed(
    here: Path, compose_here: Compose, word: str, key: str
) -> None:
    experiment(here, "# @package _global_\ninit: {mode: scratch, ckpt: x.ckpt}\nprecision: {name: '32'}\n")
    with pytest.raises(AmtError, match=f"{word} was given, but experiment=mine in .* sets") as caught:
        compose_here("experiment=mine", word)
    assert caught.value.fix[0] == f"give the key too: {key}"
    name, _, value = key.partition("=")
    section, _, leaf = name.partition(".")
    assert getattr(getattr(compose_here("experiment=mine", word, key)[0], section), leaf) == value
    assert compose_here("experiment=mine", "init=scratch")[0].init.mode == "scratch"


def test_an_experiment_may_add_to_an_option_that_was_typed(here: Path, compose_here: Compose) -> None:
    experiment(here, "# @package _global_\ninit: {ckpt: x.ckpt}\n")
    assert compose_here("experiment=mine", "init=warmstart")[0].init.ckpt == here / "x.ckpt"


def test_the_environment(
    monkeypatch: pytest.MonkeyPatch, compose_here: Compose, who: Callable[..., dict[str, tuple[str, str]]], here: Path
) -> None:
    monkeypatch.setenv("AMT_OUTPUTS", "$other, ${outputs}=1")
    monkeypatch.setenv("AMT_INIT_CKPT", "/a/楽譜.ckpt")
    made, _ = compose_here("init=warmstart")
    assert (made.paths.outputs, made.init.ckpt) == (here / "$other, ${outputs}=1", Path("/a/楽譜.ckpt"))
    found = who("init=warmstart")
    assert found["paths.outputs"] == ("environment", "AMT_OUTPUTS")
    assert found["init.ckpt"] == ("environment", "AMT_INIT_CKPT")
    assert found["init.mode"] == ("override", "init=warmstart")
    assert who("init=warmstart", "init.ckpt=/b.ckpt")["init.ckpt"] == ("override", "command line")
    assert who()["init.ckpt"] == ("default", "conf/config.yaml")


def test_a_variable_that_is_empty_counts_as_unset(
    monkeypatch: pytest.MonkeyPatch, compose_here: Compose, who: Callable[..., dict[str, tuple[str, str]]], here: Path
) -> None:
    monkeypatch.setenv("AMT_OUTPUTS", "")
    monkeypatch.setenv("AMT_INIT_CKPT", "")
    made, _ = compose_here("init=warmstart")
    assert (made.paths.outputs, made.init.ckpt) == (here / "outputs", None)
    assert who()["paths.outputs"] == ("default", "conf/config.yaml")


def test_what_was_asked_for(compose_here: Compose) -> None:
    _, composed = compose_here("experiment=quick", "seed=1")
    asked = {key for key, origin in composed.origins.items() if origin.asked}
    assert asked == {"seed", "exp_id", "max_steps", "val_interval", "optimizer.warmup_steps"}
