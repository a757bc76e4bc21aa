"""What the bridge brings to a run, and that it is nothing which the repository does already."""

import json
from pathlib import Path
from typing import Any

import pytest
from repos import family, home, line_of
from stand import Stand, errors, of, option, refused, way

from amt_hydra.bridged import ENTRY, Bridge, document
from amt_hydra.machine import Wandb
from amt_hydra.preflight import Preflight

pytest_plugins = ["desks"]

NO_KEY = Wandb(credentials=False, source="none", mode="online")


def bridge(pre: Preflight) -> Bridge:
    assert pre.subject.plan.bridge is not None
    return pre.subject.plan.bridge


WORKERS_FLAG = {
    "args = parser.parse_args()\n": 'parser.add_argument("--num-workers", type=int, default=4)\n'
    "args = parser.parse_args()\nprint(args.num_workers)\n"
}


def changes(pre: Preflight) -> dict[str, object]:
    return {change.key: change.value for change in bridge(pre).changes}


# Values of config.py.


def test_settings_without_a_flag_are_set_in_config(public: Stand) -> None:
    pre = public.pre("optimizer.warmup_steps=250", "data.num_workers=8", "batch.accumulate=2")
    assert errors(pre) == []
    found = changes(pre)
    assert found["shared_cfg.LR_SCHEDULE.warmup_steps"] == 250
    assert found["shared_cfg.DATAIO.num_workers"] == 8
    assert found["shared_cfg.TRAINER.accumulate_grad_batches"] == 2


def test_documented_defaults_that_config_says_otherwise_are_kept_too(public: Stand) -> None:
    pre = public.pre()
    assert changes(pre) == {"shared_cfg.LR_SCHEDULE.warmup_steps": 500, "shared_cfg.CHECKPOINT.save_top_k": 7}
    assert [f for f in pre.findings if f.id == "DefaultKept"] == []


def test_a_value_that_stands_there_already_is_not_set(public: Stand) -> None:
    pre = public.pre("optimizer.warmup_steps=1000", "checkpoint.save_top_k=4")
    assert bridge(pre).changes == ()


def test_a_change_says_where_the_old_value_stands(public: Stand) -> None:
    (change,) = [c for c in bridge(public.pre()).changes if c.setting == "optimizer.warmup_steps"]
    assert change.own == 1000
    assert str(change.place) == line_of(public.repository / "amt/src/config/config.py", '"warmup_steps": 1000')


def test_no_workers_take_prefetching_and_persistence_with_them(public: Stand) -> None:
    found = changes(public.pre("data.num_workers=0"))
    assert found["shared_cfg.DATAIO.num_workers"] == 0
    assert found["shared_cfg.DATAIO.prefetch_factor"] is None
    assert "shared_cfg.DATAIO.persistent_workers" not in found, "it is False already"


def test_a_value_takes_the_type_that_it_has_in_config(public: Stand) -> None:
    assert changes(public.pre("optimizer.warmup_steps=1e2"))["shared_cfg.LR_SCHEDULE.warmup_steps"] == 100


def test_any_other_key_of_config_is_set_through_extra_config(public: Stand) -> None:
    pre = public.pre(
        "extra.config.shared_cfg.TRAINER.gradient_clip_val=0.5", "extra.config.shared_cfg.BSZ.validation=8"
    )
    assert errors(pre) == []
    assert changes(pre)["shared_cfg.TRAINER.gradient_clip_val"] == 0.5
    assert changes(pre)["shared_cfg.BSZ.validation"] == 8


def test_null_leaves_a_key_of_config_to_the_repository_and_none_is_its_none(public: Stand) -> None:
    key = "shared_cfg.DATAIO.prefetch_factor"
    assert key not in changes(public.pre(f"extra.config.{key}=null"))
    assert changes(public.pre(f"extra.config.{key}=None"))[key] is None


@pytest.mark.parametrize(
    ("word", "says"),
    [
        (
            "extra.config.shared_cfg.TRAINER.gradient_clip=1",
            "did you mean extra.config.shared_cfg.TRAINER.gradient_clip_val?",
        ),
        ("extra.config.shared_cfg.CHECKPOINT.save_top_k=2", "use checkpoint.save_top_k=…"),
    ],
)
def test_a_key_that_is_not_there_or_has_a_setting_of_its_own_is_refused(public: Stand, word: str, says: str) -> None:
    pre = public.pre(word)
    assert [f.fix for f in pre.stopped if f.id == "ExtraFlagExists"] == [(says,)]


def test_a_value_that_does_not_fit_names_key_and_place(public: Stand) -> None:
    (error,) = errors(public.pre("extra.config.shared_cfg.BSZ.validation=many"))
    assert "takes a whole number" in error
    assert "shared_cfg.BSZ.validation at " in error


# Identity.


def test_a_resume_gets_its_checkpoint_where_the_repository_loads_weights_only(public: Stand) -> None:
    last = public.last(step=1000)
    pre = public.pre("init=resume", "max_steps=2000")
    assert errors(pre) == []
    assert pre.subject.identity.actual == "resume"
    assert bridge(pre).capabilities["resume"] == {"ckpt": str(last), "pickled": False}
    (added,) = [c for c in bridge(pre).added if c.name == "resume"]
    assert line_of(public.repository / "amt/src/train.py", "load_state_dict") in added.why


def test_a_warm_start_gets_its_weights_where_there_is_no_flag(public: Stand) -> None:
    init = public.checkpoint(public.folder / "a=b, c" / "x.ckpt")
    pre = public.pre("init=warmstart", f"init.ckpt={init}", "init.min_coverage=0.9")
    assert errors(pre) == []
    assert pre.subject.identity.actual == "warmstart"
    assert bridge(pre).capabilities["warmstart"] == {"ckpt": str(init), "pickled": False, "min_coverage": 0.9}


def test_a_warm_start_from_the_folder_that_is_moved_aside_finds_its_checkpoint_there(public: Stand) -> None:
    last = public.last(step=1000)
    pre = public.pre("init=warmstart", f"init.ckpt={last}", "init.overwrite=true")
    assert errors(pre) == []
    moved_to = pre.subject.plan.moved_to
    assert moved_to is not None
    assert bridge(pre).capabilities["warmstart"]["ckpt"] == str(moved_to / "checkpoints" / "last.ckpt")


def test_a_scratch_run_over_a_last_ckpt_is_refused_for_what_the_code_would_make_of_it(public: Stand) -> None:
    public.last(step=1000)
    pre = public.pre()
    message, ways = refused(pre)
    assert "it would go on from its weights, at step 0" in message
    assert pre.subject.identity.actual == "warmstart"
    after = public.follow(way(ways, "resume"))
    assert after.subject.identity.actual == "resume"
    assert errors(after) == []


def test_without_the_bridge_what_the_repository_cannot_keep_is_refused(public: Stand) -> None:
    public.last(step=1000)
    pre = public.pre("init=resume", "max_steps=2000", "optimizer.warmup_steps=50", "repo.bridge=false")
    assert {f.id for f in pre.stopped} == {"IdentityHolds", "SettingReaches"}
    assert pre.subject.plan.bridge is None
    assert pre.subject.plan.argv[1] == "train.py"


def test_a_forced_scratch_is_honoured_by_the_bridge(public: Stand) -> None:
    public.last(step=1000)
    pre = public.pre(AMT_FORCE_SCRATCH="1")
    assert errors(pre) == []
    assert "force_scratch" in bridge(pre).capabilities
    assert pre.subject.plan.moved_to is not None
    assert (
        "force_scratch" not in bridge(public.pre("init=resume", "max_steps=2000", AMT_FORCE_SCRATCH="0")).capabilities
    )


def test_a_repository_that_does_it_all_is_run_plainly(bundled: Stand) -> None:
    pre = bundled.pre()
    assert pre.subject.plan.bridge is None
    assert pre.subject.plan.argv[1] == "train.py"


def test_a_repository_that_resumes_by_itself_is_not_resumed_twice(stand: Stand) -> None:
    stand.last(step=1000)
    assert stand.pre("init=resume", "max_steps=2000").subject.plan.bridge is None


def test_what_leaves_last_ckpt_to_modelcheckpoint_gets_a_current_one(stand: Stand) -> None:
    own = '\ntrainer.save_checkpoint(os.path.join(folder, "last.ckpt"))'
    home(stand.repository, changes={own: ""})
    assert set(bridge(stand.pre()).capabilities) == {"last"}


def test_no_last_ckpt_is_written_where_none_is_wanted(public: Stand) -> None:
    assert "last" not in bridge(public.pre("checkpoint.save_last=false")).capabilities


# Logging and debugging.


def test_metrics_go_to_csv_files_without_credentials(public: Stand) -> None:
    public.machine(wandb=NO_KEY)
    pre = public.pre()
    assert errors(pre) == []
    assert "csv" in bridge(pre).capabilities
    assert [f.severity for f in pre.findings if f.id == "WandbReady"] == ["info"]


def test_wandb_mode_of_the_shell_reaches_a_repository_that_ignores_it(public: Stand) -> None:
    public.machine(wandb=NO_KEY)
    pre = public.pre("logger=wandb", WANDB_MODE="offline")
    assert option(pre.subject.plan.argv, "--wandb-mode") == "offline"
    assert "csv" not in bridge(pre).capabilities


@pytest.mark.parametrize(
    ("key", "variable"),
    [("grad_finite", "AMT_DEBUG_GRAD_FINITE"), ("detect_anomaly", "AMT_DETECT_ANOMALY")],
)
def test_debugging_switches_that_the_repository_never_reads(public: Stand, key: str, variable: str) -> None:
    pre = public.pre(f"debug.{key}=true")
    assert key in bridge(pre).capabilities
    assert pre.subject.plan.env[variable] == "1"
    assert key in bridge(public.pre(**{variable: "1"})).capabilities, "left over in the shell"
    assert key not in bridge(public.pre()).capabilities


def test_a_seed_is_brought_where_there_is_no_flag(public: Stand, bundled: Stand) -> None:
    assert bridge(public.pre("seed=7")).capabilities["seed"] == {"seed": 7}
    assert option(bundled.pre("seed=7").subject.plan.argv, "--seed") == "7"


# How it gets there.


def test_the_bridge_is_started_in_place_of_train_py_with_its_argv(public: Stand) -> None:
    plain, bridged = public.pre("repo.bridge=false", "logger.kind=wandb"), public.pre("logger.kind=wandb")
    assert plain.subject.plan.argv[1] == "train.py"
    assert bridged.subject.plan.argv[1] == str(ENTRY)
    assert bridged.subject.plan.argv[2:] == plain.subject.plan.argv[2:]
    assert ENTRY.is_file()


def test_the_document_is_plain_json_with_every_path_absolute(public: Stand) -> None:
    pre = public.pre("data.num_workers=0")
    plan = pre.subject.plan
    read: dict[str, Any] = json.loads(json.dumps(document(bridge(pre), pre.subject.repository, plan.place.checkpoints)))
    assert read["train"] == str(public.repository / "amt/src/train.py")
    assert read["checkpoints"] == str(public.experiment())
    assert {
        "file": str(public.repository / "amt/src/config/config.py"),
        "key": ["shared_cfg", "DATAIO", "num_workers"],
        "value": 0,
    } in read["config"]
    assert all(Path(entry["file"]).is_absolute() for entry in read["config"])


def test_a_repository_without_lightning_cannot_be_bridged(public: Stand) -> None:
    family(public.repository)
    train = public.repository / "amt/src/train.py"
    train.write_text(train.read_text().replace("pytorch_lightning", "own_trainer"))
    assert public.pre("optimizer.warmup_steps=null", "checkpoint.save_top_k=null").subject.plan.bridge is None


def test_no_workers_by_a_flag_leave_nothing_in_config_py_that_a_loader_refuses(public: Stand) -> None:
    family(public.repository, changes=WORKERS_FLAG)
    pre = public.pre("data.num_workers=0")
    assert option(pre.subject.plan.argv, "--num-workers") == "0"
    assert changes(pre)["shared_cfg.DATAIO.prefetch_factor"] is None
    assert "shared_cfg.DATAIO.prefetch_factor" not in changes(public.pre("data.num_workers=1"))


def test_without_the_bridge_no_workers_are_refused_there(public: Stand) -> None:
    family(public.repository, changes=WORKERS_FLAG)
    (finding,) = of(public.pre("data.num_workers=0", "repo.bridge=false"), "ValueFits")
    assert "a DataLoader refuses it beside shared_cfg.DATAIO.prefetch_factor=2 at " in finding.message
    assert of(public.follow(finding.fix[0]), "ValueFits") == []


@pytest.mark.parametrize(("own", "wanted"), [('"Max"', "max"), ('"none"', "None"), ("None", '"none"')])
def test_a_value_that_only_looks_the_same_is_a_change(public: Stand, own: str, wanted: str) -> None:
    config = public.repository / "amt/src/config/config.py"
    config.write_text(config.read_text() + f'extra_cfg = {{"mode": {own}}}\n')
    found = changes(public.pre(f"extra.config.extra_cfg.mode={wanted}"))
    assert found["extra_cfg.mode"] == {"max": "max", "None": None, '"none"': "none"}[wanted]


def test_what_a_loader_refuses_beside_no_workers_cannot_be_asked_for(public: Stand) -> None:
    (finding,) = of(
        public.pre("data.num_workers=0", "extra.config.shared_cfg.DATAIO.prefetch_factor=4"), "ExtraFlagExists"
    )
    assert "a DataLoader refuses it beside data.num_workers=0" in finding.message
    assert errors(public.pre("data.num_workers=1", "extra.config.shared_cfg.DATAIO.prefetch_factor=4")) == []


def test_only_what_the_bridge_brings_is_said_to_reach_by_it(public: Stand) -> None:
    for kind, reaches in (("csv", "bridge:csv"), ("wandb", "")):
        pre = public.pre(f"logger={kind}", WANDB_MODE="offline")
        assert pre.subject.decision("logger.kind").reaches == reaches
