"""The arithmetic of this family's data module: presets, samples of an epoch, the cache of its loaders."""

from collections.abc import Iterator, Mapping

from amt_hydra.checks.base import Check, Finding, Subject, closest, number
from amt_hydra.checks.setting_checks import PresetExists
from amt_hydra.preset_faults import preset_faults
from amt_hydra.repository.facts import Preset
from amt_hydra.resolve import batch_part

_SAMPLES = "train_num_samples_per_epoch"
_FILES_PER_CLIP = 4
"""Files that the loader's cache holds per clip of a sub-batch, where cross-stem augmentation does not ask for more.
A constant of upstream's datasets_train.py: a fork may have another, so what follows from it only warns."""
_MAX_K = "shared_cfg.AUGMENTATION.train_stem_xaug_policy.max_k"


class PresetTrains(Check):
    """The data preset can be trained on: its parts are there, and each has what is read of it.

    Each of these dies after the start-up, when the data module is made or set up; without a validation split nothing
    dies, and only last.ckpt is written.
    """

    requires = (PresetExists,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Look at the preset and at the single presets that it names."""
        name, presets = subject.effective("data_presets.name"), subject.repository.presets
        preset = presets.get(name) if isinstance(name, str) else None
        if not isinstance(name, str) or not isinstance(preset, Preset):
            return
        ways = _sound(subject, name)
        at = f"data_presets={name} ({preset.place})"
        faults = preset_faults(preset, name, presets, counts_vocabulary=not subject.flag_value("eval_program_vocab"))
        for fault, way in faults:
            yield self.error(f"{at} {fault}", *([way] if way else []), *ways)
        if not faults and not _validated(name, presets):
            yield self.warning(
                f"{at} has no validation split: no checkpoint is ranked, only last.ckpt is written", *ways
            )


class SamplesPerEpoch(Check):
    """An epoch has as many samples as the loaders need to fill their cache.

    Each loader fills its cache from its sampler before the first batch. One that is too short for it is an assertion
    without words; a larger batch needs more samples.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Count the sampler's draws per rank, and the files of the cache."""
        samples, batches = number(subject.flag_value(_SAMPLES)), _epoch(subject)
        local, sub = (batch_part(subject.settings, subject.channels, part) for part in ("local", "sub"))
        if batches is None or not local or not sub or local % sub:
            return
        asked = number(subject.flag_value("xaug_max_k"))
        most = asked if asked is not None else number(subject.config_value(_MAX_K))
        per_clip = max(_FILES_PER_CLIP, (most or 0) + 1)
        if batches < per_clip * sub:
            ranks = _ranks(subject)
            least = local * ((per_clip * sub - 1) * ranks + 1)
            yield self.warning(
                f"{samples} samples per epoch are {batches} batches ({samples} / batch.local={local} / {ranks} ranks), "
                f"and each loader fills a cache of {per_clip * sub} files first ({per_clip} x batch.sub={sub}; "
                f"{per_clip} is upstream's): it dies by an assertion without words. At least {least} are needed",
                subject.extra_flag(_SAMPLES, least),
            )


class FirstEpochEnds(Check):
    """Where no interval is set, the first validation is at the end of an epoch, and there is one before the run ends.

    An epoch is as long as the samples per epoch make it, whatever the data set. Without a validation no monitored
    checkpoint can exist.
    """

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Compare the batches of the epochs up to it with those of the run."""
        steps, batches = subject.whole_number("max_steps"), _epoch(subject)
        limit = subject.config_value("shared_cfg.TRAINER.limit_train_batches")
        if subject.whole_number("val_interval") is not None or not batches or limit not in (None, 1.0):
            return
        if steps is None or steps <= 0:
            return
        whole = steps * (subject.whole_number("batch.accumulate") or 1)
        epochs = number(subject.config_value("shared_cfg.TRAINER.check_val_every_n_epoch")) or 1
        if batches * epochs > whole:
            yield self.warning(
                f"the first validation is after {batches * epochs} batches (an epoch has {batches}; "
                f"check_val_every_n_epoch={epochs}), and the run ends after {whole}: no validation, and no checkpoint "
                "ranked by the monitor",
                subject.set_to("val_interval", max(1, whole // 4)),
            )


def _ranks(subject: Subject) -> int:
    devices = subject.settings.ddp.devices
    return (devices if isinstance(devices, int) else 1) * subject.settings.ddp.nodes


def _epoch(subject: Subject) -> int | None:
    """Batches of an epoch on one rank. None where the number of samples is the data set's, or cannot be told."""
    samples = number(subject.flag_value(_SAMPLES))
    local = batch_part(subject.settings, subject.channels, "local")
    if not samples or samples < 0 or not local:
        return None
    return -(-(samples // local) // _ranks(subject))  # the distributed sampler rounds up


def _validated(name: str, presets: Mapping[str, Preset]) -> bool:
    """Whether a preset without faults has a validation split somewhere."""
    members = presets[name].members
    return any("validation_split" not in presets[m].lacks for m in (members if members is not None else (name,)))


def _sound(subject: Subject, name: str) -> list[str]:
    """The command with a preset that can be trained on and validated."""
    presets = subject.repository.presets
    sound = [
        key for key, entry in presets.items() if not preset_faults(entry, key, presets) and _validated(key, presets)
    ]
    other = closest(name, sound, subject.decision("data_presets.name").own)
    return [f"one that trains: {subject.typed.changed(f'data_presets={other}')}"] if other else []
