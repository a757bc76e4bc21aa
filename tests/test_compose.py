"""Composing: every option of every group, the user's own configs beside the shipped ones, and every fault in them."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amt_hydra.cli import main
from amt_hydra.conf_path import search_dirs, shipped
from amt_hydra.errors import USAGE, AmtError
from amt_hydra.schema import flatten, leaves
from amt_hydra.settings import Settings

Compose = Callable[..., tuple[Any, Any]]
OPTIONS = sorted(f"{p.parent.name}={p.stem}" for p in shipped().glob("*/*.yaml"))
GLOBAL = "# @package _global_\n"
# For each key that some group sets, another value that it may have.
OTHER = {
    "data_presets.name": "other",
    "ddp.accelerator": "cpu",
    "ddp.devices": 3,
    "ddp.nodes": 3,
    "ddp.strategy": "other",
    "ddp.sync_batchnorm": False,
    "debug.detect_anomaly": True,
    "debug.grad_finite": True,
    "features.deepspeed_offload": True,
    "features.dynamic_dataset_weighting": True,
    "features.rl": True,
    "init.ckpt": "/other.ckpt",
    "init.mode": "resume",
    "logger.kind": "csv",
    "model.attention_to_channel": False,
    "model.audio_codec": "other",
    "model.decoder_type": "other",
    "model.encoder_position_encoding_type": "other",
    "model.encoder_type": "other",
    "model.event_length": 11,
    "model.ff_layer_type": "other",
    "model.ff_widening_factor": 11,
    "model.hidden_act": "other",
    "model.hop_length": 11,
    "model.input_frames": 11,
    "model.moe_num_experts": 11,
    "model.moe_topk": 11,
    "model.n_mels": 11,
    "model.num_latents": 11,
    "model.rope_partial_pe": False,
    "model.sca_use_query_residual": True,
    "model.task": "other",
    "optimizer.name": "Other",
    "optimizer.warmup_steps": 11,
    "precision.name": "other",
}


@pytest.fixture
def mine(here: Path) -> Callable[..., None]:
    """Write a config of one's own into ./conf."""

    def write(name: str, text: str, folder: Path = here / "conf") -> None:
        file = folder / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    return write


def refusal(compose_here: Compose, *words: str, **options: Any) -> AmtError:
    with pytest.raises(AmtError) as caught:
        compose_here(*words, **options)
    assert caught.value.code == USAGE
    return caught.value


def value(made: Settings, key: str) -> object:
    found: Any = made
    for part in key.split("."):
        found = getattr(found, part)
    return str(found) if isinstance(found, Path) else found


# Options


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_gives_settings_and_any_key_of_its_group_may_be_overridden(
    compose_here: Compose, option: str
) -> None:
    group = option.partition("=")[0]
    compose_here(option)
    others = {k: v for k, v in OTHER.items() if k.startswith(f"{group}.")}
    made, _ = compose_here(option, *(f"{k}={json.dumps(v).strip(chr(34))}" for k, v in others.items()))
    assert {k: value(made, k) for k in others} == others


def test_the_table_of_other_values_covers_every_key_that_an_option_sets() -> None:
    import yaml

    keys = set()
    for file in shipped().glob("*/*.yaml"):
        if file.parent.name not in ("repo", "experiment"):
            keys |= {k for k, _ in flatten(yaml.safe_load(file.read_text()), f"{file.parent.name}.")}
    assert keys <= OTHER.keys() <= leaves(Settings).keys()


@pytest.mark.parametrize("option", ["experiment=null", "data_presets=null", "precision=null", "+experiment=quick"])
def test_a_choice_may_be_taken_back_and_a_plus_does_no_harm(compose_here: Compose, option: str) -> None:
    assert compose_here(option)[0].init.mode == "scratch"


@pytest.mark.parametrize(
    "name",
    ["maestro", "1", "true", "1e3", "x.yaml", "a/b", "a,b", "a=b", "a b", "it's", "楽譜", "$x ${oc.env:HOME}", "~x"],
)
def test_any_name_is_a_preset(compose_here: Compose, name: str) -> None:
    assert compose_here(f"data_presets={name}")[0].data_presets.name == name


# Faults


def test_an_option_that_is_not_there_gets_the_nearest(compose_here: Compose) -> None:
    error = refusal(compose_here, "precision=bf61")
    assert error.message == "precision=bf61: there is no such option"
    assert error.fix == ("did you mean `precision=bf16`?",)


def test_an_option_like_no_other_gets_the_list(compose_here: Compose) -> None:
    assert refusal(compose_here, "precision=null,x").fix == ("there are: bf16, fp16, fp32",)


def test_several_options_would_be_a_sweep(compose_here: Compose) -> None:
    error = refusal(compose_here, "precision=bf16,fp16")
    assert error.message.startswith("precision=bf16,fp16 gives several values, which would be a sweep")
    assert error.fix == ("give one of bf16, fp16", "a sweep is given with -m")


def test_an_option_that_must_be_given(compose_here: Compose) -> None:
    assert "init.mode must be given" in refusal(compose_here, "init=null").message


def test_every_wrong_value_is_named_in_one_go(compose_here: Compose) -> None:
    message = refusal(compose_here, "max_steps=1.5", "exp_id=../x", "init.overwrite=yes", "optimizer.lr=0").message
    assert [line.partition("=")[0] for line in message.splitlines()] == [
        "exp_id",
        "max_steps",
        "init.overwrite",
        "optimizer.lr",
    ]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("seed: ${nope}", "seed"),
        ("optimizer: {lr: '${oc.env:NOT_SET_ANYWHERE}'}", "optimizer.lr"),
        ("exp_id: ${project}\nproject: ${exp_id}", "exp_id"),
        ("seed: one", "seed"),
        ("exp_id: 1e3", "exp_id"),
        ("optimzer: {lr: 1}", "optimzer"),
        ("optimizer.lr: 1", "optimizer.lr"),
        ("optimizer: null", "optimizer"),
        ("extra: {env: {A: yes}}", "extra.env"),
        ("repo: {means: {optimizer: {rate: [flag:lr]}}}", "repo.means.optimizer.rate"),
    ],
)
def test_a_fault_in_a_file_is_named_by_key_and_file(
    compose_here: Compose, here: Path, mine: Callable[..., None], text: str, key: str
) -> None:
    mine("experiment/mine", GLOBAL + text)
    message = refusal(compose_here, "experiment=mine").message
    assert message.startswith(key)
    assert str(here / "conf" / "experiment" / "mine.yaml") in message


@pytest.mark.parametrize(("text", "line"), [("a:\n\t- b", 3), ("seed: 1\nseed: 2", 3), ("seed: [1", 2)])
def test_a_file_that_is_no_yaml_is_refused_by_its_line(
    compose_here: Compose, here: Path, mine: Callable[..., None], text: str, line: int
) -> None:
    mine("experiment/mine", GLOBAL + text)
    file = here / "conf" / "experiment" / "mine.yaml"
    error = refusal(compose_here, "experiment=mine")
    assert error.message.startswith(f"{file}:{line}: ")
    assert "\n" not in error.message
    assert error.fix == (f"mend {file}",)


def test_a_reference_that_does_not_parse(compose_here: Compose, mine: Callable[..., None]) -> None:
    mine("experiment/mine", f"{GLOBAL}exp_id: ${{a")
    error = refusal(compose_here, "experiment=mine")
    assert error.message.startswith("exp_id: ")
    assert error.fix == ("given: experiment=mine",)


def test_a_misspelt_group_in_a_defaults_list(compose_here: Compose, here: Path, mine: Callable[..., None]) -> None:
    mine("experiment/mine", GLOBAL + "defaults:\n  - override /precisionn: fp32\n")
    error = refusal(compose_here, "experiment=mine")
    file = here / "conf" / "experiment" / "mine.yaml"
    assert error.message == f"{file}: `override /precisionn`: there is no such group"
    assert error.fix == ("did you mean `override /precision`?",)


@pytest.mark.parametrize(
    "text", ["- 1", "defaults: x", "defaults:\n  - /nope: y", "defaults:\n  - override /precison: fp32"]
)
def test_a_file_that_is_no_config_is_refused_by_name(
    compose_here: Compose, mine: Callable[..., None], text: str
) -> None:
    mine("experiment/mine", GLOBAL + text)
    assert "experiment/mine" in refusal(compose_here, "experiment=mine").message


def test_a_file_in_another_encoding_is_refused(compose_here: Compose, here: Path, mine: Callable[..., None]) -> None:
    mine("experiment/mine", "")
    (here / "conf" / "experiment" / "mine.yaml").write_bytes(GLOBAL.encode() + b"exp_id: caf\xe9")
    error = refusal(compose_here, "experiment=mine")
    assert error.message.startswith(f"{here / 'conf' / 'experiment' / 'mine.yaml'} is not UTF-8")


def test_an_experiment_without_its_first_line_is_told_so(compose_here: Compose, mine: Callable[..., None]) -> None:
    mine("experiment/mine", "exp_id: mine\n")
    assert refusal(compose_here, "experiment=mine").fix == ("begin the file with `# @package _global_`",)


# The user's own configs


def test_an_experiment_that_pulls_in_others_and_overrides_groups(
    compose_here: Compose, mine: Callable[..., None]
) -> None:
    mine("precision/tf32", "# TensorFloat\nname: tf32\n")
    mine(
        "experiment/mine",
        GLOBAL + "defaults: [quick, override /precision: tf32, override /data_presets: 楽譜, _self_]\nseed: 7\n",
    )
    made, _ = compose_here("experiment=mine")
    assert (made.precision.name, made.data_presets.name) == ("tf32", "楽譜")
    assert (made.seed, made.exp_id, made.max_steps) == (7, "quick", 40)


def test_an_experiment_with_an_odd_name(compose_here: Compose, mine: Callable[..., None]) -> None:
    mine("experiment/it's 楽譜, 2=2", GLOBAL + "exp_id: odd\n")
    assert compose_here("experiment=it's 楽譜, 2=2")[0].exp_id == "odd"


@pytest.mark.parametrize("way", ["--config-dir", "AMT_CONF", "./conf"])
def test_names_can_be_added_but_shipped_ones_not_shadowed(
    here: Path, mine: Callable[..., None], monkeypatch: pytest.MonkeyPatch, compose_here: Compose, way: str
) -> None:
    folder = here / ("conf" if way == "./conf" else "my configs, 設定=1")
    mine("precision/bf16", "name: shadow\n", folder)
    mine("precision/tf32", "name: tf32\n", folder)
    mine("config", "exp_id: shadow\n", folder)
    if way == "AMT_CONF":
        monkeypatch.setenv("AMT_CONF", str(folder))
    named = {"config_dir": folder} if way == "--config-dir" else {}
    assert compose_here("precision=tf32", **named)[0].precision.name == "tf32"
    made, _ = compose_here("precision=bf16", **named)
    assert (made.precision.name, made.exp_id) == ("bf16-mixed", "base")


def test_the_folders_count_in_this_order(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two", "conf"):
        (here / name).mkdir()
    monkeypatch.setenv("AMT_CONF", "~/two")
    assert search_dirs("one", os.environ, here) == [shipped(), here / "one", here / "two", here / "conf"]
    assert search_dirs(str(shipped()), {}, here / "one") == [shipped()]


@pytest.mark.parametrize("named", ["nowhere", "~nobody-is-called-so/conf"])
def test_a_folder_that_is_named_and_not_there(here: Path, named: str) -> None:
    with pytest.raises(AmtError, match="which is no folder"):
        search_dirs(named, {}, here)
    with pytest.raises(AmtError, match="AMT_CONF is"):
        search_dirs(None, {"AMT_CONF": named}, here)


# Nothing is written


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() if p.is_file() else b"" for p in sorted(folder.rglob("*"))}


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "repo=reference"],
        ["plan", "repo=reference", "nope=1"],
        ["--cfg", "job", "experiment=mine"],
        ["--cfg", "job", "--resolve", "data_presets=日 本"],
        ["--info", "defaults", "seed=1"],
        ["--package", "optimizer"],
        ["--resolve"],
        ["--help"],
        ["plan", "-m", "repo=reference", "seed=1,2"],
        ["-m", "repo=reference", "seed=1,1"],
    ],
    ids=" ".join,
)
def test_looking_leaves_the_tree_byte_for_byte_as_it_was(
    here: Path, mine: Callable[..., None], capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    mine("experiment/mine", GLOBAL + "seed: 7\n")
    before = tree(here)
    main(words)
    assert tree(here) == before


# Hydra's own options


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def test_cfg_job_shows_the_composed_config(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import yaml

    text = shown(capsys, "--cfg", "job", "exp_id=1e3", "experiment=quick")
    config = yaml.safe_load(text)
    assert (config["exp_id"], config["max_steps"], config["optimizer"]["warmup_steps"]) == ("1e3", 40, 10)
    assert config["precision"]["name"] == "bf16-mixed"
    assert "${documented:checkpoint.monitor}" in text


def test_resolve_shows_values_instead_of_references(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "${" not in shown(capsys, "--cfg", "job", "--resolve")


def test_one_package_may_be_shown(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "-c", "job", "-p", "data_presets", "data_presets=x").endswith("name: x\n")


def test_info_and_hydra_help(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "optimizer/adafactor" in shown(capsys, "--info", "defaults", "optimizer=adafactor")
    assert "Hydra" in shown(capsys, "--hydra-help")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--cfg", "job", "precision=bf61"], "did you mean `precision=bf16`?"),
        (["--cfg", "job", "--resolve", "seed=${nope}"], "seed (command line) cannot be resolved"),
        (["--cfg", "jobs"], "valid are job, hydra, all"),
        (["--cfg"], "--cfg needs a value"),
        (["--info", "defualts"], "neither an override nor a verb"),
        (["--cfg", "job", "--info"], "give one of"),
        (["--package", "optimizer"], "give one of"),
        (["-sc"], "install"),
        (["-sc", "query=cmd"], "bash"),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)
def test_wrong_use_of_hydras_options(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert main(words) == USAGE
    assert says in capsys.readouterr().err


REPOSITORY = {
    "src/train.py": "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('exp_id')\n",
    "src/config.py": "shared_cfg = {}\n",
    "src/data_presets.py": "data_preset_single_cfg = {'my_piano': {}, 'my_violin': {}}\n",
}


@pytest.mark.parametrize(
    "line", ["amt-hydra plan --json data_presets=", "python -m amt_hydra init.ckpt=a=b data_presets="]
)
def test_completion_lists_the_presets_of_the_repository(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    for name, text in REPOSITORY.items():
        file = here / "other repo" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setenv("AMT_REPO", str(here / "other repo"))
    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.setenv("COMP_POINT", str(len(line)))
    options = shown(capsys, "--shell-completion", "query=bash").split()
    assert {"data_presets=my_piano", "data_presets=my_violin", "data_presets=folder"} <= set(options)


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("amt-hydra precision=", "precision=bf16 precision=fp16 precision=fp32"),
        ("amt-hydra optimizer.warm", "optimizer.warmup_steps="),
        ("amt-hydra plan max", "max_steps="),
    ],
)
def test_completion_of_groups_and_settings(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str, offers: str
) -> None:
    monkeypatch.setenv("COMP_LINE", line)
    assert shown(capsys, "-sc", "query=bash").strip() == offers


def test_completion_with_a_repository_that_is_gone_is_silent(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMT_REPO", str(here / "gone"))
    monkeypatch.setenv("COMP_LINE", "amt-hydra data_presets=")
    assert main(["-sc", "query=bash"]) == 0
    assert capsys.readouterr().err == ""


def test_completion_is_installed_for_the_command(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "-sc", "install=bash").rstrip().endswith(" amt-hydra")


def test_a_mapping_without_a_name_of_its_own_is_told_to_give_one(compose_here: Compose, tmp_path: Path) -> None:
    folder = tmp_path / "configs"
    (folder / "repo").mkdir(parents=True)
    (folder / "repo" / "bare.yaml").write_text("means: {}\n")
    error = refusal(compose_here, "repo=bare", config_dir=folder)
    assert "repo.kind must be given" in error.message
    assert "`kind: NAME`" in error.fix[0]


def test_a_variable_that_does_not_fit_is_told_to_be_unset(
    compose_here: Compose, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "garbage")
    error = refusal(compose_here)
    assert error.message.startswith("logger.mode=garbage must be online, offline, ")
    assert error.fix == ("unset WANDB_MODE",)
