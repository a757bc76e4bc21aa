"""The checks of settings against the repository; how a setting gets there, or not, is in test_plan.py."""

from stand import Stand, errors, of

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


def test_what_leaves_a_documented_default_is_shown_beside_it_with_the_reason(stand: Stand) -> None:
    (finding,) = of(stand.pre("precision=fp32"), "DocumentedDefaults")
    assert finding.severity == "info"
    assert "precision.name=32 instead of bf16-mixed (override" in finding.message
    assert documented()["precision.name"].reason in finding.message
    assert of(stand.pre("precision=bf16"), "DocumentedDefaults") == []


def test_what_does_not_reach_the_repository_is_not_said_twice(public: Stand) -> None:
    pre = public.pre()
    assert len(of(pre, "DefaultKept")) == 2
    assert of(pre, "DocumentedDefaults") == []
