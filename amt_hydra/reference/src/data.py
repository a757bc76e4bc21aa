"""Clips for training, numbered and reproducible, and a fixed set of recordings for validation."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
import torch
from folder import Recording, divide, read_folder
from numpy.typing import NDArray
from synth import make_clip
from torch.utils.data import DataLoader, Dataset, Sampler

Clip = tuple[NDArray[np.float32], NDArray[np.float64]]
TRAINING, VALIDATION = 0, 1  # the first word of every seed, so that no training clip can be a validation clip


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


def cut_clip(rng: np.random.Generator, recordings: list[Recording], samples: int, rate: int, transpose: float) -> Clip:
    """Return a random stretch of the recordings, transposed by resampling, which also changes its speed."""
    lengths = np.array([len(r.audio) for r in recordings], dtype=np.float64)
    recording = recordings[int(rng.choice(len(recordings), p=lengths / lengths.sum()))]
    semitones = float(rng.uniform(-transpose, transpose))
    speed = 2.0 ** (semitones / 12.0)
    start = rng.uniform(0.0, max(0.0, len(recording.audio) - samples * speed))
    positions = start + speed * np.arange(samples)
    audio = np.interp(positions, np.arange(len(recording.audio)), recording.audio, right=0.0).astype(np.float32)
    audio *= np.float32(10.0 ** (rng.uniform(-10.0, 5.0) / 20.0))
    notes = (recording.notes - [start / rate, start / rate, 0.0]) / [speed, speed, 1.0] + [0.0, 0.0, semitones]
    return audio, notes[(notes[:, 1] > 0.0) & (notes[:, 0] < samples / rate)]


def label(
    index: int, sound: NDArray[np.float32], notes: NDArray[np.float64], audio: dict[str, Any], model: dict[str, Any]
) -> dict[str, Any]:
    """Return a clip's number, sound (samples,), targets (frames, pitches) and notes."""
    frames, hop = len(sound) // audio["hop_length"] + 1, audio["hop_length"] / audio["sample_rate"]
    onset, frame = targets(notes, frames, hop, model["lowest_pitch"], model["n_pitches"])
    return {"index": index, "audio": sound, "onset": onset, "frame": frame, "notes": notes}


class Clips(Dataset[dict[str, Any]]):
    """Clip `i` is `make(generator)` of a generator seeded by (seed, i), whoever asks and whenever."""

    def __init__(
        self, make: Callable[[np.random.Generator], Clip], seed: int, audio: dict[str, Any], model: dict[str, Any]
    ) -> None:
        self.make, self.seed, self.audio, self.model = make, seed, audio, model

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return clip `index`, labelled."""
        return label(index, *self.make(np.random.default_rng([TRAINING, self.seed, index])), self.audio, self.model)


def collate(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Stack what has one length; notes stay a list of tensors (n, 3)."""
    batch: dict[str, Any] = {k: torch.from_numpy(np.stack([i[k] for i in items])) for k in ("audio", "onset", "frame")}
    notes = [torch.from_numpy(item["notes"].astype(np.float32)) for item in items]
    return batch | {"notes": notes, "index": torch.tensor([item["index"] for item in items])}


class Stream(Sampler[list[int]]):
    """The clip numbers of one epoch's batches, from wherever training stands: `position` gives the batches made."""

    def __init__(self, position: Callable[[], int], batches: int, size: int, rank: int, ranks: int) -> None:
        self.position, self.batches, self.size, self.rank, self.ranks = position, batches, size, rank, ranks

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[list[int]]:
        first = self.position()
        for batch in range(first, first + self.batches):
            start = (batch * self.ranks + self.rank) * self.size
            yield list(range(start, start + self.size))


class Melodies(pl.LightningDataModule):
    """The loaders of a preset. `cfg` holds DATAIO's entries and what train.py's make_data adds."""

    def __init__(
        self, preset: dict[str, Any], cfg: dict[str, Any], audio: dict[str, Any], model: dict[str, Any]
    ) -> None:
        super().__init__()
        self.cfg, rate = cfg, int(audio["sample_rate"])
        seconds, make = cfg["clip_seconds"], self._synthetic if preset["source"] == "synth" else self._folder
        train, recordings = make(preset, rate, seconds)
        self.train = Clips(train, cfg["seed"], audio, model)
        self.validation = [label(i, r.audio, r.notes, audio, model) for i, r in enumerate(recordings)]

    def _synthetic(self, preset: dict[str, Any], rate: int, seconds: float) -> Any:
        count = self.cfg["val_clips"] or preset["eval_clips"]
        made = [
            make_clip(np.random.default_rng([VALIDATION, preset["eval_seed"], i]), preset["eval_seconds"], rate)
            for i in range(count)
        ]
        return partial(make_clip, seconds=seconds, rate=rate), [Recording(str(i), *clip) for i, clip in enumerate(made)]

    def _folder(self, preset: dict[str, Any], rate: int, seconds: float) -> Any:
        recordings = read_folder(Path(self.cfg["data_home"]), rate, say=self.cfg["say"])
        train, validation = divide(recordings, rate, preset["validation_part"])
        samples, transpose = round(seconds * rate), preset["transpose_semitones"]
        return partial(cut_clip, recordings=train, samples=samples, rate=rate, transpose=transpose), validation

    def train_dataloader(self) -> DataLoader[dict[str, Any]]:
        """Return batches of local clips, continuing the stream at the trainer's step."""
        cfg, trainer = self.cfg, self.trainer
        assert trainer is not None
        batches = cfg["steps_per_epoch"] * cfg["accumulate"]
        stream = Stream(
            lambda: trainer.global_step * cfg["accumulate"],
            batches,
            cfg["local"],
            trainer.global_rank,
            trainer.world_size,
        )
        workers = cfg["num_workers"]
        more = {"prefetch_factor": cfg["prefetch_factor"], "persistent_workers": True} if workers else {}
        return DataLoader(self.train, batch_sampler=stream, collate_fn=collate, num_workers=workers, **more)

    def val_dataloader(self) -> DataLoader[dict[str, Any]]:
        """Return the validation recordings one by one, since their lengths differ."""
        return DataLoader(self.validation, batch_size=1, collate_fn=collate)  # type: ignore[arg-type]
