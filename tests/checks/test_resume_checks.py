"""A run against the one that it goes on with: its last launch's record, and real checkpoints."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from repos import family, home, lightning
from stand import Stand, errors, of, recorded, way

pytest_plugins = ["desks"]

RESUME = ("init=resume", "max_steps=1000")


def saved(path: Path, step: int = 10, **parts: Any) -> Path:
    """A real checkpoint, with parts of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({**lightning(step, 0.5), "hyper_parameters": {}, **parts}, path)
    return path


def last(stand: Stand, step: int = 10, **parts: Any) -> Path:
    return saved(stand.experiment() / "last.ckpt", step, **parts)


# SettingsContinue


def test_a_setting_left_out_on_a_resume_is_refused_with_the_value_that_the_run_had(stand: Stand) -> None:
    stand.last(step=10)
    recorded(stand, optimizer__warmup_steps=50, precision__name="bf16-mixed")
    pre = stand.pre(*RESUME)
    (finding,) = of(pre, "SettingsContinue")
    assert finding in pre.stopped
    assert finding.message == (
        "optimizer.warmup_steps=500, but the run so far had 50 (the last launch's record); left out now, it falls back "
        "to 500"
    )
    after = stand.follow(way(finding.fix, "as before"))
    assert of(after, "SettingsContinue") == []
    assert after.subject.settings.optimizer.warmup_steps == 50


def test_a_setting_that_was_asked_for_is_refused_too_and_each_way_out_leads_on(stand: Stand) -> None:
    stand.last(step=10)
    recorded(stand, precision__name="bf16-mixed", data_presets__name="musicnet")
    (finding,) = of(stand.pre(*RESUME, "precision=fp32", "data_presets=guitarset"), "SettingsContinue")
    assert "precision.name=32, but the run so far had bf16-mixed" in finding.message
    assert "data_presets.name=guitarset, but the run so far had musicnet" in finding.message
    assert "falls back" not in finding.message
    before = stand.follow(way(finding.fix, "as before")).subject.settings
    assert (before.precision.name, before.data_presets.name) == ("bf16-mixed", "musicnet")
    fresh = stand.follow(way(finding.fix, "warm-start"))
    assert (errors(fresh), fresh.subject.identity.actual) == ([], "warmstart")
    assert errors(stand.follow(way(finding.fix, "on purpose"))) == []


def test_where_there_is_no_record_the_checkpoint_says_what_the_run_had(public: Stand) -> None:
    last(
        public,
        hyper_parameters={"shared_cfg": {"LR_SCHEDULE": {"warmup_steps": 70}}, "optimizer_name": "adamwscale"},
    )
    (finding,) = of(public.pre(*RESUME), "SettingsContinue")
    assert "optimizer.name=AdamW" in finding.message
    assert "had adamwscale (last.ckpt: optimizer_name)" in finding.message
    assert "had 70 (last.ckpt: shared_cfg.LR_SCHEDULE.warmup_steps)" in finding.message
    after = public.follow(way(finding.fix, "as before"))
    assert of(after, "SettingsContinue") == []


def test_a_record_is_trusted_before_the_checkpoint(stand: Stand) -> None:
    last(stand, hyper_parameters={"warmup_steps": 70})
    recorded(stand, optimizer__warmup_steps=500)
    assert of(stand.pre(*RESUME), "SettingsContinue") == []


def test_another_spelling_is_no_other_setting(stand: Stand) -> None:
    last(stand, hyper_parameters={"optimizer_name": "adamw"})
    recorded(stand, optimizer__warmup_steps="5e2", precision__name="bf16", model__encoder_type="auto")
    assert of(stand.pre(*RESUME), "SettingsContinue") == []


def test_settings_that_may_differ_from_launch_to_launch_are_not_named(stand: Stand) -> None:
    stand.last(step=10)
    recorded(stand, max_steps=100, data__num_workers=7, logger__kind="wandb", optimizer__warmup_steps=500)
    assert of(stand.pre(*RESUME), "SettingsContinue") == []


def test_a_setting_that_falls_back_to_what_cannot_be_told_is_a_warning(stand: Stand) -> None:
    stand.last(step=10)
    recorded(stand, seed=42)
    home(
        stand.repository,
        changes={'"--init-ckpt", type=str': '"--seed", type=int)\nparser.add_argument("--init-ckpt", type=str'},
    )
    train = stand.repository / "src/train.py"
    train.write_text(train.read_text().replace("trainer.fit(", "pl.seed_everything(args.seed)\ntrainer.fit("))
    pre = stand.pre(*RESUME)
    (finding,) = of(pre, "SettingsContinue")
    assert (finding.severity, errors(pre)) == ("warning", [])
    assert finding.message == "seed: the run so far had 42 (the last launch's record), and it is left out now"
    assert of(stand.follow(finding.fix[0]), "SettingsContinue") == []


def test_flags_beyond_the_settings_are_compared_one_by_one(stand: Stand) -> None:
    stand.last(step=10)
    recorded(stand, extra__flags={"base-name": "t5-large"})
    (finding,) = of(stand.pre(*RESUME, "extra.flags.pitch-shift-range=[0,0]"), "SettingsContinue")
    assert "extra.flags.base_name=t5, but the run so far had t5-large" in finding.message
    assert "extra.flags.pitch_shift_range=[0,0], which the run so far did not have" in finding.message
    after = stand.follow(way(finding.fix, "as before"))
    assert of(after, "SettingsContinue") == []
    assert dict(after.subject.settings.extra.flags) == {"base_name": "t5-large"}


def test_a_warm_start_is_no_way_out_where_the_model_is_another(public: Stand) -> None:
    text = 'add_argument("-nmel", "--n-mels", type=int, default=None)\nparser.add_argument("-wb"'
    family(
        public.repository,
        changes={'add_argument("-wb"': text, "print(args.scheduler": "print(args.n_mels, args.scheduler"},
    )
    last(public, hyper_parameters={"n_mels": 512})
    (finding,) = of(public.pre(*RESUME, "model.n_mels=256"), "SettingsContinue")
    assert "model.n_mels=256, but the run so far had 512" in finding.message
    assert not [fix for fix in finding.fix if fix.startswith("warm-start")]


def test_another_run_than_a_resume_goes_on_with_nothing(stand: Stand) -> None:
    recorded(stand, optimizer__warmup_steps=50)
    assert of(stand.pre(), "SettingsContinue") == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"settings": 3}', '{"settings": {"seed": 3}}'])
def test_a_record_that_cannot_be_read_says_nothing(stand: Stand, text: str) -> None:
    stand.last(step=10)
    recorded(stand).write_text(text)
    assert of(stand.pre(*RESUME), "SettingsContinue") == []


# ArchitectureFits


@pytest.fixture
def sized(public: Stand) -> Stand:
    """A public layout with flags for the architecture."""
    flags = '"--n-mels", type=int, default=512)\nparser.add_argument("--encoder-type", type=str, default="t5")'
    family(
        public.repository,
        changes={
            'parser.add_argument("-wb"': f'parser.add_argument({flags}\nparser.add_argument("-wb"',
            "print(args.scheduler": "print(args.n_mels, args.encoder_type, args.scheduler",
        },
    )
    return public


def test_an_architecture_that_differs_on_a_warm_start_is_an_error_with_both_values(sized: Stand) -> None:
    file = saved(
        sized.folder / "init.ckpt",
        hyper_parameters={"audio_cfg": {"n_mels": 256}, "model_cfg": {"encoder_type": "perceiver-tf"}},
    )
    pre = sized.pre("init=warmstart", f"init.ckpt={file}")
    (finding,) = of(pre, "ArchitectureFits")
    assert finding in pre.stopped
    assert "model.n_mels=512, but the checkpoint has 256 (init.ckpt: audio_cfg.n_mels)" in finding.message
    assert "model.encoder_type=t5, but the checkpoint has perceiver-tf" in finding.message
    after = sized.follow(finding.fix[0])
    assert of(after, "ArchitectureFits") == []
    assert (after.subject.settings.model.n_mels, after.subject.settings.model.encoder_type) == (256, "perceiver-tf")


def test_an_architecture_that_fits_or_that_the_checkpoint_does_not_tell(sized: Stand) -> None:
    same = saved(sized.folder / "same.ckpt", hyper_parameters={"args": {"n_mels": 512}})
    none = saved(sized.folder / "none.ckpt")
    for file in (same, none):
        assert of(sized.pre("init=warmstart", f"init.ckpt={file}"), "ArchitectureFits") == []


# LazyPartsFit

SHIFTED = {"state_dict": {"layer.weight": torch.zeros(3, 2), "pitchshift.weight": torch.zeros(1)}}


def test_a_checkpoint_with_pitch_shift_does_not_resume_without(stand: Stand) -> None:
    last(stand, **SHIFTED)
    pre = stand.pre(*RESUME, "extra.flags.pitch-shift-range=[0,0]")
    (finding,) = of(pre, "LazyPartsFit")
    assert finding in pre.stopped
    assert "last.ckpt holds tensors of pitchshift.*" in finding.message
    after = stand.follow(way(finding.fix, "as in the checkpoint"))
    assert errors(after) == []
    assert [*map(int, after.subject.settings.extra.flags["pitch_shift_range"])] == [-2, 2]
    fresh = stand.follow(way(finding.fix, "warm-start"))
    assert (of(fresh, "LazyPartsFit"), fresh.subject.identity.actual) == ([], "warmstart")


def test_a_checkpoint_without_it_does_not_resume_with_it(stand: Stand) -> None:
    last(stand, state_dict={"model.layer.weight": torch.zeros(3)})
    (finding,) = of(stand.pre(*RESUME, "extra.flags.pitch_shift_range=[-3,3]"), "LazyPartsFit")
    assert "last.ckpt holds no tensor of pitchshift.*, and this run's value for it is [-3,3]" in finding.message
    assert of(stand.follow(way(finding.fix, "as in the checkpoint")), "LazyPartsFit") == []


def test_the_range_that_the_checkpoint_had_is_proposed(public: Stand) -> None:
    """Below "model." too, where the module is wrapped."""
    last(
        public,
        state_dict={"model.pitchshift.kernel": torch.zeros(1)},
        hyper_parameters={"shared_cfg": {"AUGMENTATION": {"train_pitch_shift_range": [-4, 4]}}},
    )
    (finding,) = of(public.pre(*RESUME), "LazyPartsFit")
    assert "extra.flags.pitch_shift_range=[-4,4]" in way(finding.fix, "as in the checkpoint")


def test_parts_that_fit(stand: Stand) -> None:
    last(stand)
    assert of(stand.pre(*RESUME), "LazyPartsFit") == []
    last(stand, **SHIFTED)
    assert of(stand.pre(*RESUME, "extra.flags.pitch_shift_range=[-2,2]"), "LazyPartsFit") == []


# RestoredOnResume


def groups(lr: float, initial: float) -> dict[str, Any]:
    return {"optimizer_states": [{"state": {}, "param_groups": [{"lr": lr, "initial_lr": initial, "params": [0]}]}]}


def test_c25_what_a_resume_brings_back_from_the_checkpoint_is_not_given_anew(stand: Stand) -> None:
    stand.last(step=10)
    pre = stand.pre(*RESUME, "optimizer.lr=1e-5", "optimizer.scheduler=constant")
    (found,) = of(pre, "RestoredOnResume")  # the schedule is a function of the step: what is given for it counts
    assert found.message.startswith("optimizer.lr=1e-05")
    assert found.severity == "warning"
    assert of(stand.follow(found.fix[0]), "RestoredOnResume") == []


def test_c25_what_the_checkpoint_holds_is_shown(stand: Stand) -> None:
    last(stand, **groups(lr=3e-4, initial=1e-3))
    (found,) = of(stand.pre(*RESUME, "optimizer.lr=1e-5"), "RestoredOnResume")
    assert found.message.endswith("it comes back from last.ckpt, which has 0.001 (at 0.0003 by now)")
    assert of(stand.pre(*RESUME, "optimizer.lr=1e-3"), "RestoredOnResume") == []  # the same: nothing is lost


def test_c25_it_counts_on_any_other_run(stand: Stand) -> None:
    assert of(stand.pre("optimizer.lr=1e-5"), "RestoredOnResume") == []
    stand.last(step=10)
    assert of(stand.pre(*RESUME), "RestoredOnResume") == []


# ScheduleReaches


def cosine(total: int, warmup: int, steps: int) -> dict[str, Any]:
    """The optimizer and the schedule of the public family after so many steps, by torch itself."""
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=1e-3)
    first = torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, 1, total_iters=warmup)
    second = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total - warmup, eta_min=1e-5)
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [first, second], milestones=[warmup])
    for _ in range(steps):
        optimizer.step()
        schedule.step()
    return {"optimizer_states": [optimizer.state_dict()], "lr_schedulers": [schedule.state_dict()]}


def test_c25_a_cosine_that_comes_back_ends_where_it_did(public: Stand) -> None:
    last(public, step=800, **cosine(total=900, warmup=100, steps=800))
    (finding,) = of(public.pre(*RESUME), "ScheduleReaches")
    assert finding.severity == "warning"
    assert "max_steps=1000" in finding.message
    assert "its end at step 900 (T_max 800 after 100 steps)" in finding.message
    assert "the learning rate climbs again" in finding.message
    assert of(public.follow(way(finding.fix, "to its end")), "ScheduleReaches") == []
    fresh = public.follow(way(finding.fix, "warm-start"))
    assert (errors(fresh), fresh.subject.identity.actual) == ([], "warmstart")
    constant = public.follow(way(finding.fix, "the same with a constant rate"))
    assert (errors(constant), constant.subject.settings.optimizer.scheduler) == ([], "constant")


def test_c25_a_finished_cosine_is_named_with_the_rate_that_it_stands_at(public: Stand) -> None:
    last(public, step=900, **cosine(total=900, warmup=100, steps=900))
    (finding,) = of(public.pre(*RESUME), "ScheduleReaches")
    assert finding.message.endswith("it stands at 1e-05")
    assert not [fix for fix in finding.fix if fix.startswith("to its end")]  # there is no step left to train
    assert len(of(public.pre("init=resume", "max_steps=-1"), "ScheduleReaches")) == 1


def test_c25_a_shorter_run_ends_before_the_rate_has_come_down(public: Stand) -> None:
    last(public, step=800, **cosine(total=2000, warmup=100, steps=800))
    (finding,) = of(public.pre(*RESUME), "ScheduleReaches")
    assert (finding.severity, "its end at step 2000" in finding.message) == ("info", True)
    assert of(public.follow(way(finding.fix, "to the end of the schedule")), "ScheduleReaches") == []


def test_a_cosine_that_reaches_to_the_end_is_fine(public: Stand) -> None:
    last(public, step=800, **cosine(total=1000, warmup=100, steps=800))
    assert of(public.pre(*RESUME), "ScheduleReaches") == []


def test_c25_a_schedule_that_follows_max_steps_jumps_up(stand: Stand) -> None:
    """A function of the step is not in the checkpoint: its new length counts at once."""
    last(stand, step=400)
    recorded(stand, max_steps=500)
    (finding,) = of(stand.pre(*RESUME), "ScheduleReaches")
    shares = [(1 + math.cos(math.pi * 400 / length)) / 2 for length in (500, 1000)]
    assert f"climbs at step 400 from some {shares[0]:.0%} of its base to {shares[1]:.0%}" in finding.message
    assert "max_steps=1000, but the run so far went to 500" in finding.message
    assert of(stand.follow(way(finding.fix, "to its end")), "ScheduleReaches") == []


def test_without_a_record_the_checkpoint_says_how_long_the_run_was(stand: Stand) -> None:
    last(stand, step=400, hyper_parameters={"max_steps": 500})
    assert len(of(stand.pre(*RESUME), "ScheduleReaches")) == 1


@pytest.mark.parametrize("words", [("optimizer.scheduler=constant",), ("max_steps=500",)])
def test_a_constant_rate_and_an_old_length_are_nothing_to_name(stand: Stand, words: tuple[str, ...]) -> None:
    last(stand, step=400)
    recorded(stand, max_steps=500)
    assert of(stand.pre("init=resume", "max_steps=1000", *words), "ScheduleReaches") == []
