"""model=…: each published recipe reaches the repository, flag by flag; the expected lists are written by hand."""

import pytest
from family_repos import with_model
from stand import Stand, errors, of, option

pytest_plugins = ["desks"]

# As published, in the long spelling: -enc perceiver-tf -ac spec -hop 300 -atc 1 …
SINGLE = {
    "--encoder-type": "perceiver-tf",
    "--audio-codec": "spec",
    "--hop-length": "300",
    "--attention-to-channel": "true",
}
MULTI = {**SINGLE, "--task": "mc13_full_plus_256", "--decoder-type": "multi-t5", "--num-latents": "26"}
MOE = {
    **MULTI,
    "--sca-use-query-residual": "true",
    "--ff-layer-type": "moe",
    "--ff-widening-factor": "4",
    "--moe-num-experts": "8",
    "--moe-topk": "2",
    "--hidden-act": "silu",
    "--encoder-position-encoding-type": "rope",
    "--rope-partial-pe": "true",
}
# What a recipe leaves to the family's defaults: a fork may have others.
LENGTHS = {"--input-frames": "32767", "--event-length": "1024"}
PLAIN = {
    "--sca-use-query-residual": "false",
    "--ff-layer-type": "mlp",
    "--ff-widening-factor": "1",
    "--hidden-act": "gelu",
    "--encoder-position-encoding-type": "trainable",
}
DEFAULTS = {
    "ymt3_plus": {
        **LENGTHS,
        "--task": "mt3_full_plus",
        "--encoder-type": "t5",
        "--decoder-type": "t5",
        "--audio-codec": "melspec",
        "--hop-length": "128",
        "--n-mels": "512",
    },
    "yptf_single": {**LENGTHS, **PLAIN, "--task": "mt3_full_plus", "--decoder-type": "t5", "--num-latents": "24"},
    "yptf_multi": {**LENGTHS, **PLAIN},
    "yptf_moe_multi": LENGTHS,
}
PUBLISHED = {"ymt3_plus": {}, "yptf_single": SINGLE, "yptf_multi": MULTI, "yptf_moe_multi": MOE}
OTHER_FLAGS = {"--project", "--precision", "--optimizer", "--num-gpus", "--num-nodes", "--wandb-mode", "--init-ckpt"}


def architecture(argv: tuple[str, ...]) -> dict[str, str]:
    """The options of train.py's command line that say what the model is."""
    return {word: option(argv, word) for word in argv if word.startswith("--") and word not in OTHER_FLAGS}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_warm_start_carries_every_flag_that_its_checkpoint_needs(model: Stand, name: str) -> None:
    takes = 'parser.add_argument("--init-ckpt", type=str, default=None)\n'
    with_model(
        model.repository, {"args = parser.parse_args()\n": f"{takes}args = parser.parse_args()\nargs.init_ckpt\n"}
    )
    ckpt = model.checkpoint(model.folder / "model.ckpt")
    pre = model.pre(f"model={name}", "init=warmstart", f"init.ckpt={ckpt}")
    assert errors(pre) == []
    argv = pre.subject.plan.argv
    assert option(argv, "--init-ckpt") == str(ckpt)
    assert architecture(argv) == {**PUBLISHED[name], **DEFAULTS[name]}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_recipes_have_nothing_to_be_said_about(model: Stand, name: str) -> None:
    pre = model.pre(f"model={name}", "max_steps=50000", "val_interval=2000")
    about = ("TaskFitsDecoder", "EncoderFitsDecoder", "MelsFitModel", "SettingReaches", "ValueFits")
    assert [f for check in about for f in of(pre, check)] == []


def test_a_fork_with_other_defaults_builds_the_model_of_the_checkpoint_all_the_same(model: Stand) -> None:
    with_model(model.repository, {'"n_mels": 512': '"n_mels": 229', '"hop_length": 128': '"hop_length": 160'})
    argv = model.pre("model=ymt3_plus").subject.plan.argv
    assert (option(argv, "--n-mels"), option(argv, "--hop-length")) == ("512", "128")


def test_default_leaves_the_architecture_to_the_repository(model: Stand) -> None:
    assert architecture(model.pre("model=default").subject.plan.argv) == {}


def test_a_key_beside_the_option_wins(model: Stand) -> None:
    argv = model.pre("model=yptf_moe_multi", "model.moe_num_experts=4").subject.plan.argv
    assert architecture(argv) == {**MOE, **LENGTHS, "--moe-num-experts": "4"}


def test_a_repository_that_knows_none_of_it_is_refused_with_each_key_named(bundled: Stand) -> None:
    pre = bundled.pre("model=yptf_moe_multi")
    assert {f.id for f in pre.stopped} == {"SettingReaches"}
    said = "\n".join(f.message for f in pre.stopped)
    for key in ("task=mc13_full_plus_256", "encoder_type=perceiver-tf", "moe_num_experts=8", "hop_length=300"):
        assert f"model.{key}" in said
    assert "no flag or variable of the repository takes" in said


def test_they_are_refused_in_one_go_and_the_way_out_leaves_the_option_out(bundled: Stand) -> None:
    (finding,) = of(bundled.pre("model=yptf_moe_multi"), "SettingReaches")
    assert all(f"model.{key}" in finding.message for key in ("task=mc13_full_plus_256", "moe_topk=2", "hop_length=300"))
    assert "model=" not in finding.fix[0]
    assert errors(bundled.follow(finding.fix[0])) == []


def test_what_a_fork_lacks_of_a_recipe_is_named_in_one_go_and_the_rest_of_it_stays(model: Stand) -> None:
    source = {
        'parser.add_argument("-act", "--hidden-act", type=str, default=None)\n': "",
        'parser.add_argument("-kmoe", "--moe-topk", type=int, default=None)\n': "",
        "print(args.moe_num_experts, args.moe_topk, args.hidden_act,": "print(args.moe_num_experts,",
        '            "moe_topk": 2,\n            "hidden_act": "gelu",\n': "",
    }
    with_model(model.repository, source)
    (finding,) = of(model.pre("model=yptf_moe_multi"), "SettingReaches")
    assert finding.message.startswith("model.moe_topk=2, model.hidden_act=silu: ")
    followed = model.follow(finding.fix[0])
    assert of(followed, "SettingReaches") == []
    assert architecture(followed.subject.plan.argv).keys() == {*MOE, *LENGTHS} - {"--moe-topk", "--hidden-act"}
