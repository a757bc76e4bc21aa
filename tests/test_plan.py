"""The plan: argv, environment and folder of train.py, exactly; and every setting that does not get there."""

import builtins
import os
from pathlib import Path

import pytest
from repos import family, home, line_of
from stand import Stand, errors, of, option

from amt_hydra.plan import World, lay_out
from amt_hydra.resolve import resolve

pytest_plugins = ["desks"]


def words(stand: Stand, *overrides: str) -> list[str]:
    """What train.py is given, after interpreter and file."""
    return list(stand.pre(*overrides).subject.plan.argv[2:])


def test_the_command_is_the_repositorys_own_train_py_in_its_own_folder(stand: Stand) -> None:
    plan = stand.pre(
        "exp_id=mine", "max_steps=1e5", "precision=fp32", "optimizer.lr=3e-4", "batch.sub=6", "batch.local=12",
        "data_presets=guitarset", "ddp=cpu1", "data.num_workers=2", "logger=csv", "val_interval=500",
    ).subject.plan  # fmt: skip
    assert plan.cwd == stand.repository / "src"
    assert plan.env == {"PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": ""}
    assert list(plan.argv[1:]) == [
        "train.py", "mine",
        "--project", "melody",
        "--max-steps", "100000",
        "--val-interval", "500",
        "--precision", "32",
        "--optimizer", "AdamW",
        "--base-learning-rate", "0.0003",
        "--warmup-steps", "500",
        "--train-batch-size", "6", "12",
        "--num-gpus", "1",
        "--num-nodes", "1",
        "--data-preset", "guitarset",
        "--num-workers", "2",
        "--monitor", "validation/macro_onset_f",
        "--monitor-mode", "max",
        "--save-top-k", "7",
        "--save-last", "true",
        "--logger", "csv",
    ]  # fmt: skip


def test_c01_no_word_of_hydra_reaches_train_py(stand: Stand) -> None:
    assert not [w for w in words(stand, "max_steps=5", "optimizer=adafactor") if "=" in w or w.startswith("+")]


def test_the_public_repository_gets_its_flags_and_nothing_for_which_it_has_none(plain: Stand) -> None:
    plan = plain.pre("exp_id=mine", "max_steps=100").subject.plan
    assert plan.cwd == plain.repository / "amt" / "src"
    assert list(plan.argv[1:]) == [
        "train.py", "mine", "--project", "melody", "--max-steps", "100", "--precision", "bf16-mixed",
        "--optimizer", "AdamW", "--num-gpus", "1", "--num-nodes", "1",
    ]  # fmt: skip


def test_the_interpreter_is_the_repositorys_own_where_it_has_one(stand: Stand) -> None:
    python = stand.repository / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(os.path.realpath("/bin/sh"))
    assert stand.pre().subject.plan.argv[0] == str(python)
    assert stand.pre("repo.python=/usr/bin/python3").subject.plan.argv[0] == "/usr/bin/python3"


def test_records_go_to_the_outputs_folder_of_the_experiment(stand: Stand) -> None:
    assert stand.pre("exp_id=mine").subject.plan.records == stand.folder / "outputs" / "melody" / "mine" / "launches"
    elsewhere = stand.folder / "else where"
    plan = stand.pre(AMT_OUTPUTS=str(elsewhere)).subject.plan
    assert plan.records == elsewhere / "melody" / "base" / "launches"


# Settings that share a flag.


def test_the_part_that_was_not_given_is_the_repositorys_own(stand: Stand) -> None:
    def size(*overrides: str) -> list[str]:
        line = words(stand, *overrides)
        at = line.index("--train-batch-size")
        return line[at + 1 : at + 3]

    assert size("batch.sub=6") == ["6", "24"]  # local 24 stands in config.py
    assert size("batch.local=48") == ["12", "48"]
    assert size("batch.sub=2", "batch.local=4") == ["2", "4"]
    assert "--train-batch-size" not in words(stand)


def test_a_part_that_is_not_known_cannot_be_left_out(stand: Stand) -> None:
    home(stand.repository, changes={'"train_local": 24': '"train_local": len(range(24))'})
    pre = stand.pre("batch.sub=6")
    (finding,) = of(pre, "ValueFits")
    assert "batch.sub=6" in finding.message
    assert "--train-batch-size" in finding.message
    assert errors(stand.pre("batch.sub=6", "batch.local=12")) == []


# Settings that do not reach the repository.


def test_a_setting_that_was_asked_for_and_reaches_nothing_is_an_error(stand: Stand) -> None:
    (finding,) = of(stand.pre("seed=1", "repo.bridge=false"), "SettingReaches")
    assert finding.message.startswith("seed=1: no flag or variable of the repository takes it")
    assert errors(stand.follow(finding.fix[0])) == []


def test_the_line_where_the_value_stands_is_named(plain: Stand) -> None:
    (finding,) = of(plain.pre("checkpoint.save_top_k=3"), "SettingReaches")
    assert f"4 stands at {line_of(plain.repository / 'amt/src/config/config.py', 'save_top_k')}" in finding.message
    assert errors(plain.follow(finding.fix[0])) == []


@pytest.mark.parametrize("override", ["logger=csv", "ddp.nodes=2", "debug.grad_finite=true", "checkpoint.save_top_k=9"])
def test_leaving_a_setting_to_the_repository_is_always_possible(plain: Stand, override: str) -> None:
    """Some settings know no null."""
    family(plain.repository, changes={'parser.add_argument("-n", "--num-nodes", type=int, default=1)\n': "",
                                       "args.num_nodes, ": ""})  # fmt: skip
    (finding,) = of(plain.pre(override), "SettingReaches")
    assert errors(plain.follow(finding.fix[0])) == []


def test_a_flag_that_a_fork_renamed_is_named_with_its_line(stand: Stand) -> None:
    home(stand.repository, changes={"--save-top-k": "--save-topk", "args.save_top_k": "args.save_topk"})
    (finding,) = of(stand.pre("checkpoint.save_top_k=3", "repo.bridge=false"), "SettingReaches")
    line = line_of(stand.repository / "src/train.py", "--save-topk")
    assert f"the nearest flag is --save-topk at {line}" in finding.message


def test_a_flag_that_merely_sounds_alike_is_not_named(plain: Stand) -> None:
    """Upstream's --moe-topk is about experts."""
    parsed = "args = parser.parse_args()\n"
    family(
        plain.repository,
        changes={parsed: f'parser.add_argument("--moe-topk", type=int)\n{parsed}print(args.moe_topk)\n'},
    )
    (finding,) = of(plain.pre("checkpoint.save_top_k=3"), "SettingReaches")
    assert "nearest" not in finding.message


def test_a_renamed_flag_is_one_line_of_the_mapping(stand: Stand) -> None:
    home(stand.repository, changes={"--save-top-k": "--save-topk", "args.save_top_k": "args.save_topk"})
    argv = stand.pre("checkpoint.save_top_k=3", "+repo.means.checkpoint.save_top_k=[flag:save_topk]").subject.plan.argv
    assert option(argv, "--save-topk") == "3"
    assert option(argv, "--precision") == "bf16-mixed"  # the other means are as before


def test_a_flag_that_is_parsed_and_read_nowhere_carries_nothing(stand: Stand) -> None:
    home(stand.repository, changes={"args.save_top_k, ": ""})
    (finding,) = of(stand.pre("checkpoint.save_top_k=3", "repo.bridge=false"), "SettingReaches")
    line = line_of(stand.repository / "src/train.py", "--save-top-k")
    assert f"--save-top-k at {line} is read nowhere" in finding.message


def test_false_that_was_asked_for_has_to_reach_the_repository_too(plain: Stand) -> None:
    """It saves last.ckpt unless told otherwise."""
    (finding,) = of(plain.pre("checkpoint.save_last=false"), "SettingReaches")
    assert finding.message.startswith("checkpoint.save_last=False")


def test_a_documented_default_that_reaches_nothing_is_a_warning(plain: Stand) -> None:
    pre = plain.pre()
    assert errors(pre) == []
    named = {f.message.split()[2]: f for f in of(pre, "DefaultKept")}
    assert named.keys() == {"optimizer.warmup_steps=500", "checkpoint.save_top_k=7"}
    assert {f.severity for f in named.values()} == {"warning"}


def test_the_value_shown_is_then_the_repositorys_own(plain: Stand) -> None:
    decision = plain.pre().subject.decision("optimizer.warmup_steps")
    assert (decision.value, decision.own) == (None, 1000)
    assert decision.origin.who == "repository"
    assert plain.pre().subject.effective("optimizer.warmup_steps") == 1000


def test_a_value_that_the_repository_has_anyway_needs_no_means(plain: Stand) -> None:
    pre = plain.pre(
        "optimizer.warmup_steps=1000", "checkpoint.save_top_k=4", "checkpoint.monitor=validation/macro_onset_f"
    )
    assert of(pre, "SettingReaches") == of(pre, "DefaultKept") == []


def test_a_documented_default_that_a_flag_does_not_take_is_a_warning_and_not_given(stand: Stand) -> None:
    old, new = 'type=str, default="adamw")', 'type=str, default="sgd", choices=["sgd", "lion"])'
    home(stand.repository, changes={old: new})
    pre = stand.pre()
    assert errors(pre) == []
    assert "optimizer.name=AdamW" in of(pre, "DefaultKept")[0].message
    assert "--optimizer" not in pre.subject.plan.argv
    assert pre.subject.effective("optimizer.name") == "sgd"
    assert "takes one of sgd, lion" in of(stand.pre("optimizer=adamwscale"), "ValueFits")[0].message


def test_a_feature_is_on_only_where_its_means_was_found(stand: Stand) -> None:
    (finding,) = of(stand.pre("features.rl=true"), "FeatureImplemented")
    assert finding.message.startswith("features.rl=true")
    assert errors(stand.follow(finding.fix[0])) == []
    home(stand.repository, changes={"args = parser": 'parser.add_argument("--rl", action="store_true")\nargs = parser',
                                    "print(args.monitor,": "print(args.rl, args.monitor,"})  # fmt: skip
    pre = stand.pre("features.rl=true", "+repo.means.features.rl=[flag:rl]")
    assert "--rl" in pre.subject.plan.argv
    assert errors(pre) == []


# Variables.


def test_a_debug_switch_is_set_as_the_repository_reads_it(stand: Stand) -> None:
    pre = stand.pre("debug.grad_finite=true", "debug.detect_anomaly=true")
    assert pre.subject.plan.env == {
        "PYTHONUNBUFFERED": "1",
        "AMT_DEBUG_GRAD_FINITE": "1",
        "AMT_DETECT_ANOMALY": "1",
    }
    home(stand.repository, changes={'"AMT_DETECT_ANOMALY") == "1"': '"AMT_DETECT_ANOMALY") == "true"'})
    assert stand.pre("debug.detect_anomaly=true").subject.plan.env["AMT_DETECT_ANOMALY"] == "true"


def test_extra_variables_come_last(stand: Stand) -> None:
    env = stand.pre("extra.env.PYTHONUNBUFFERED=0", "extra.env.N=7").subject.plan.env
    assert env == {"PYTHONUNBUFFERED": "0", "N": "7"}


# Further flags.


def test_further_flags_are_cast_and_come_after_the_settings(stand: Stand) -> None:
    assert words(stand, "extra.flags.pitch_shift_range=[-2,2]")[-3:] == ["--pitch-shift-range", "-2", "2"]
    assert words(stand, "extra.flags.pitch-shift-range=[0,1e2]")[-3:] == ["--pitch-shift-range", "0", "100"]


@pytest.mark.parametrize("text", ["1e3", "007", "1_000", "a,b", "nan", "1.50", "${seed}x"])
def test_c15_what_a_flag_for_text_is_given_keeps_its_spelling(stand: Stand, text: str) -> None:
    assert words(stand, f"extra.flags.base_name={text}")[-1] == text


@pytest.mark.parametrize(("type_", "text", "arrives"), [("int", "1e5", "100000"), ("float", "3e-4", "0.0003")])
def test_c15_what_a_flag_for_numbers_is_given_is_one(stand: Stand, type_: str, text: str, arrives: str) -> None:
    home(stand.repository, changes={'"--base-name", type=str, default="t5"': f'"--base-name", type={type_}, default=0'})
    assert words(stand, f"extra.flags.base_name={text}")[-2:] == ["--base-name", arrives]


def test_a_further_flag_of_null_is_left_to_the_repository(stand: Stand) -> None:
    assert words(stand, "extra.flags.pitch_shift_range=null") == words(stand)


def test_a_further_flag_that_is_none_gets_the_nearest_name(stand: Stand) -> None:
    pre = stand.pre("extra.flags.pitch_shift=[1,2]")
    (finding,) = of(pre, "ExtraFlagExists")
    assert finding.message.startswith("extra.flags.pitch_shift:")
    assert finding.fix == ("did you mean extra.flags.pitch_shift_range?",)


def test_a_further_flag_that_a_setting_carries_is_refused(stand: Stand) -> None:
    (finding,) = of(stand.pre("extra.flags.max_steps=5"), "ExtraFlagExists")
    assert finding.fix == ("use max_steps=…",)


def test_a_further_flag_that_nothing_reads_is_given_and_named(plain: Stand) -> None:
    pre = plain.pre("extra.flags.base_name=t5-small")
    (finding,) = of(pre, "ExtraFlagExists")
    assert finding.severity == "warning"
    assert line_of(plain.repository / "amt/src/train.py", "--base-name") in finding.message
    assert option(pre.subject.plan.argv, "--base-name") == "t5-small"
    assert of(plain.follow(finding.fix[0]), "ExtraFlagExists") == []


@pytest.mark.parametrize("value", ["1", "[1,2,3]", "[a,b]", "inf"])
def test_a_further_flag_that_does_not_take_its_value_is_refused(stand: Stand, value: str) -> None:
    (finding,) = of(stand.pre(f"extra.flags.pitch_shift_range={value}"), "ValueFits")
    assert "--pitch-shift-range takes" in finding.message


def test_positionals_come_first_and_in_their_own_order(stand: Stand) -> None:
    """After a flag that takes any number of values, a positional would be one of them."""
    exp_id = 'parser.add_argument("exp_id", type=str)'
    more = f'parser.add_argument("part")\n{exp_id}\nparser.add_argument("--tags", nargs="*")'
    home(stand.repository, changes={exp_id: more, "print(args.monitor,": "print(args.tags, args.part, args.monitor,"})
    line = words(stand, "exp_id=mine", "extra.flags.tags=[a,b]", "extra.flags.part=full")
    assert line[:2] == ["full", "mine"]
    assert line[-3:] == ["--tags", "a", "b"]


# The mapping.


def test_the_layout_found_decides_which_mapping_applies(stand: Stand, plain: Stand) -> None:
    assert stand.pre().subject.settings.repo.kind == "amt_ai"
    assert plain.pre().subject.settings.repo.kind == "yourmt3"


def test_a_mapping_of_ones_own_has_a_name_of_its_own(stand: Stand) -> None:
    mapping = stand.folder / "conf" / "repo" / "ours.yaml"
    mapping.parent.mkdir(parents=True)
    mapping.write_text("kind: ours\nruns_from: [config:shared_cfg.WANDB.save_dir]\n"
                       "means: {exp_id: [flag:exp_id], max_steps: [flag:max_steps]}\n")  # fmt: skip
    argv = stand.pre("repo=ours", "max_steps=7", "exp_id=mine").subject.plan.argv
    assert list(argv[1:]) == ["train.py", "mine", "--max-steps", "7"]


# Pure.


def test_laying_out_touches_no_file(stand: Stand) -> None:
    pre = stand.pre("max_steps=100", "batch.sub=6", "debug.grad_finite=true")
    subject = pre.subject
    resolved = resolve(subject.settings, pre.composed.origins, subject.channels, subject.machine)
    world = World(subject.plan.place, Path("/aside"), subject.python)

    def touched(*args: object, **kwargs: object) -> None:
        raise AssertionError(f"touches the file system: {args}")

    with pytest.MonkeyPatch.context() as world_is_gone:
        for name in ("stat", "lstat", "open", "listdir", "scandir", "readlink", "mkdir", "access"):
            world_is_gone.setattr(os, name, touched)
        world_is_gone.setattr(builtins, "open", touched)
        plan = lay_out(resolved, subject.repository, subject.channels, subject.identity, world)
    assert plan.argv == subject.plan.argv
