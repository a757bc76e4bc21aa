"""The checks of settings against the repository; how a setting gets there, or not, is in test_plan.py."""

from typing import get_args

import pytest
from lightning.fabric.plugins.precision import precision
from repos import family, home
from stand import Stand, errors, of, option, way

from amt_hydra.checks.setting_checks import PRECISIONS
from amt_hydra.conf_path import shipped
from amt_hydra.documented import documented

pytest_plugins = ["desks"]


def test_settings_that_reach_the_repository_have_nothing_to_report(stand: Stand) -> None:
    pre = stand.pre("max_steps=9999", "optimizer.lr=1e-3", "extra.flags.pitch_shift_range=[0,0]")
    for check in ("SettingReaches", "DefaultKept", "ValueFits", "ExtraFlagExists", "FeatureImplemented"):
        assert of(pre, check) == []


def test_a_preset_that_is_not_there_gets_the_nearest_name(stand: Stand) -> None:
    (finding,) = of(stand.pre("data_presets=guitarsett"), "PresetExists")
    assert str(stand.repository / "src/data_presets.py") in finding.message
    assert finding.fix == ("did you mean data_presets=guitarset?",)


def test_a_preset_that_is_near_nothing_gets_the_list(stand: Stand) -> None:
    (finding,) = of(stand.pre("data_presets=xyz"), "PresetExists")
    assert finding.fix == ("there are: guitarset, musicnet, synthetic",)


def test_a_preset_that_is_there(stand: Stand) -> None:
    assert of(stand.pre("data_presets=musicnet"), "PresetExists") == []
    assert of(stand.pre(), "PresetExists") == []


def test_presets_that_the_source_computes_may_be_vouched_for(stand: Stand) -> None:
    """Names that only come to be when it runs cannot be read; whoever knows better says why."""
    presets = stand.repository / "src" / "data_presets.py"
    presets.write_text(presets.read_text() + "data_preset_single_cfg.update({f'a{i}': {} for i in range(3)})\n")
    assert errors(stand.pre("data_presets=a1", "checks.ignore.PresetExists=computed in data_presets.py")) == []


def test_a_repository_without_presets_says_so(stand: Stand) -> None:
    (stand.repository / "src" / "data_presets.py").unlink()
    (finding,) = of(stand.pre("data_presets=xyz"), "PresetExists")
    assert "it has no data_presets.py" in finding.message
    assert finding.fix[0].startswith("there is no data_presets.py; checks.ignore.PresetExists lets the name pass")
    assert errors(stand.follow(finding.fix[0])) == []


def test_what_leaves_a_documented_default_is_shown_beside_it_with_the_reason(stand: Stand) -> None:
    (finding,) = of(stand.pre("precision=fp32"), "DocumentedDefaults")
    assert finding.severity == "info"
    assert "precision.name=32 instead of bf16-mixed (override" in finding.message
    assert documented()["precision.name"].reason in finding.message
    assert of(stand.pre("precision=bf16"), "DocumentedDefaults") == []


def test_what_does_not_reach_the_repository_is_not_said_twice(plain: Stand) -> None:
    pre = plain.pre()
    assert len(of(pre, "DefaultKept")) == 2
    assert of(pre, "DocumentedDefaults") == []


# Values that train.py would only refuse after the start


LIGHTNINGS = "transformer-engine transformer-engine-float16 16-true 16-mixed bf16-true bf16-mixed 32-true 64-true"


@pytest.mark.parametrize("name", [*LIGHTNINGS.split(), "64", "32", "16", "bf16"])
def test_a_precision_of_lightnings_is_known(stand: Stand, name: str) -> None:
    assert of(stand.pre(f"precision.name={name}"), "PrecisionKnown") == []


def test_the_table_of_precisions_is_lightnings_own() -> None:
    own = precision._PRECISION_INPUT
    literals = [get_args(part) for part in get_args(own)]
    assert {str(name) for part in literals for name in part} == set(PRECISIONS)


@pytest.mark.parametrize("name", ["foo", "fp16", "BF16-mixed", "8"])
def test_another_precision_is_refused_with_what_is_valid(stand: Stand, name: str) -> None:
    pre = stand.pre(f"precision.name={name}")
    (finding,) = of(pre, "PrecisionKnown")
    assert finding in pre.stopped
    assert finding.message.startswith(f"precision.name={name}: ")
    assert all(valid in finding.message for valid in LIGHTNINGS.split())
    assert [stand.follow(fix).subject.settings.precision.name for fix in finding.fix] == [
        "bf16-mixed",
        "16-mixed",
        "32",
    ]
    assert all(errors(stand.follow(fix)) == [] for fix in finding.fix)
    assert errors(stand.pre(f"precision.name={name}", "checks.ignore.PrecisionKnown=a plugin takes it")) == []


def test_a_repository_that_lists_its_own_precisions_is_judged_by_those(stand: Stand) -> None:
    flag = '"--precision", type=str, default="bf16-mixed"'
    home(stand.repository, changes={flag: f'{flag}, choices=["bf16-mixed", "half"]'})
    assert errors(stand.pre("precision.name=half")) == []
    assert [f.id for f in stand.pre("precision.name=16").stopped] == ["ValueFits"]


@pytest.mark.parametrize(
    ("word", "key", "valid", "given"),
    [
        ("optimizer=cpuadam", "optimizer.name=CPUAdam", "adamw, adamwscale, adafactor", "adamw"),
        ("optimizer=dadaptadam", "optimizer.name=DAdaptAdam", "adamw, adamwscale, adafactor", None),
        ("optimizer.name=SGD", "optimizer.name=SGD", "adamw, adamwscale, adafactor", None),
        ("optimizer.scheduler=foo", "optimizer.scheduler=foo", "cosine, constant", None),
    ],
)
def test_what_the_bundled_repository_has_not_is_refused_with_what_it_has(
    bundled: Stand, word: str, key: str, valid: str, given: str | None
) -> None:
    pre = bundled.pre(word)
    (finding,) = of(pre, "ValueFits")
    assert finding in pre.stopped
    assert finding.message.startswith(f"{key}: ")
    assert finding.message.endswith(f"takes one of {valid}")
    followed = bundled.follow(finding.fix[0])
    assert errors(followed) == []
    assert followed.subject.decision(key.partition("=")[0]).value == given


@pytest.mark.parametrize("name", ["AdamW", "ADAFACTOR", "adamwscale"])
def test_the_bundled_repositorys_names_are_compared_in_lower_case(bundled: Stand, name: str) -> None:
    pre = bundled.pre(f"optimizer.name={name}")
    assert errors(pre) == []
    assert option(pre.subject.plan.argv, "--optimizer") == name.lower()


def test_a_value_of_another_type_may_be_left_to_the_repository(stand: Stand) -> None:
    (finding,) = of(stand.pre("extra.flags.pitch_shift_range=[1]"), "ValueFits")
    assert of(stand.follow(finding.fix[0]), "ValueFits") == []


def test_a_data_folder_that_was_asked_for_has_to_be_there(bundled: Stand) -> None:
    (finding,) = of(bundled.pre("data.home=/nope"), "DataHomeExists")
    assert finding.severity == "error"
    assert finding.message.startswith("data.home=/nope: ")
    assert "data.home=<folder>" in finding.fix[0]
    here = bundled.folder / "recordings"
    here.mkdir()
    assert of(bundled.pre(f"data.home={here}", "data_presets=folder"), "DataHomeExists") == []


def test_the_bundled_preset_of_recordings_needs_its_folder_and_no_other_preset_does(bundled: Stand) -> None:
    (finding,) = of(bundled.pre("data_presets=folder"), "DataHomeExists")
    assert str(bundled.repository / "data") in finding.message  # config.py: "../data", from src
    assert of(bundled.pre(), "DataHomeExists") == []


def test_one_flag_in_two_spellings_is_refused(stand: Stand) -> None:
    words = ("extra.flags.pitch_shift_range=[0,0]", "extra.flags.pitch-shift-range=[-2,2]")
    found = [f for f in stand.pre(*words).stopped if "is the same flag" in f.message]
    assert [f.id for f in found] == ["ExtraFlagExists"]
    assert "extra.flags.pitch-shift-range" in found[0].message
    assert "extra.flags.pitch_shift_range is the same flag" in found[0].message


def test_values_of_config_py_need_the_bridge(public: Stand) -> None:
    word = "extra.config.shared_cfg.TRAINER.gradient_clip_val=0.5"
    assert errors(public.pre(word)) == []
    pre = public.pre(word, "repo.bridge=false")
    assert any("gradient_clip_val" in text and "repo.bridge is false" in text for text in errors(pre))
    assert pre.subject.plan.bridge is None


def test_a_setting_that_may_not_be_null_is_left_out_instead(stand: Stand) -> None:
    home(stand.repository, changes={'"exp_id"': '"named"', "args.exp_id": "args.named"})
    (finding,) = of(stand.pre("exp_id=mine"), "SettingReaches")
    assert "exp_id=" not in finding.fix[0]
    assert of(stand.follow(finding.fix[0]), "SettingReaches") == []


def test_the_means_that_were_tried_are_named_with_their_file(stand: Stand) -> None:
    text = (shipped() / "repo" / "amt_ai.yaml").read_text()
    file = stand.folder / "conf" / "repo" / "slip.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text.replace("kind: amt_ai", "kind: slip").replace("[flag:max_steps", "[flag:max_stepz"))
    (finding,) = of(stand.pre("repo=slip", "max_steps=5"), "SettingReaches")
    assert f"({file} names flag:max_stepz)" in finding.message


def test_extra_config_cannot_speak_for_a_setting_that_a_flag_carries(public: Stand) -> None:
    """config.py would say one thing, the flag another, and the plan show the flag's."""
    flag = 'parser.add_argument("--save-top-k", type=int, default=3)\n'
    parsed = "args = parser.parse_args()\n"
    family(public.repository, changes={parsed: f"{flag}{parsed}print(args.save_top_k)\n"})
    (finding,) = of(public.pre("extra.config.shared_cfg.CHECKPOINT.save_top_k=2"), "ExtraFlagExists")
    assert finding.fix == ("use checkpoint.save_top_k=…",)


def test_extra_config_of_a_dictionary_is_told_to_name_a_key(public: Stand) -> None:
    (finding,) = of(public.pre("extra.config.shared_cfg.CHECKPOINT=3"), "ExtraFlagExists")
    assert "it is a dictionary in " in finding.message
    assert finding.fix[0].startswith("name one of its keys: extra.config.shared_cfg.CHECKPOINT.")


def test_w_and_b_is_what_a_repository_with_its_logger_does_by_itself(plain: Stand) -> None:
    assert errors(plain.pre("logger=wandb")) == []
    assert [f.id for f in plain.pre("logger=csv").stopped] == ["SettingReaches"]


def test_what_only_the_bridge_brings_has_it_as_a_way_out(plain: Stand) -> None:
    (finding,) = of(plain.pre("optimizer.warmup_steps=7"), "SettingReaches")
    assert errors(plain.follow(way(finding.fix, "by the bridge"))) == []
