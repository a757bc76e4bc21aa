"""The preset `folder`: recordings with their notes, read from a directory and checked as they are read."""

import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import mido
import numpy as np
from errors import RunError
from lightning.pytorch.utilities import rank_zero_only
from mir_eval.util import hz_to_midi
from numpy.typing import NDArray
from scipy.io import wavfile
from scipy.signal import resample_poly

say = rank_zero_only(print)


class Recording(NamedTuple):
    """Audio (samples,) at the rate asked for, and notes (n, 3): onset s, offset s, MIDI pitch with fractions."""

    name: str
    audio: NDArray[np.float32]
    notes: NDArray[np.float64]


def read_wav(path: Path, rate: int) -> NDArray[np.float32]:
    """Return a .wav file as mono within -1..1 at `rate` Hz."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wavfile.WavFileWarning)  # chunks it does not know: tags and the like
        found, data = wavfile.read(path)
    if data.dtype == np.uint8:  # the one unsigned format
        data = (data.astype(np.int16) - 128) * 256
    audio = data / (np.iinfo(data.dtype).max + 1.0 if data.dtype.kind == "i" else 1.0)
    if not audio.size or not np.isfinite(audio).all():
        raise ValueError("it holds no samples, or some that are not numbers")
    mono = audio.mean(axis=1) if audio.ndim > 1 else audio
    shared = math.gcd(found, rate)
    return np.asarray(resample_poly(mono, rate // shared, found // shared), dtype=np.float32)


def read_csv(path: Path) -> list[tuple[float, float, float]]:
    """Return the notes of a .csv file whose rows are onset (s), pitch (Hz), duration (s), without a header."""
    notes = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            onset, pitch, duration = map(float, line.split(","))
            if not (0 <= onset < math.inf and 0 < pitch < math.inf and 0 < duration < math.inf):
                raise ValueError
        except ValueError:
            raise ValueError(f"line {number}: {line!r} is not onset >= 0 s, pitch > 0 Hz, duration > 0 s") from None
        notes.append((onset, onset + duration, float(hz_to_midi(pitch))))
    return notes


def read_midi(path: Path) -> list[tuple[float, float, float]]:
    """Return the notes of a .mid file, all channels but the drums'."""
    time, notes = 0.0, []
    sounding: dict[tuple[int, int], float] = {}  # (channel, pitch) to onset
    for message in mido.MidiFile(path):  # iterating gives each message's time in seconds
        time += message.time
        if message.type not in ("note_on", "note_off") or message.channel == 9:
            continue
        start = sounding.pop((message.channel, message.note), None)
        if start is not None and time > start:
            notes.append((start, time, float(message.note)))
        if message.type == "note_on" and message.velocity > 0:
            sounding[message.channel, message.note] = time
    return notes


def read(path: Path, reader: Callable[..., Any], *more: Any) -> Any:
    """Return reader(path, *more); what a bad file raises becomes one line."""
    try:
        return reader(path, *more)
    except (ValueError, EOFError, OSError, LookupError) as error:
        raise RunError(f"{path}: not a {path.suffix} file that can be used ({error})") from error


def read_folder(home: Path, rate: int) -> list[Recording]:
    """Return the directory's recordings in the order of their names: each .wav that has notes beside it."""
    wavs, recordings = sorted(home.glob("*.wav")), []
    beside: dict[Path, Path] = {}  # each .wav's first notes; take_10.csv belongs to take_10.wav, not to take_1.wav
    for source in sorted([*home.glob("*.csv"), *home.glob("*.mid")]):
        owners = [wav for wav in wavs if source.stem.startswith(wav.stem)]
        if owners:
            beside.setdefault(max(owners, key=lambda wav: len(wav.stem)), source)
    for wav in wavs:
        if wav not in beside:
            say(f"data: {wav.name} has no .csv or .mid beside it and is left out", file=sys.stderr)
            continue
        source = beside[wav]
        notes = np.array(sorted(read(source, read_csv if source.suffix == ".csv" else read_midi)), dtype=np.float64)
        audio = read(wav, read_wav, rate)
        if not len(notes) or notes[-1, 0] > len(audio) / rate:
            raise RunError(f"{source}: no notes, or some after the end of {wav.name} at {len(audio) / rate:.2f} s")
        say(f"data: {wav.name} with {source.name}, {len(notes)} notes, {len(audio) / rate:.1f} s")
        recordings.append(Recording(wav.stem, audio, notes))
    if not recordings:
        raise RunError(f"--data-home {home}: no NAME.wav with a NAME*.csv or NAME.mid beside it")
    return recordings


def divide(recordings: list[Recording], rate: int, part: float) -> tuple[list[Recording], list[Recording]]:
    """Return training and validation recordings: the last ones by name, or the end of the only one."""
    if len(recordings) > 1:
        count = max(1, round(part * len(recordings)))
        return recordings[:-count], recordings[-count:]
    name, audio, notes = recordings[0]
    late = notes[:, 0] >= (1.0 - part) * len(audio) / rate
    if late.all() or not late.any():
        raise RunError(f"{name}.wav: the only recording, and too short to be divided into training and validation")
    cut = max(0, round((notes[late][0, 0] - 0.1) * rate))  # just before an onset, so that no attack is cut in two
    late = notes[:, 0] >= cut / rate
    early = np.minimum(notes[~late], [math.inf, cut / rate, math.inf])  # the note that sounds there ends there
    later = notes[late] - [cut / rate, cut / rate, 0.0]
    return [Recording(name, audio[:cut], early)], [Recording(name, audio[cut:], later)]
