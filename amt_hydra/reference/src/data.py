"""Clips for training, numbered and reproducible, and a fixed set of recordings for validation."""

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
from config import audio_cfg, model_cfg, shared_cfg
from folder import Recording, divide, read_folder
from numpy.typing import NDArray
from synth import gain, make_clip
from torch.utils.data import DataLoader, Dataset

Clip = tuple[NDArray[np.float32], NDArray[np.float64]]
TRAINING, VALIDATION = 0, 1  # the first word of every seed, so that no training clip can be a validation clip


def leave_ctrl_c(worker: int) -> None:  # noqa: ARG001 -- as a DataLoader calls it
    """A terminal sends Ctrl-C to loader workers too: without them the last step could not be finished."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def targets(notes: NDArray[np.float64], frames: int, hop: float, lowest: int, pitches: int) -> NDArray[np.float32]:
    """Return onset and frame targets (2, frames, pitches) for notes in seconds; `hop` is in seconds per frame.

    An onset fills its nearest frame and half of each neighbour, since an annotated time is never exact.
    """
    maps = np.zeros((2, frames, pitches), dtype=np.float32)
    for onset, offset, pitch in notes:
        column, first, last = round(pitch) - lowest, round(onset / hop), round(offset / hop)
        if not 0 <= column < pitches:
            continue
        for frame, value in ((first - 1, 0.5), (first, 1.0), (first + 1, 0.5)):
            if onset >= 0 and 0 <= frame < frames:  # a note that began before the clip has no onset in it
                maps[0, frame, column] = max(maps[0, frame, column], value)
        maps[1, max(0, first) : max(first + 1, last), column] = 1.0
    return maps


def label(sound: NDArray[np.float32], notes: NDArray[np.float64]) -> dict[str, Any]:
    """Return a clip's sound (samples,) and its targets, each (frames, pitches)."""
    frames, hop = len(sound) // audio_cfg["hop_length"] + 1, audio_cfg["hop_length"] / audio_cfg["sample_rate"]
    onset, frame = targets(notes, frames, hop, model_cfg["lowest_pitch"], model_cfg["n_pitches"])
    return {"audio": sound, "onset": onset, "frame": frame}


def cut_clip(rng: np.random.Generator, recordings: list[Recording], samples: int, rate: int, transpose: float) -> Clip:
    """Return a random stretch of the recordings, transposed by resampling, which also changes its speed."""
    lengths = np.array([len(r.audio) for r in recordings], dtype=np.float64)
    recording = recordings[int(rng.choice(len(recordings), p=lengths / lengths.sum()))]
    semitones = float(rng.uniform(-transpose, transpose))
    speed = 2.0 ** (semitones / 12.0)
    start = rng.uniform(0.0, max(0.0, len(recording.audio) - samples * speed))
    positions = start + speed * np.arange(samples)
    audio = np.interp(positions, np.arange(len(recording.audio)), recording.audio, right=0.0).astype(np.float32)
    notes = (recording.notes - [start / rate, start / rate, 0.0]) / [speed, speed, 1.0] + [0.0, 0.0, semitones]
    return audio * gain(rng, -10.0, 5.0), notes[(notes[:, 1] > 0.0) & (notes[:, 0] < samples / rate)]


class Clips(Dataset[dict[str, Any]]):
    """Clip `i` is `make(generator)` of a generator seeded by (seed, i), whoever asks and whenever."""

    def __init__(self, make: Callable[[np.random.Generator], Clip], seed: int) -> None:
        self.make, self.seed = make, seed

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return clip `index`, labelled."""
        return label(*self.make(np.random.default_rng([TRAINING, self.seed, index])))


class Melodies(pl.LightningDataModule):
    """The loaders of a preset."""

    def __init__(
        self, preset: dict[str, Any], home: str, val_clips: int | None, seed: int, local: int, workers: int
    ) -> None:
        super().__init__()
        self.local, self.workers = local, workers
        rate, seconds = audio_cfg["sample_rate"], shared_cfg["DATAIO"]["clip_seconds"]
        make: Callable[[np.random.Generator], Clip]
        if preset["source"] == "synth":
            make = partial(make_clip, seconds=seconds, rate=rate)
            seeds = [[VALIDATION, preset["eval_seed"], i] for i in range(val_clips or preset["eval_clips"])]
            held_out = [make_clip(np.random.default_rng(words), preset["eval_seconds"], rate) for words in seeds]
        else:
            train, validation = divide(read_folder(Path(home), rate), rate, preset["validation_part"])
            samples, transpose = round(seconds * rate), preset["transpose_semitones"]
            make = partial(cut_clip, recordings=train, samples=samples, rate=rate, transpose=transpose)
            held_out = [(recording.audio, recording.notes) for recording in validation]
        self.train = Clips(make, seed)
        self.validation: Any = [label(audio, notes) | {"notes": notes} for audio, notes in held_out]

    def train_dataloader(self) -> DataLoader[dict[str, Any]]:
        """Return an epoch's batches of local clips, from wherever training stands: a resume continues the stream."""
        trainer, cfg = self.trainer, shared_cfg["DATAIO"]
        assert trainer is not None
        first = trainer.global_step * trainer.accumulate_grad_batches
        count = cfg["steps_per_epoch"] * trainer.accumulate_grad_batches
        starts = [(i * trainer.world_size + trainer.global_rank) * self.local for i in range(first, first + count)]
        return DataLoader(
            self.train,
            batch_sampler=[list(range(start, start + self.local)) for start in starts],
            num_workers=self.workers,
            prefetch_factor=cfg["prefetch_factor"] if self.workers else None,
            worker_init_fn=leave_ctrl_c,
        )

    def val_dataloader(self) -> DataLoader[dict[str, Any]]:
        """Return the validation recordings one by one, since their lengths differ."""
        return DataLoader(self.validation, batch_size=1)
