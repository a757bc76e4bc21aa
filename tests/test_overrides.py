"""What the shell hands over reaches its setting unchanged; typos and secrets are refused before Hydra is called."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from amt_hydra.cli import main
from amt_hydra.errors import USAGE, AmtError
from amt_hydra.overrides import looks_secret, prepare
from amt_hydra.schema import flatten

Compose = Callable[..., tuple[Any, Any]]
SECRET = "sk-do-not-show-0123456789"


def refusal(compose_here: Compose, *words: str, **options: Any) -> AmtError:
    with pytest.raises(AmtError) as caught:
        compose_here(*words, **options)
    assert caught.value.code == USAGE
    return caught.value


# C13, C14, C15: values


@pytest.mark.parametrize(
    "path",
    [
        "logs/epoch=3-step=1000.ckpt",
        "楽譜/最後.ckpt",
        "a (b) [c] {d}.ckpt",
        "it's ~ & ; # $HOME.ckpt",
        "a,b.ckpt",
        "choice(a).ckpt",
        "true",
        "1e3",
        '"quoted"',
        "${oc.env:HOME}/x.ckpt",
        "trailing\\",
    ],
)
def test_c13_c14_a_path_arrives_as_the_shell_hands_it_over(compose_here: Compose, here: Path, path: str) -> None:
    assert compose_here(f"init.ckpt={path}")[0].init.ckpt == here / path


def test_c13_a_path_in_a_weird_folder(compose_here: Compose, weird_path: Path) -> None:
    assert compose_here(f"data.home={weird_path}")[0].data.home == weird_path


def test_c14_several_values_are_no_single_run(compose_here: Compose) -> None:
    error = refusal(compose_here, "max_steps=10,20")
    assert "max_steps=10,20 gives several values" in error.message
    assert "a list is written max_steps=[…]" in error.fix


@pytest.mark.parametrize("name", ["1e3", "true", "007", "1_000", "nan", "a,b", "a=b", "it's", 'say "a" "b"', " a "])
def test_c15_a_name_stays_text(compose_here: Compose, name: str) -> None:
    assert compose_here(f"exp_id={name}")[0].exp_id == name


def test_c15_1e5_steps_are_100000(compose_here: Compose) -> None:
    steps = compose_here("max_steps=1e5")[0].max_steps
    assert (steps, type(steps)) == (100000, int)


@pytest.mark.parametrize("text", ["'1e3'", '"q"', "${project}2", "日本=${project}", "${oc.env:HOME}", "'", "${"])
@pytest.mark.parametrize("key", ["optimizer.scheduler", "extra.flags.n", "extra.env.N", "checks.ignore.X"])
def test_text_keeps_its_quotes_and_refers_to_nothing(compose_here: Compose, key: str, text: str) -> None:
    if key == "extra.flags.n" and text[0] == text[-1] and len(text) > 1:
        return  # a flag's value may be a list, a map or a switch: quotes make text of what looks like one
    _, composed = compose_here(f"{key}={text}")
    assert dict(flatten(composed.tree))[key] == text


def test_a_config_file_may_refer_to_other_settings(compose_here: Compose, here: Path) -> None:
    (here / "conf" / "experiment").mkdir(parents=True)
    (here / "conf" / "experiment" / "mine.yaml").write_text("# @package _global_\nexp_id: ${project}2\n")
    assert compose_here("experiment=mine", "project=p")[0].exp_id == "p2"


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("extra.flags.n=3", "3"),
        ("extra.flags.n=1e3", "1e3"),
        ("extra.flags.n={a: 1}", {"a": 1}),
        ("extra.flags.n=", ""),
        ("extra.flags.n=[1,2]", [1, 2]),
        ("extra.flags.n=true", True),
        ("extra.flags.n=a=b", "a=b"),
        ("extra.flags.n=a,b", "a,b"),
        ("extra.flags.n=/data/楽譜", "/data/楽譜"),
        ("extra.flags.n='3'", "3"),
    ],
)
def test_further_flags_need_no_plus_and_may_be_lists_and_switches(
    compose_here: Compose, word: str, value: object
) -> None:
    assert compose_here(word)[0].extra.flags == {"n": value}


def test_further_variables_and_reasons_are_text(compose_here: Compose) -> None:
    made = compose_here("extra.env.N=1e5", "extra.env.C=a, ${b}", "checks.ignore.DiskSpace=it's purged, nightly: ok")[0]
    assert made.extra.env == {"N": "1e5", "C": "a, ${b}"}
    assert made.checks.ignore == {"DiskSpace": "it's purged, nightly: ok"}


def test_a_mapping_takes_a_new_means_without_plus(compose_here: Compose) -> None:
    assert compose_here("repo.means.logger.kind=[flag:log]")[0].repo.means == {"logger.kind": ("flag:log",)}


def test_an_entry_of_a_map_can_be_taken_away_and_a_setting_cannot(compose_here: Compose, here: Path) -> None:
    (here / "conf" / "experiment").mkdir(parents=True)
    (here / "conf" / "experiment" / "mine.yaml").write_text("# @package _global_\nextra: {env: {A: x, B: y}}\n")
    assert compose_here("experiment=mine", "~extra.env.A")[0].extra.env == {"B": "y"}


@pytest.mark.parametrize(
    ("word", "new", "drop"),
    [
        ("~seed", ("seed=null",), ()),
        ("~exp_id", (), ("exp_id",)),
        ("~precision", ("precision=null",), ()),
        ("~experiment", ("experiment=null",), ()),
        ("~init", (), ("init",)),
        ("~debug", (), ("debug",)),
    ],
)
def test_a_setting_or_a_group_is_left_to_the_repository_by_null(
    compose_here: Compose, word: str, new: tuple[str, ...], drop: tuple[str, ...]
) -> None:
    error = refusal(compose_here, word)
    assert f"{word} cannot be taken away" in error.message
    assert (error.new, error.drop) == (new, drop)
    if new:
        compose_here(*new)  # leads where it says


@pytest.mark.parametrize("word", ["exp_id=q", "max_steps=5", "init.mode=resume", "optimizer.lr=${seed}"])
def test_a_plus_before_a_setting(compose_here: Compose, word: str) -> None:
    error = refusal(compose_here, f"+{word}")
    assert error.message == f"{word.partition('=')[0]} is a setting already: leave the + out"
    assert error.new == (word,)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
PARTS = ("${", "}", "oc.env:HOME", "\\", "'", '"', "=", ",", "\n", " ", "[", "#", "日", "~", "a")
NASTY = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)
EXACT = ["\\${oc.env:HOME}", "\\\\${oc.env:HOME}'", "a\\", "'${x}'\\'"]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.one_of(TEXT, NASTY), min_size=4, max_size=4))
@example(EXACT)
def test_any_text_arrives_exactly(compose_here: Compose, here: Path, texts: list[str]) -> None:
    paths = [f"p{text}" for text in texts]  # "" and "null" mean no path, "~" is the home folder
    keys = ("init.ckpt", "data.home", "repo.runs", "repo.python")
    words = [f"{key}={path}" for key, path in zip(keys, paths, strict=True)]
    words += [f"extra.env.{name}={text}" for name, text in zip("ABCD", texts, strict=True)]
    words += [f"optimizer.scheduler=s{texts[0]}", f"checks.ignore.X={texts[1]}"]
    made = compose_here(*words)[0]
    assert [made.init.ckpt, made.data.home, made.repo.runs, made.repo.python] == [here / path for path in paths]
    assert list(made.extra.env.values()) == texts
    assert (made.optimizer.scheduler, made.checks.ignore["X"]) == (f"s{texts[0]}", texts[1])


# C18: typos


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("optimizer.lrr=1", "optimizer.lr"),
        ("optimzer.lr=1", "optimizer.lr"),
        ("max_stesp=5", "max_steps"),
        ("trainer.max_steps=5", "max_steps"),
        ("precison=fp32", "precision"),
        ("chekpoint.monitor=x", "checkpoint.monitor"),
    ],
)
@pytest.mark.parametrize("plus", ["", "+", "++"])
def test_c18_a_typo_is_an_error_with_the_nearest_name(compose_here: Compose, plus: str, word: str, meant: str) -> None:
    error = refusal(compose_here, plus + word)
    assert error.message == f"{word.partition('=')[0]} is no setting"
    assert error.fix == (f"did you mean `{meant}`?",)


def test_c18_a_name_like_nothing_else_is_told_where_flags_go(compose_here: Compose) -> None:
    assert any("extra.flags.f_min=…" in way for way in refusal(compose_here, "audio.f_min=300").fix)


@pytest.mark.parametrize("word", ["", "=", "=5", "+=5", "train.py", "--x"])
def test_a_word_that_is_no_override(word: str) -> None:
    with pytest.raises(AmtError, match="neither an override nor a verb"):
        prepare([word], [])


def test_a_verb_that_comes_too_late(compose_here: Compose) -> None:
    assert "did you mean the verb `plan`? It comes first" in refusal(compose_here, "seed=1", "plan").fix


def test_a_launcher_is_for_sweeps(compose_here: Compose) -> None:
    error = refusal(compose_here, "hydra/launcher=slurm")
    assert error.message == "hydra/launcher is for sweeps, and this is a single run"
    assert error.fix == ("a sweep is given with -m",)


@pytest.mark.parametrize("word", ["hydra.run.dir=x", "hydra/job_logging=none", "+hydra.verbose=true"])
def test_hydras_own_settings_have_no_effect_and_say_so(compose_here: Compose, word: str) -> None:
    assert "has no effect here" in refusal(compose_here, word).message


# C19: secrets


@pytest.mark.parametrize(
    "word",
    [
        f"wandb.api_key={SECRET}",
        f"+wandb.api_key={SECRET}",
        f"extra.env.WANDB_API_KEY={SECRET}",
        f"extra.env.PGPASSWORD={SECRET}",
        f"extra.env.HF_TOKEN={SECRET}",
        f"extra.flags.apiKey={SECRET}",
        f"extra.env={{WANDB_API_KEY: {SECRET}}}",
        f"extra.env={{A: b, 'HF_TOKEN': {SECRET}}}",
        f"extra={{env: {{my_secret: {SECRET}}}}}",
        f"extra.flags.logins=[{{password: {SECRET}}}]",
        f"key={SECRET}",
        f"extra.env.URL=https://user:{SECRET}@host/x",
        f"extra.env.URL=postgres://:{SECRET}@host",
        f"extra.flags.urls=[a,s3://u:{SECRET}@host]",
        f"repo.path=ssh://u:{SECRET}@host",
        f"exp_id=x://u:{SECRET}@y",
    ],
)
def test_c19_a_secret_is_refused_and_never_shown(here: Path, capsys: pytest.CaptureFixture[str], word: str) -> None:
    for json_option in ([], ["--json"]):
        assert main(["plan", *json_option, word]) == USAGE
        shown = capsys.readouterr()
        assert "looks like a secret" in shown.out + shown.err
        assert SECRET not in shown.out + shown.err
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        "extra: {env: {WANDB_API_KEY: %s}}",
        "extra: {flags: {db_password: %s}}",
        "extra: {flags: {logins: [{password: %s}]}}",
        "extra: {env: {URL: 'https://user:%s@host/'}}",
        "extra: {flags: {urls: ['https://user:%s@host/']}}",
    ],
)
def test_c19_a_secret_in_a_config_file_is_refused_and_never_shown(
    here: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    (here / "conf" / "experiment").mkdir(parents=True)
    (here / "conf" / "experiment" / "mine.yaml").write_text("# @package _global_\n" + content % SECRET)
    assert main(["plan", "--json", "experiment=mine"]) == USAGE
    shown = capsys.readouterr()
    assert "looks like a secret" in json.loads(shown.out)["error"]["message"]
    assert SECRET not in shown.out + shown.err


@pytest.mark.parametrize(
    "name",
    [
        "num_key_value_heads",
        "max_tokens",
        "hotkey",
        "monkey",
        "bypass",
        "key_signature",
        "tokenizer",
        "passes",
        "pass_rate",
    ],
)
def test_names_that_only_resemble_a_secret_pass(compose_here: Compose, name: str) -> None:
    assert not looks_secret(name)
    assert compose_here(f"extra.flags.{name}=3")[0].extra.flags == {name: "3"}


@pytest.mark.parametrize(
    "url", ["https://host:8080/a@b", "git@github.com:a/b.git", "ssh://git@host/x", "http://host/a:b@c", "a: //b@c"]
)
def test_a_url_without_a_password_passes(compose_here: Compose, url: str) -> None:
    assert compose_here(f"extra.env.URL={url}")[0].extra.env == {"URL": url}


def test_the_folder_of_the_shell_is_no_secret() -> None:
    assert [name for name in ("PWD", "OLDPWD", "DB_PWD", "db.pwd") if looks_secret(name)] == ["DB_PWD", "db.pwd"]


def test_a_reason_may_hold_a_colon(compose_here: Compose) -> None:
    assert compose_here("checks.ignore.WandbReady=token: comes later")[0].checks.ignore


def test_null_leaves_a_further_flag_to_the_repository(compose_here: Compose) -> None:
    extra = compose_here("extra.flags.n=null", "extra.flags.m=1", "extra.config.a.b=null")[0].extra
    assert (extra.flags, extra.config) == ({"m": "1"}, {})


@pytest.mark.parametrize("word", ["extra.flags.=3", "optimizer..lr=1", ".seed=1"])
def test_a_name_that_is_missing_beside_a_dot(word: str) -> None:
    with pytest.raises(AmtError, match="a name is missing beside a dot"):
        prepare([word], [])


@pytest.mark.parametrize("word", ["slurm.options.x y=1", "extra.env.日本=1", "extra.flags.a:b=1"])
def test_a_name_that_hydra_cannot_read_is_no_name(word: str) -> None:
    with pytest.raises(AmtError, match="is no key: names in it have letters, digits, _ and -"):
        prepare([word], [])
