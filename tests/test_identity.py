"""Training identity: the decision table, every corner of it, and each way out followed to where it leads."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from repos import home, line_of
from stand import Stand, errors, numbers, of, option, refused, way

from amt_hydra.identity import table
from amt_hydra.preflight import Preflight

pytest_plugins = ["desks"]


def runs_as(pre: Preflight, actual: str) -> bool:
    """Whether the run is that, was declared to be that, and may start."""
    identity = pre.subject.identity
    return (identity.declared, identity.actual) == (actual, actual) and errors(pre) == []


# The decision table.


@pytest.mark.parametrize(
    ("forced", "last", "init", "what"),
    [
        (False, False, False, "scratch"),
        (False, True, False, "resume"),
        (False, False, True, "warmstart"),
        (False, True, True, "undecided"),
        (True, False, False, "scratch"),
        (True, True, False, "scratch"),
        (True, False, True, "contradiction"),
        (True, True, True, "contradiction"),
    ],
)
def test_three_facts_decide_what_a_run_is(forced: bool, last: bool, init: bool, what: str) -> None:
    assert table(forced, last, init) == what


def test_nothing_there_and_nothing_given_is_scratch(stand: Stand) -> None:
    pre = stand.pre()
    assert runs_as(pre, "scratch")
    assert pre.subject.identity.checkpoint is None
    assert "--init-ckpt" not in pre.subject.plan.argv


def test_a_last_ckpt_and_nothing_given_is_a_resume_from_its_step(stand: Stand) -> None:
    last = stand.last(step=1000)
    pre = stand.pre("init=resume", "max_steps=1001")
    assert runs_as(pre, "resume")
    assert pre.subject.identity.checkpoint == last
    assert pre.subject.identity.start_step == 1000
    assert "--init-ckpt" not in pre.subject.plan.argv


@pytest.mark.parametrize(
    ("actual", "said"),
    [
        (("scratch",), "resume (continues the run from scratch of 2026-01-01)"),
        (("warmstart", "resume"), "resume (continues the warm-start of 2026-01-01)"),
        (("scratch", "warmstart", "resume", "resume"), "resume (continues the warm-start of 2026-01-02)"),
        (("resume",), "resume"),
        ((), "resume"),
    ],
)
def test_a_resume_says_which_run_it_continues(stand: Stand, actual: tuple[str, ...], said: str) -> None:
    """A warm-start that was requeued is none any more, and yet no run that began by itself."""
    stand.last(step=1000)
    for day, one in enumerate(actual, 1):
        folder = stand.folder / "outputs" / "melody" / "base" / "launches" / f"2026010{day}T000000Z"
        folder.mkdir(parents=True)
        record = {"started": f"2026-01-0{day}", "identity": {"actual": one}, "settings": {}}
        (folder / "record.json").write_text(json.dumps(record))
    assert str(stand.pre("init=resume", "max_steps=2000").subject.identity) == said


def test_a_checkpoint_given_and_no_last_ckpt_is_a_warm_start_at_step_0(stand: Stand) -> None:
    given = stand.checkpoint(stand.folder / "epoch=3, step=7.ckpt", step=7)
    pre = stand.pre("init=warmstart", "init.ckpt=epoch=3, step=7.ckpt")
    assert runs_as(pre, "warmstart")
    assert pre.subject.identity.start_step == 0
    assert option(pre.subject.plan.argv, "--init-ckpt") == str(given)


def test_forced_without_last_ckpt_is_scratch_and_said_aloud(stand: Stand) -> None:
    pre = stand.pre(AMT_FORCE_SCRATCH="1")
    assert runs_as(pre, "scratch")
    (said,) = pre.subject.identity.said
    assert "AMT_FORCE_SCRATCH is on" in said
    assert line_of(stand.repository / "src/train.py", "AMT_FORCE_SCRATCH") in said


def test_forced_with_last_ckpt_is_scratch_and_the_old_folder_is_moved_aside_first(stand: Stand) -> None:
    stand.last()
    pre = stand.pre(AMT_FORCE_SCRATCH="1")
    assert runs_as(pre, "scratch")
    moved = pre.subject.plan.moved_to
    assert moved is not None
    assert moved.parent == stand.runs / "melody"
    assert moved.name.startswith("base.before-")
    assert any("moved aside" in line for line in pre.subject.identity.said)


def test_the_evidence_names_all_three_facts(stand: Stand) -> None:
    stand.last(step=1000, score=0.25)
    given = stand.checkpoint(stand.folder / "given.ckpt", step=5, score=0.75)
    evidence = stand.pre("init=warmstart", f"init.ckpt={given}").subject.identity.evidence
    assert [line.partition(":")[0] for line in evidence] == ["AMT_FORCE_SCRATCH", "last.ckpt", "init checkpoint"]
    assert "off" in evidence[0]
    assert "global_step 1000, score 0.2500" in evidence[1]
    assert "given.ckpt (global_step 5, score 0.7500) (from command line)" in evidence[2]


# init=scratch


def test_scratch_with_a_last_ckpt_is_refused_with_resume_another_experiment_and_overwrite(stand: Stand) -> None:
    stand.last(step=1000)
    message, ways = refused(stand.pre("max_steps=2000"))
    assert "init=scratch" in message
    assert "last.ckpt (global_step 1000" in message
    assert str(stand.experiment()) in message
    assert runs_as(stand.follow(way(ways, "resume")), "resume")
    elsewhere = stand.follow(way(ways, "another experiment"))
    assert runs_as(elsewhere, "scratch")
    assert elsewhere.subject.settings.exp_id == "base2"
    over = stand.follow(way(ways, "start over"))
    assert runs_as(over, "scratch")
    assert over.subject.plan.moved_to is not None


def test_another_experiment_is_one_that_nothing_uses_yet(stand: Stand) -> None:
    for exp_id in ("base", "base2", "base3"):
        stand.last(exp_id)
    _, ways = refused(stand.pre())
    assert "exp_id=base4" in way(ways, "another experiment")


def test_a_resume_is_offered_with_steps_left_to_train(stand: Stand) -> None:
    stand.last(step=1000)
    _, ways = refused(stand.pre("max_steps=500"))
    assert runs_as(stand.follow(way(ways, "resume")), "resume")


def test_overwrite_moves_the_old_folder_aside(stand: Stand) -> None:
    stand.last()
    pre = stand.pre("init.overwrite=true")
    assert runs_as(pre, "scratch")
    assert pre.subject.plan.moved_to is not None


def test_overwrite_with_nothing_in_the_way_moves_nothing(stand: Stand) -> None:
    pre = stand.pre("init.overwrite=true")
    assert runs_as(pre, "scratch")
    assert pre.subject.plan.moved_to is None


def test_scratch_with_a_checkpoint_given_is_refused(stand: Stand) -> None:
    given = stand.checkpoint(stand.folder / "given.ckpt")
    message, ways = refused(stand.pre(f"init.ckpt={given}"))
    assert f"init.ckpt={given} would make it a warm-start" in message
    assert runs_as(stand.follow(way(ways, "warm-start")), "warmstart")
    assert runs_as(stand.follow(way(ways, "scratch")), "scratch")


def test_a_checkpoint_given_by_a_config_file_can_be_left_out_too(stand: Stand) -> None:
    """A way that only dropped the word would lead back to the same refusal: there is no such word."""
    given = stand.checkpoint(stand.folder / "given.ckpt")
    experiment = stand.folder / "conf" / "experiment" / "mine.yaml"
    experiment.parent.mkdir(parents=True)
    experiment.write_text(f"# @package _global_\ninit:\n  ckpt: {given.name}\n")
    _, ways = refused(stand.pre("experiment=mine"))
    assert runs_as(stand.follow(way(ways, "scratch")), "scratch")


def test_scratch_with_both_in_the_way_offers_what_is_then_accepted(stand: Stand) -> None:
    stand.last()
    given = stand.checkpoint(stand.folder / "given.ckpt")
    _, ways = refused(stand.pre(f"init.ckpt={given}"))
    assert runs_as(stand.follow(way(ways, "warm-start")), "warmstart")
    assert runs_as(stand.follow(way(ways, "start over")), "scratch")


def test_the_key_beneath_a_group_does_not_survive_a_change_of_the_group(stand: Stand) -> None:
    """Typed as init.mode=…, it would win over the init=… that the way out adds."""
    _, ways = refused(stand.pre("init.mode=resume"))
    assert runs_as(stand.follow(way(ways, "scratch")), "scratch")


# AMT_FORCE_SCRATCH


def test_forced_with_a_checkpoint_given_is_a_contradiction(stand: Stand) -> None:
    given = stand.checkpoint(stand.folder / "given.ckpt")
    pre = stand.pre("init=warmstart", f"init.ckpt={given}", AMT_FORCE_SCRATCH="1")
    assert pre.subject.identity.actual == "contradiction"
    message, ways = refused(pre)
    assert "AMT_FORCE_SCRATCH is on" in message
    assert "contradict" in message
    assert runs_as(stand.follow(way(ways, "warm-start"), AMT_FORCE_SCRATCH="1"), "warmstart")
    assert runs_as(stand.follow(way(ways, "scratch"), AMT_FORCE_SCRATCH="1"), "scratch")


def test_forced_scratch_with_a_checkpoint_given_is_the_same_contradiction(stand: Stand) -> None:
    given = stand.checkpoint(stand.folder / "given.ckpt")
    message, ways = refused(stand.pre(f"init.ckpt={given}", AMT_FORCE_SCRATCH="1"))
    assert "an init checkpoint is given" in message
    assert runs_as(stand.follow(way(ways, "scratch"), AMT_FORCE_SCRATCH="1"), "scratch")
    assert runs_as(stand.follow(way(ways, "warm-start"), AMT_FORCE_SCRATCH="1"), "warmstart")


def test_forced_resume_would_be_scratch(stand: Stand) -> None:
    stand.last(step=10)
    message, ways = refused(stand.pre("init=resume", "max_steps=20", AMT_FORCE_SCRATCH="1"))
    assert "would be a scratch run" in message
    assert runs_as(stand.follow(way(ways, "resume"), AMT_FORCE_SCRATCH="1"), "resume")
    assert runs_as(stand.follow(way(ways, "scratch"), AMT_FORCE_SCRATCH="1"), "scratch")


def test_a_leftover_0_counts_as_on_where_the_repository_takes_any_text_for_true(stand: Stand) -> None:
    home(stand.repository, forced='os.environ.get("AMT_FORCE_SCRATCH")')
    stand.last(step=10)
    message, _ = refused(stand.pre("init=resume", "max_steps=20", AMT_FORCE_SCRATCH="0"))
    assert "'0'" in message


def test_a_leftover_0_counts_as_off_where_the_repository_compares_with_1(stand: Stand) -> None:
    stand.last(step=10)
    pre = stand.pre("init=resume", "max_steps=20", AMT_FORCE_SCRATCH="0")
    assert runs_as(pre, "resume")
    (leftover,) = of(pre, "LeftoverSwitches")
    assert "AMT_FORCE_SCRATCH=0" in leftover.message


def test_an_empty_variable_counts_as_what_the_repository_makes_of_it(stand: Stand) -> None:
    assert runs_as(stand.pre(AMT_FORCE_SCRATCH=""), "scratch")
    home(stand.repository, forced='"AMT_FORCE_SCRATCH" in os.environ')
    stand.last(step=10)
    message, _ = refused(stand.pre("init=resume", "max_steps=20", AMT_FORCE_SCRATCH=""))
    assert "AMT_FORCE_SCRATCH is on" in message


def test_any_value_counts_as_on_where_the_expression_cannot_be_decided(stand: Stand) -> None:
    home(stand.repository, forced='__import__("settings").flag(os.environ.get("AMT_FORCE_SCRATCH"))')
    stand.last(step=10)
    message, _ = refused(stand.pre("init=resume", "max_steps=20", AMT_FORCE_SCRATCH="no"))
    assert "AMT_FORCE_SCRATCH is on" in message
    assert runs_as(stand.pre("init=resume", "max_steps=20", AMT_FORCE_SCRATCH=""), "resume")


def test_a_variable_that_the_repository_never_reads_forces_nothing(plain: Stand) -> None:
    pre = plain.pre(AMT_FORCE_SCRATCH="1")
    assert pre.subject.identity.said == ()
    assert "read nowhere" in pre.subject.identity.evidence[0]


def test_extra_env_forces_scratch_like_the_shell_does(stand: Stand) -> None:
    stand.last(step=10)
    message, ways = refused(stand.pre("init=resume", "max_steps=20", "extra.env.AMT_FORCE_SCRATCH=1"))
    assert "AMT_FORCE_SCRATCH is on" in message
    assert runs_as(stand.follow(way(ways, "resume")), "resume")


def test_extra_env_of_a_config_file_can_be_undone_from_the_command_line(stand: Stand) -> None:
    stand.last(step=10)
    experiment = stand.folder / "conf" / "experiment" / "mine.yaml"
    experiment.parent.mkdir(parents=True)
    experiment.write_text("# @package _global_\nmax_steps: 20\nextra:\n  env:\n    AMT_FORCE_SCRATCH: '1'\n")
    _, ways = refused(stand.pre("experiment=mine", "init=resume"))
    assert runs_as(stand.follow(way(ways, "resume")), "resume")


# init=resume


def test_resume_without_a_last_ckpt_lists_the_whole_checkpoints_of_the_project_best_first(stand: Stand) -> None:
    for exp_id, score in (("low", 0.25), ("high", 0.75), ("unscored", None)):
        stand.checkpoint(stand.experiment(exp_id) / "best.ckpt", step=500, score=score)
    stand.checkpoint.cut(stand.experiment("broken") / "best.ckpt")
    message, ways = refused(stand.pre("init=resume"))
    assert f"no last.ckpt in {stand.experiment()}" in message
    assert "would be a scratch run" in message
    offered = [w for w in ways if w.startswith("warm-start")]
    assert [w.count(f"/{name}/") for w, name in zip(offered, ("high", "low", "unscored"), strict=True)] == [1, 1, 1]
    pre = stand.follow(offered[0])
    assert runs_as(pre, "warmstart")
    assert option(pre.subject.plan.argv, "--init-ckpt") == str(stand.experiment("high") / "best.ckpt")
    assert runs_as(stand.follow(way(ways, "scratch")), "scratch")


def test_resume_without_any_checkpoint_says_where_it_looked(stand: Stand) -> None:
    _, ways = refused(stand.pre("init=resume"))
    assert any("no whole checkpoint was found" in w for w in ways)


def test_resume_with_another_checkpoint_of_the_experiment_says_how_to_go_on_from_it(stand: Stand) -> None:
    """Upstream names the file by hand; a resume starts from last.ckpt only."""
    stand.checkpoint(stand.experiment() / "epoch=1.ckpt", step=700)
    _, ways = refused(stand.pre("init=resume", "max_steps=800"))
    go_on = way(ways, "go on from epoch=1.ckpt (global_step 700")
    subprocess.run(go_on.partition(": ")[2], shell=True, check=True)
    assert runs_as(stand.pre("init=resume", "max_steps=800"), "resume")


def test_resume_with_a_checkpoint_given_is_refused(stand: Stand) -> None:
    stand.last(step=10)
    given = stand.checkpoint(stand.folder / "given.ckpt", step=5)
    message, ways = refused(stand.pre("init=resume", "max_steps=20", f"init.ckpt={given}"))
    assert f"init.ckpt={given} has no place in it" in message
    assert runs_as(stand.follow(way(ways, "resume")), "resume")
    assert runs_as(stand.follow(way(ways, "warm-start")), "warmstart")


@pytest.mark.parametrize("content", [None, b"", b"root:x:0:0"])
@pytest.mark.parametrize("mode", ["scratch", "resume", "warmstart"])
def test_no_warm_start_is_offered_from_what_has_no_weights(stand: Stand, mode: str, content: bytes | None) -> None:
    given = stand.folder / "given.ckpt"
    if content is not None:
        given.write_bytes(content)
    message, ways = refused(stand.pre(f"init={mode}", f"init.ckpt={given}"))
    assert str(given) in message
    assert ways
    assert not any(f"init.ckpt={given}" in way for way in ways)
    assert runs_as(stand.follow(way(ways, "scratch")), "scratch")


def test_a_resume_from_nothing_is_not_offered(stand: Stand) -> None:
    given = stand.checkpoint(stand.folder / "given.ckpt")
    for word in (f"init.ckpt={given}", "init.overwrite=true"):
        _, ways = refused(stand.pre("init=resume", word))
        assert not any(way.startswith("resume") for way in ways)
        assert runs_as(stand.follow(way(ways, "scratch")), "scratch")


def test_resume_with_overwrite_would_move_away_what_it_goes_on_from(stand: Stand) -> None:
    stand.last(step=10)
    message, ways = refused(stand.pre("init=resume", "max_steps=20", "init.overwrite=true"))
    assert "init.overwrite=true" in message
    assert runs_as(stand.follow(way(ways, "resume")), "resume")


@pytest.mark.parametrize("max_steps", [1000, 999, 1])
def test_c21_resume_without_a_step_left_is_refused_with_both_numbers(stand: Stand, max_steps: int) -> None:
    stand.last(step=1000)
    message, ways = refused(stand.pre("init=resume", f"max_steps={max_steps}"))
    assert {1000, max_steps} <= numbers(message)
    assert "trained nothing" in message
    more = stand.follow(way(ways, "train on"))
    assert runs_as(more, "resume")
    assert more.subject.settings.max_steps == 2000
    again = stand.follow(way(ways, "warm-start"))
    assert runs_as(again, "warmstart")
    assert again.subject.settings.exp_id == "base2"


def test_c21_one_step_left_is_enough(stand: Stand) -> None:
    stand.last(step=1000)
    assert runs_as(stand.pre("init=resume", "max_steps=1001"), "resume")


def test_max_steps_of_minus_1_is_no_limit_whoever_says_so(stand: Stand) -> None:
    stand.last(step=1000)
    assert runs_as(stand.pre("init=resume", "max_steps=-1"), "resume")
    assert runs_as(stand.pre("init=resume"), "resume")  # the repository's own


def test_c21_the_repositorys_own_max_steps_counts_where_none_is_given(stand: Stand) -> None:
    home(stand.repository, changes={'"--max-steps", type=int, default=-1': '"--max-steps", type=int, default=800'})
    stand.last(step=1000)
    message, _ = refused(stand.pre("init=resume"))
    assert {1000, 800} <= numbers(message)


def test_c24_a_cut_last_ckpt_is_refused_and_the_newest_whole_one_offered_by_name(stand: Stand) -> None:
    last = stand.checkpoint.cut(stand.experiment() / "last.ckpt", step=3000)
    stand.checkpoint(stand.experiment() / "epoch=1.ckpt", step=1000, score=0.9)
    stand.checkpoint(stand.experiment() / "epoch=2.ckpt", step=2000, score=0.1)
    message, ways = refused(stand.pre("init=resume", "max_steps=4000"))
    assert f"{last} is not whole: cut short" in message
    assert "scratch" not in " ".join(ways)
    mend = way(ways, "go on from epoch=2.ckpt (global_step 2000")
    subprocess.run(mend.partition(": ")[2], shell=True, check=True)
    pre = stand.pre("init=resume", "max_steps=4000")
    assert runs_as(pre, "resume")
    assert pre.subject.identity.start_step == 2000
    assert (stand.experiment() / "last.ckpt.broken").exists()


def test_c24_a_cut_last_ckpt_alone_leaves_a_warm_start_elsewhere_or_starting_over(stand: Stand) -> None:
    stand.checkpoint.cut(stand.experiment() / "last.ckpt")
    stand.checkpoint(stand.experiment("other") / "best.ckpt")
    _, ways = refused(stand.pre("init=resume"))
    assert runs_as(stand.follow(way(ways, "warm-start")), "warmstart")
    assert runs_as(stand.follow(way(ways, "start over")), "scratch")


def test_c22_a_last_ckpt_that_is_a_link_resumes_and_is_said_to_be_one(stand: Stand) -> None:
    target = stand.checkpoint(stand.experiment() / "epoch=1.ckpt", step=1000)
    last = stand.experiment() / "last.ckpt"
    last.symlink_to(target)
    pre = stand.pre("init=resume", "max_steps=2000")
    assert runs_as(pre, "resume")
    (finding,) = of(pre, "LastIsCurrent")
    assert str(target) in finding.message
    subprocess.run(finding.fix[0], shell=True, check=True)
    assert last.is_file()
    assert not last.is_symlink()
    assert of(stand.pre("init=resume", "max_steps=2000"), "LastIsCurrent") == []


def test_c22_a_link_to_nothing_is_there_and_not_whole(stand: Stand) -> None:
    stand.experiment().mkdir(parents=True)
    (stand.experiment() / "last.ckpt").symlink_to("epoch=1.ckpt")
    assert "a link to nothing" in refused(stand.pre())[0]
    assert "a link to nothing" in refused(stand.pre("init=resume"))[0]


def test_c27_a_folder_that_exists_does_not_make_it_a_resume(stand: Stand) -> None:
    stand.last()
    assert refused(stand.pre())[0].startswith("init=scratch")


def test_c27_a_resume_that_finds_nothing_does_not_start_over(stand: Stand) -> None:
    stand.experiment().mkdir(parents=True)
    assert refused(stand.pre("init=resume"))[0].startswith("init=resume")


def test_a_repository_that_never_passes_ckpt_path_has_no_resume_without_the_bridge(public: Stand) -> None:
    public.last(step=1000)
    message, ways = refused(public.pre("init=resume", "max_steps=2000", "repo.bridge=false"))
    assert "never passes ckpt_path" in message
    assert "step 0" in message
    assert runs_as(public.follow(way(ways, "start over")), "scratch")


def test_ways_that_a_repository_does_not_go_are_not_offered(plain: Stand) -> None:
    plain.last(step=1000)
    for words in ((), ("init=resume",)):
        _, ways = refused(plain.pre(*words))
        assert not [w for w in ways if w.startswith(("resume", "warm-start"))]


# init=warmstart


def test_warmstart_without_a_checkpoint_lists_those_of_the_project_best_first(stand: Stand) -> None:
    stand.checkpoint(stand.experiment("low") / "best.ckpt", score=0.25)
    stand.checkpoint(stand.experiment("high") / "best.ckpt", score=0.75)
    message, ways = refused(stand.pre("init=warmstart"))
    assert "no checkpoint is given" in message
    assert "/high/" in ways[0]
    assert "/low/" in ways[1]
    assert runs_as(stand.follow(ways[1]), "warmstart")


def test_warmstart_from_a_file_that_is_missing_names_it(stand: Stand) -> None:
    stand.checkpoint(stand.experiment("other") / "best.ckpt")
    message, ways = refused(stand.pre("init=warmstart", "init.ckpt=gone.ckpt"))
    assert f"init.ckpt={stand.folder / 'gone.ckpt'}: missing" in message
    assert runs_as(stand.follow(ways[0]), "warmstart")


def test_a_path_quoted_for_hydra_is_told_to_need_no_quotes(stand: Stand) -> None:
    stand.checkpoint(stand.folder / "a=b.ckpt")
    message, _ = refused(stand.pre("init=warmstart", "init.ckpt='a=b.ckpt'"))
    assert "no quotes" in message


def test_warmstart_from_a_cut_file_says_so(stand: Stand) -> None:
    cut = stand.checkpoint.cut(stand.folder / "cut.ckpt")
    message, ways = refused(stand.pre("init=warmstart", f"init.ckpt={cut}"))
    assert f"init.ckpt={cut}: cut short" in message
    assert runs_as(stand.follow(way(ways, "scratch")), "scratch")


def test_warmstart_from_a_file_without_weights_is_refused_and_others_are_listed(stand: Stand) -> None:
    empty = stand.checkpoint(stand.experiment("empty") / "empty.ckpt", weights=False)
    stand.checkpoint(stand.experiment("full") / "full.ckpt", score=0.1)
    message, ways = refused(stand.pre("init=warmstart", f"init.ckpt={empty}"))
    assert f"init.ckpt={empty} holds no weights" in message
    assert len(ways) == 1
    assert runs_as(stand.follow(ways[0]), "warmstart")


def test_warmstart_with_a_last_ckpt_is_refused_since_the_repository_would_decide(stand: Stand) -> None:
    stand.last(step=1000)
    given = stand.checkpoint(stand.folder / "given.ckpt")
    pre = stand.pre("init=warmstart", f"init.ckpt={given}")
    assert pre.subject.identity.actual == "undecided"
    message, ways = refused(pre)
    assert str(stand.experiment()) in message
    over = stand.follow(way(ways, "warm-start, the old folder is moved aside"))
    assert runs_as(over, "warmstart")
    assert over.subject.plan.moved_to is not None
    assert runs_as(stand.follow(way(ways, "warm-start elsewhere")), "warmstart")
    assert runs_as(stand.follow(way(ways, "resume")), "resume")


@pytest.mark.parametrize("how", ["absolute", "relative", "through a link", "with dots"])
def test_a_checkpoint_within_the_folder_that_is_moved_aside_goes_along(stand: Stand, how: str) -> None:
    inside = stand.last()
    (stand.folder / "link").symlink_to(stand.runs)
    given = {
        "absolute": str(inside),
        "relative": str(inside.relative_to(stand.folder)),
        "through a link": "link/melody/base/checkpoints/last.ckpt",
        "with dots": f"code/../{inside.relative_to(stand.folder)}",
    }[how]
    pre = stand.pre("init=warmstart", f"init.ckpt={given}", "init.overwrite=true")
    assert runs_as(pre, "warmstart")
    assert pre.subject.plan.moved_to is not None
    moved = pre.subject.plan.moved_to / "checkpoints" / "last.ckpt"
    assert option(pre.subject.plan.argv, "--init-ckpt") == str(moved)


@pytest.mark.parametrize("place", ["elsewhere", "beside it"])
def test_a_link_to_a_file_that_goes_along_is_followed_there(stand: Stand, place: str) -> None:
    """The link itself would lead to nothing after the move."""
    stand.last()
    target = stand.checkpoint(stand.experiment() / "epoch=1.ckpt")
    link = (stand.folder if place == "elsewhere" else stand.experiment()) / "best.ckpt"
    link.symlink_to(target)
    pre = stand.pre("init=warmstart", f"init.ckpt={link}", "init.overwrite=true")
    assert pre.subject.plan.moved_to is not None
    assert option(pre.subject.plan.argv, "--init-ckpt") == str(pre.subject.plan.moved_to / "checkpoints/epoch=1.ckpt")


def test_a_link_within_that_folder_is_followed_to_a_file_outside_of_it(stand: Stand) -> None:
    stand.last()
    outside = stand.checkpoint(stand.folder / "outside.ckpt")
    link = stand.experiment() / "link.ckpt"
    link.symlink_to(outside)
    pre = stand.pre("init=warmstart", f"init.ckpt={link}", "init.overwrite=true")
    assert pre.subject.plan.moved_to is not None
    assert option(pre.subject.plan.argv, "--init-ckpt") == str(pre.subject.plan.moved_to / "checkpoints/link.ckpt")


def test_a_checkpoint_elsewhere_stays_where_it_is(stand: Stand) -> None:
    stand.last()
    given = stand.last("other")
    pre = stand.pre("init=warmstart", f"init.ckpt={given}", "init.overwrite=true")
    assert option(pre.subject.plan.argv, "--init-ckpt") == str(given)


def test_amt_init_ckpt_names_the_checkpoint_and_the_evidence_says_so(stand: Stand) -> None:
    given = stand.checkpoint(stand.folder / "given.ckpt")
    pre = stand.pre("init=warmstart", AMT_INIT_CKPT=str(given))
    assert runs_as(pre, "warmstart")
    assert "(from AMT_INIT_CKPT)" in pre.subject.identity.evidence[2]
    assert pre.subject.decision("init.ckpt").origin.who == "environment"


def test_amt_init_ckpt_does_not_make_a_scratch_run_a_warm_start(stand: Stand) -> None:
    given = stand.checkpoint(stand.folder / "given.ckpt")
    assert runs_as(stand.pre(AMT_INIT_CKPT=str(given)), "scratch")


def test_the_command_line_beats_amt_init_ckpt(stand: Stand) -> None:
    one, two = (stand.checkpoint(stand.folder / name) for name in ("one.ckpt", "two.ckpt"))
    pre = stand.pre("init=warmstart", f"init.ckpt={one}", AMT_INIT_CKPT=str(two))
    assert pre.subject.identity.checkpoint == one
    assert "(from command line)" in pre.subject.identity.evidence[2]


def test_the_mapping_may_name_the_best_of_an_experiment(stand: Stand) -> None:
    stand.checkpoint(stand.experiment("first") / "a.ckpt", step=10, score=0.5)
    best = stand.checkpoint(stand.experiment("first") / "b.ckpt", step=20, score=0.75)
    pre = stand.pre("init=warmstart", "repo.init_ckpt=best of first")
    assert runs_as(pre, "warmstart")
    assert pre.subject.identity.checkpoint == best
    assert "(from repo.init_ckpt: best of first)" in pre.subject.identity.evidence[2]
    assert "best of first" in pre.subject.decision("init.ckpt").origin.where


def test_the_mappings_experiment_may_have_no_checkpoint(stand: Stand) -> None:
    message, _ = refused(stand.pre("init=warmstart", "repo.init_ckpt=best of first"))
    assert "best of first has none" in message


def test_a_repository_without_a_flag_for_it_has_no_warm_start(plain: Stand) -> None:
    given = plain.checkpoint(plain.folder / "given.ckpt")
    pre = plain.pre("init=warmstart", f"init.ckpt={given}")
    assert pre.subject.identity.actual == "scratch"
    message, ways = refused(pre)
    assert "no flag for an init checkpoint" in message
    assert runs_as(plain.follow(way(ways, "scratch")), "scratch")


def test_a_flag_that_nothing_reads_is_no_warm_start_either(stand: Stand) -> None:
    home(stand.repository, changes={"args.warmup_steps, args.init_ckpt, ": "args.warmup_steps, "})
    given = stand.checkpoint(stand.folder / "given.ckpt")
    message, _ = refused(stand.pre("init=warmstart", f"init.ckpt={given}", "repo.bridge=false"))
    assert "no flag for an init checkpoint" in message


def test_forced_warmstart_without_a_checkpoint_does_not_speak_of_one(stand: Stand) -> None:
    message, _ = refused(stand.pre("init=warmstart", AMT_FORCE_SCRATCH="1"))
    assert "checkpoint is given" not in message
    assert "init=warmstart" in message


# The commands themselves.


def test_every_way_keeps_the_folder_of_configs_that_was_named(stand: Stand) -> None:
    configs = stand.folder / "my configs"
    (configs / "experiment").mkdir(parents=True)
    (configs / "experiment" / "mine.yaml").write_text("# @package _global_\nmax_steps: 2000\n")
    stand.last(step=1000)
    first = stand.follow(
        f"python -m amt_hydra --config-dir {shlex.quote(str(configs))} experiment=mine "
        f"repo.path={shlex.quote(str(stand.repository))}"
    )
    _, ways = refused(first)
    assert runs_as(stand.follow(way(ways, "resume")), "resume")


def test_the_tree_is_the_only_thing_that_a_way_needs(stand: Stand, tmp_path: Path) -> None:
    """A path from a project in another folder: with glob characters, quotes and spaces in it."""
    runs = tmp_path / "runs [x]*? 'a' \"b\""
    stand.checkpoint(runs / "melody" / "other" / "checkpoints" / "best.ckpt")
    _, ways = refused(stand.pre("init=resume", "repo.runs_from=[]", f"repo.runs={runs}"))
    assert runs_as(stand.follow(way(ways, "warm-start")), "warmstart")
