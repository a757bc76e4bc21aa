"""Whether the parts of the model fit one another: task, encoder, decoder, spectrogram."""

from collections.abc import Iterator

from amt_hydra.checks.base import Check, Finding, Subject, closest, number
from amt_hydra.errors import nearest
from amt_hydra.repository.facts import Task

_ENCODERS_OF_FEATURES = ("t5", "conformer")
"""Encoders that take a frame of the spectrogram as it is, as one vector of their width."""
_PAIRS = "model_cfg.pre_decoder_type_default."
"""Of upstream's config.py: per encoder and decoder that go together, what projects the one for the other."""
_CHANNELS = "model_cfg.decoder.multi-t5.num_channels"
_NO_PRE_ENCODER = (None, "none", "None", "0")
_HALVED = 8
"""The convolution before Perceiver-TF halves the bins three times (PreEncoderBlockRes3B)."""
_KV_DIM = 128
"""Width that Perceiver-TF takes, where config.py says none: the default of its PerceiverTFConfig."""


class TaskFitsDecoder(Check):
    """The task is one of task.py, with the channels that the decoder writes.

    t5 writes one sequence of tokens, multi-t5 one per channel. A singing task on multi-t5 dies in the first batch, and
    a task that is not there after the start-up.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look the task up, and count its channels."""
        name, decoder, tasks = subject.effective("model.task"), _text(subject, "decoder_type"), subject.repository.tasks
        if not tasks or not isinstance(name, str):
            return
        if name not in tasks:
            yield self._unknown(subject, name)
        elif not _fits(subject, tasks[name], decoder):
            wanted = _channels(subject)
            takes = "1" if decoder == "t5" else str(wanted) if wanted else "several"
            fitting = [other for other, task in tasks.items() if task.channels and _fits(subject, task, decoder)]
            close = closest(name, fitting, subject.decision("model.task").own)
            yield self.error(
                f"model.task={name} decodes in {tasks[name].channels} (at {tasks[name].place}), and the decoder "
                f"{decoder} ({subject.where('model.decoder_type')}) in {takes}, counted in channels; tasks that fit: "
                f"{', '.join(fitting) or 'none'}",
                *([subject.set_to("model.task", close)] if close else []),
                *([subject.set_to("model.decoder_type", "t5")] if tasks[name].channels == 1 else []),
            )

    def _unknown(self, subject: Subject, name: str) -> Finding:
        tasks = subject.repository.tasks
        close, file = nearest(name, list(tasks)), next(iter(tasks.values())).place.file
        return self.error(
            f"model.task={name} ({subject.where('model.task')}): {file} has no such task",
            f"the nearest: {subject.set_to('model.task', close)}" if close else f"there are: {', '.join(tasks)}",
        )


class EncoderFitsDecoder(Check):
    """The encoder and the decoder are a pair that the repository implements, and of sizes that go together.

    It says so itself only when the model is made, after the start-up, by an assertion without words, or by the shapes
    of the first batch.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look the pair up in config.py's table of what stands between the two; compare latents or widths."""
        encoder, decoder = _text(subject, "encoder_type"), _text(subject, "decoder_type")
        pairs = {k.removeprefix(_PAIRS): v for k, v in subject.repository.config.items() if k.startswith(_PAIRS)}
        pairs = {name: value for name, value in pairs.items() if name.count(".") == 1}
        if not encoder or not decoder or not pairs:
            return
        pair = pairs.get(f"{encoder}.{decoder}")
        if pair is None:
            file, known = next(iter(pairs.values())).place.file, [name.split(".") for name in pairs]
            yield self.error(
                f"model.encoder_type={encoder} ({subject.where('model.encoder_type')}) and "
                f"model.decoder_type={decoder} ({subject.where('model.decoder_type')}): {file} knows no such pair; "
                f"there are {', '.join(' + '.join(one) for one in known)}",
                *(subject.set_to("model.encoder_type", one) for one, other in known if other == decoder),
                *(subject.set_to("model.decoder_type", other) for one, other in known if one == encoder),
            )
        elif (encoder, decoder) == ("perceiver-tf", "multi-t5"):
            yield from self._latents(subject)
        elif encoder in _ENCODERS_OF_FEATURES and pair.value is None:
            yield from self._widths(subject, encoder, decoder)

    def _latents(self, subject: Subject) -> Iterator[Finding]:
        latents, channels = subject.whole_number("model.num_latents"), _channels(subject)
        if latents and channels and latents % channels:
            yield self.error(
                f"model.num_latents={latents} ({subject.where('model.num_latents')}) is no multiple of the {channels} "
                f"channels of multi-t5 ({_place(subject, _CHANNELS)})",
                subject.set_to("model.num_latents", (latents // channels + 1) * channels),
            )

    def _widths(self, subject: Subject, encoder: str, decoder: str) -> Iterator[Finding]:
        """Nothing stands between the two: what the encoder makes is what the decoder takes."""
        keys = [f"model_cfg.encoder.{encoder}.d_model", f"model_cfg.decoder.{decoder}.d_model"]
        made, taken = (number(subject.config_value(key)) for key in keys)
        if made and taken and made != taken:
            yield self.error(
                f"the {encoder} encoder makes d_model={made} ({_place(subject, keys[0])}), and the decoder takes "
                f"{taken} ({_place(subject, keys[1])})",
                subject.typed.changed(f"extra.config.{keys[1]}={made}"),
            )


class MelsFitModel(Check):
    """A frame of the spectrogram is as wide as the encoder takes it.

    The t5 and conformer encoders take a frame as it is: n_mels (melspec) or n_fft/2 bins (spec) must be their d_model.
    Otherwise the first batch dies.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare the bins with the width."""
        encoder, codec = _text(subject, "encoder_type"), _text(subject, "audio_codec")
        bins, source = _bins(subject, codec)
        before = _pre_encoder(subject, encoder)
        if bins is None or encoder is None:
            return
        if encoder in _ENCODERS_OF_FEATURES and before in _NO_PRE_ENCODER:
            key = f"model_cfg.encoder.{encoder}.d_model"
            width = number(subject.config_value(key))
            if width is not None and bins != width:
                yield self.error(
                    f"{source} makes frames of {bins} bins, and the {encoder} encoder takes d_model={width} "
                    f"({_place(subject, key)})",
                    self._mels(subject, codec, width),
                )
        elif encoder == "perceiver-tf" and before == "conv" and subject.effective("model.attention_to_channel") is True:
            known = number(subject.config_value("model_cfg.encoder.perceiver-tf.kv_dim"))
            width = known or _KV_DIM
            if bins // _HALVED != width:
                yield self.warning(
                    f"{source} makes frames of {bins} bins, the convolution before perceiver-tf makes them "
                    f"{bins // _HALVED}, and it takes {width}" + ("" if known else " (assumed: upstream's kv_dim)"),
                    *self._of_perceiver(subject, width),
                )

    def _mels(self, subject: Subject, codec: str | None, width: int) -> str:
        """n_mels of that width, with the codec that has mel bins."""
        if codec == "melspec":
            return subject.set_to("model.n_mels", width)
        return subject.typed.changed("model.audio_codec=melspec", f"model.n_mels={width}")

    def _of_perceiver(self, subject: Subject, width: int) -> list[str]:
        spec, _ = _bins(subject, "spec")
        linear = [subject.set_to("model.audio_codec", "spec")] if spec and spec // _HALVED == width else []
        return [*linear, self._mels(subject, _text(subject, "audio_codec"), width * _HALVED)]


def _channels(subject: Subject) -> int | None:
    """How many channels multi-t5 writes, where config.py says so."""
    return number(subject.config_value(_CHANNELS))


def _fits(subject: Subject, task: Task, decoder: str | None) -> bool:
    """Whether a decoder can write a task; what cannot be told fits."""
    if task.channels is None or decoder not in ("t5", "multi-t5"):
        return True
    if decoder == "t5":
        return task.channels == 1
    wanted = _channels(subject)
    return task.channels > 1 if wanted is None else task.channels == wanted


def _bins(subject: Subject, codec: str | None) -> tuple[int | None, str]:
    """Bins of a frame, and what decides them in words."""
    if codec == "melspec":
        bins = subject.whole_number("model.n_mels")
        return bins, f"model.n_mels={bins} ({subject.where('model.n_mels')})"
    size = number(subject.config_value("audio_cfg.n_fft")) if codec == "spec" else None
    source = f"model.audio_codec=spec with n_fft={size} ({_place(subject, 'audio_cfg.n_fft')})"
    return (size // 2 if size else None), source


def _pre_encoder(subject: Subject, encoder: str | None) -> object:
    """What stands between the spectrogram and the encoder."""
    given = subject.flag_value("pre_encoder_type")
    if given in (None, "default"):
        given = subject.config_value("model_cfg.pre_encoder_type")
    return subject.config_value(f"model_cfg.pre_encoder_type_default.{encoder}") if given == "default" else given


def _text(subject: Subject, name: str) -> str | None:
    value = subject.effective(f"model.{name}")
    return value if isinstance(value, str) else None


def _place(subject: Subject, key: str) -> str:
    if key in subject.settings.extra.config:
        return f"extra.config.{key}"
    found = subject.repository.config.get(key)
    return str(found.place) if found else key
