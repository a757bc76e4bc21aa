"""Task, encoder, decoder and spectrogram against one another; what the fixture's config.py and task.py say decides."""

from pathlib import Path

import pytest
from family_repos import with_model
from repos import line_of
from stand import Stand, of

pytest_plugins = ["desks"]


def config(stand: Stand) -> Path:
    return stand.repository / "amt/src/config/config.py"


def tasks(stand: Stand) -> Path:
    return stand.repository / "amt/src/config/task.py"


# TaskFitsDecoder


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("model.task=singing_v1",),
        ("model.task=counted",),  # how many channels it has cannot be told
        ("model=yptf_multi",),
        ("model=yptf_multi", "model.task=counted"),
    ],
)
def test_a_task_that_the_decoder_can_write(model: Stand, words: tuple[str, ...]) -> None:
    assert of(model.pre(*words), "TaskFitsDecoder") == []


def test_a_singing_task_on_a_decoder_of_several_channels(model: Stand) -> None:
    pre = model.pre("model=yptf_multi", "model.task=singing_v1")
    (finding,) = of(pre, "TaskFitsDecoder")
    assert finding in pre.stopped
    assert f"model.task=singing_v1 decodes in 1 (at {line_of(tasks(model), 'singing_v1')})" in finding.message
    assert "the decoder multi-t5 (model=yptf_multi)" in finding.message
    assert finding.message.endswith(" in 13, counted in channels; tasks that fit: mc13_full_plus_256")
    settled = [model.follow(way) for way in finding.fix]
    assert [of(pre, "TaskFitsDecoder") for pre in settled] == [[], []]
    assert [pre.subject.settings.model.task for pre in settled] == ["mc13_full_plus_256", "singing_v1"]
    assert [pre.subject.settings.model.decoder_type for pre in settled] == ["multi-t5", "t5"]


@pytest.mark.parametrize("task", ["mc13_full_plus_256", "mc11"])
def test_a_task_of_several_channels_on_a_decoder_of_one(model: Stand, task: str) -> None:
    (finding,) = of(model.pre(f"model.task={task}"), "TaskFitsDecoder")
    assert line_of(tasks(model), f'"{task}": {{') in finding.message
    assert f"the decoder t5 ({line_of(config(model), 'decoder_type')}) in 1" in finding.message
    assert finding.message.endswith("tasks that fit: mt3_full_plus, singing_v1")
    assert of(model.follow(finding.fix[0]), "TaskFitsDecoder") == []


def test_other_channels_than_the_decoder_has(model: Stand) -> None:
    (finding,) = of(model.pre("model=yptf_multi", "model.task=mc11"), "TaskFitsDecoder")
    assert "model.task=mc11 decodes in 11" in finding.message
    assert " in 13, counted in channels" in finding.message
    words = ("model=yptf_multi", "model.task=mc11", "extra.config.model_cfg.decoder.multi-t5.num_channels=11")
    assert of(model.pre(*words), "TaskFitsDecoder") == []


def test_a_task_that_is_not_there_gets_the_nearest(model: Stand) -> None:
    (finding,) = of(model.pre("model.task=singing"), "TaskFitsDecoder")
    assert finding.severity == "error"
    assert f"{tasks(model)} has no such task" in finding.message
    assert model.follow(finding.fix[0]).subject.settings.model.task == "singing_v1"


def test_the_repositorys_own_task_may_be_one_that_is_not_there(model: Stand) -> None:
    with_model(model.repository, {'default="mt3_full_plus"': 'default="mt3_fulll_plus"'})
    (finding,) = of(model.pre(), "TaskFitsDecoder")
    line = line_of(model.repository / "amt/src/train.py", '"--task"')
    assert finding.message.startswith(f"model.task=mt3_fulll_plus ({line})")
    assert of(model.follow(finding.fix[0]), "TaskFitsDecoder") == []


def test_a_name_like_no_other_gets_the_list(model: Stand) -> None:
    (finding,) = of(model.pre("model.task=xyz"), "TaskFitsDecoder")
    assert finding.fix == ("there are: mt3_full_plus, singing_v1, mc13_full_plus_256, mc11, counted",)


def test_a_repository_without_tasks_has_nothing_to_say(stand: Stand, bundled: Stand) -> None:
    assert of(stand.pre("model.task=singing_v1"), "TaskFitsDecoder") == []
    assert of(bundled.pre(), "TaskFitsDecoder") == []


# EncoderFitsDecoder


@pytest.mark.parametrize(
    "words", [(), ("model=yptf_multi",), ("model=yptf_single",), ("model.encoder_type=conformer",)]
)
def test_a_pair_that_the_repository_implements(model: Stand, words: tuple[str, ...]) -> None:
    assert of(model.pre(*words), "EncoderFitsDecoder") == []


def test_a_pair_that_it_does_not(model: Stand) -> None:
    pre = model.pre("model.decoder_type=multi-t5")
    (finding,) = of(pre, "EncoderFitsDecoder")
    assert finding in pre.stopped
    assert finding.message.startswith(f"model.encoder_type=t5 ({line_of(config(model), 'encoder_type')}) and ")
    assert "there are t5 + t5, perceiver-tf + t5, perceiver-tf + multi-t5, conformer + t5" in finding.message
    to_perceiver, to_t5 = (model.follow(way) for way in finding.fix)
    assert to_perceiver.subject.settings.model.encoder_type == "perceiver-tf"
    assert to_t5.subject.settings.model.decoder_type == "t5"
    assert of(to_t5, "EncoderFitsDecoder") == []
    (left,) = of(to_perceiver, "EncoderFitsDecoder")
    assert "model.num_latents=24" in left.message


def test_latents_that_do_not_divide_among_the_channels(model: Stand) -> None:
    """Upstream's default of 24 among 13: an assertion without words."""
    (finding,) = of(model.pre("model=yptf_multi", "model.num_latents=null"), "EncoderFitsDecoder")
    latents, channels = line_of(config(model), '"num_latents"'), line_of(config(model), '"num_channels"')
    assert finding.message == (
        f"model.num_latents=24 ({latents}) is no multiple of the 13 channels of multi-t5 ({channels})"
    )
    followed = model.follow(finding.fix[0])
    assert of(followed, "EncoderFitsDecoder") == []
    assert followed.subject.settings.model.num_latents == 26


def test_an_encoder_that_is_not_as_wide_as_its_decoder(model: Stand) -> None:
    """Smaller mels take a smaller encoder, and that a smaller decoder: nothing stands between the two."""
    line = line_of(config(model), '"decoder": {"t5"')
    (finding,) = of(
        model.pre("model.n_mels=256", "extra.config.model_cfg.encoder.t5.d_model=256"), "EncoderFitsDecoder"
    )
    assert finding.message == (
        "the t5 encoder makes d_model=256 (extra.config.model_cfg.encoder.t5.d_model), and the decoder takes 512 "
        f"({line})"
    )
    followed = model.follow(finding.fix[0])
    assert [f for check in ("EncoderFitsDecoder", "MelsFitModel") for f in of(followed, check)] == []
    assert (
        of(model.pre("model=yptf_single", "extra.config.model_cfg.decoder.t5.d_model=256"), "EncoderFitsDecoder") == []
    )


def test_channels_set_for_this_run_count(model: Stand) -> None:
    words = ("model=yptf_multi", "model.num_latents=24", "extra.config.model_cfg.decoder.multi-t5.num_channels=12")
    assert of(model.pre(*words), "EncoderFitsDecoder") == []


def test_a_table_that_is_flat_cannot_be_judged(model: Stand) -> None:
    config(model).write_text(
        config(model).read_text().replace('"pre_decoder_type_default": {\n        "t5": {"t5": None},\n        '
        '"perceiver-tf": {"t5": "linear", "multi-t5": "shared"},\n        "conformer": {"t5": None},\n    },',
        '"pre_decoder_type_default": {"t5": None, "multi-t5": None},')
    )  # fmt: skip
    assert '"pre_decoder_type_default": {"t5"' in config(model).read_text()
    assert of(model.pre("model.decoder_type=multi-t5"), "EncoderFitsDecoder") == []


def test_a_config_without_such_a_table_cannot_be_judged(stand: Stand, public: Stand) -> None:
    assert of(stand.pre("model.decoder_type=multi-t5"), "EncoderFitsDecoder") == []
    assert of(public.pre("model.decoder_type=multi-t5"), "EncoderFitsDecoder") == []


# MelsFitModel


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("model=ymt3_plus",),
        ("model=yptf_single",),  # 2048 / 2 / 8 = 128
        ("model=yptf_moe_multi",),
        ("model.n_mels=256", "extra.config.model_cfg.encoder.t5.d_model=256"),
        ("model.encoder_type=conformer",),
        ("model.encoder_type=perceiver-tf", "model.n_mels=1024"),  # 1024 / 8
        ("model.encoder_type=perceiver-tf", "model.attention_to_channel=false"),  # 128 filters, whatever the bins
        ("model.n_mels=256", "extra.flags.pre_encoder_type=conv"),  # what comes of it cannot be told
    ],
)
def test_a_spectrogram_as_wide_as_the_encoder_takes_it(model: Stand, words: tuple[str, ...]) -> None:
    assert of(model.pre(*words), "MelsFitModel") == []


@pytest.mark.parametrize(
    ("words", "bins", "width", "line"),
    [
        (("model.n_mels=256",), 256, 512, '"t5": {"d_model": 512},'),
        (("model=ymt3_plus", "model.n_mels=229"), 229, 512, '"t5": {"d_model": 512},'),
        (("model.audio_codec=spec",), 1024, 512, '"t5": {"d_model": 512},'),
        (("model.encoder_type=conformer", "model.n_mels=80"), 80, 512, '"conformer": {"d_model": 512}'),
        (("model.n_mels=256", "extra.flags.pre_encoder_type=none"), 256, 512, '"t5": {"d_model": 512},'),
    ],
)
def test_a_frame_of_another_width_dies_in_the_first_batch(
    model: Stand, words: tuple[str, ...], bins: int, width: int, line: str
) -> None:
    pre = model.pre(*words)
    (finding,) = of(pre, "MelsFitModel")
    assert finding in pre.stopped
    assert f"makes frames of {bins} bins" in finding.message
    assert f"takes d_model={width} ({line_of(config(model), line)})" in finding.message
    followed = model.follow(finding.fix[0])
    assert of(followed, "MelsFitModel") == []
    assert followed.subject.settings.model.n_mels == width


def test_perceiver_on_the_melspec_that_the_others_use(model: Stand) -> None:
    """512 mel bins are 64 after the convolution, and upstream's encoder takes 128, which no config.py says."""
    (finding,) = of(model.pre("model.encoder_type=perceiver-tf"), "MelsFitModel")
    assert finding.severity == "warning"
    assert "makes them 64, and it takes 128 (assumed: upstream's kv_dim)" in finding.message
    settled = [model.follow(way) for way in finding.fix]
    assert [of(pre, "MelsFitModel") for pre in settled] == [[], []]
    assert [pre.subject.settings.model.audio_codec for pre in settled] == ["spec", None]


def test_a_width_that_config_says_is_taken_from_there(model: Stand) -> None:
    with_model(model.repository, {'"num_latents": 24,': '"num_latents": 24, "kv_dim": 64,'})
    assert of(model.pre("model.encoder_type=perceiver-tf"), "MelsFitModel") == []
    (finding,) = of(model.pre("model=yptf_single"), "MelsFitModel")
    assert finding.message.endswith("makes them 128, and it takes 64")
    assert of(model.follow(finding.fix[-1]), "MelsFitModel") == []


def test_mels_of_a_repository_without_a_model_in_its_config(stand: Stand, bundled: Stand) -> None:
    assert of(stand.pre("model.n_mels=7"), "MelsFitModel") == []
    assert of(bundled.pre(), "MelsFitModel") == []
