"""The preset `folder`: recordings with their notes, read from a directory and checked as they are read."""

import csv
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from errors import RunError
from features import hz_to_midi
from numpy.typing import NDArray


@dataclass(frozen=True)
class Recording:
    """Audio (samples,) at the rate asked for, and notes (n, 3): onset s, offset s, MIDI pitch with fractions."""

    name: str
    audio: NDArray[np.float32]
    notes: NDArray[np.float64]


def read_wav(path: Path, rate: int) -> NDArray[np.float32]:
    """Return a .wav file as mono within -1..1 at `rate` Hz."""
    import warnings

    from scipy.io import wavfile
    from scipy.signal import resample_poly

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", wavfile.WavFileWarning)  # chunks it does not know: tags and the like
            found, data = wavfile.read(path)
    except (ValueError, EOFError, OSError, IndexError, KeyError) as error:
        raise RunError(f"{path}: not a .wav file that can be read ({error})") from error
    if not data.size:
        raise RunError(f"{path}: holds no audio")
    if data.dtype.kind in "iu":  # 8 bits are unsigned around 128
        audio = (data.astype(np.float64) - (128.0 if data.dtype == np.uint8 else 0.0)) / (np.iinfo(data.dtype).max + 1)
        audio *= 2.0 if data.dtype == np.uint8 else 1.0
    else:
        audio = data.astype(np.float64)
    if not np.isfinite(audio).all():
        raise RunError(f"{path}: holds samples that are not finite numbers")
    mono = audio.mean(axis=1) if audio.ndim > 1 else audio
    shared = math.gcd(int(found), rate)
    return np.asarray(resample_poly(mono, rate // shared, int(found) // shared), dtype=np.float32)


def read_csv(path: Path) -> NDArray[np.float64]:
    """Return the notes of a .csv file whose rows are onset (s), pitch (Hz), duration (s), without a header."""
    notes = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [(line, row) for line, row in enumerate(csv.reader(file), start=1) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RunError(f"{path}: not a .csv file that can be read ({error})") from error
    for line, row in rows:
        try:
            onset, pitch, duration = (float(value) for value in row)
        except ValueError:
            raise RunError(f"{path}:{line}: expected onset s, pitch Hz, duration s, found {','.join(row)!r}") from None
        if not (0 <= onset < math.inf and 0 < pitch < math.inf and 0 < duration < math.inf):
            raise RunError(f"{path}:{line}: onset must be >= 0, pitch and duration > 0, found {','.join(row)!r}")
        notes.append((onset, onset + duration, float(hz_to_midi(pitch))))
    return np.array(notes, dtype=np.float64).reshape(-1, 3)


def read_midi(path: Path) -> NDArray[np.float64]:
    """Return the notes of a .mid file, all channels but the drums'."""
    import mido

    try:
        messages = list(mido.MidiFile(path))  # iterating gives each message's time in seconds
    except (OSError, EOFError, ValueError, IndexError, KeyError) as error:
        raise RunError(f"{path}: not a .mid file that can be read ({error})") from error
    time, notes = 0.0, []
    sounding: dict[tuple[int, int], float] = {}  # (channel, pitch) to onset
    for message in messages:
        time += message.time
        if message.type not in ("note_on", "note_off") or message.channel == 9:
            continue
        start = sounding.pop((message.channel, message.note), None)
        if start is not None and time > start:
            notes.append((start, time, float(message.note)))
        if message.type == "note_on" and message.velocity > 0:
            sounding[message.channel, message.note] = time
    return np.array(sorted(notes), dtype=np.float64).reshape(-1, 3)


def read_folder(home: Path, rate: int, say: bool = True) -> list[Recording]:
    """Return the directory's recordings in the order of their names: each .wav that has notes beside it."""
    if not home.is_dir():
        raise RunError(f"--data-home {home}: no such directory")
    wavs, recordings = sorted(home.glob("*.wav")), []
    beside: dict[Path, Path] = {}  # each .wav's first notes; take_10.csv belongs to take_10.wav, not to take_1.wav
    for notes_file in sorted(path for path in home.iterdir() if path.suffix in (".csv", ".mid")):
        owners = [wav for wav in wavs if notes_file.stem.startswith(wav.stem)]
        if owners:
            beside.setdefault(max(owners, key=lambda wav: len(wav.stem)), notes_file)
    for wav in wavs:
        if wav not in beside:
            print(f"data: {wav.name} has no .csv or .mid beside it and is left out", file=sys.stderr)
            continue
        source = beside[wav]
        notes = read_csv(source) if source.suffix == ".csv" else read_midi(source)
        if not len(notes):
            raise RunError(f"{source}: holds no notes")
        audio = read_wav(wav, rate)
        seconds, latest = len(audio) / rate, notes[:, 0].max()
        if latest > seconds:
            raise RunError(f"{source}: a note starts at {latest:.2f} s, but {wav.name} ends at {seconds:.2f} s")
        if say:
            print(f"data: {wav.name} with {source.name}, {len(notes)} notes, {seconds:.1f} s")
        recordings.append(Recording(wav.stem, audio, notes[np.argsort(notes[:, 0], kind="stable")]))
    if not recordings:
        raise RunError(f"--data-home {home}: no NAME.wav with a NAME*.csv or NAME.mid beside it")
    return recordings


def divide(recordings: list[Recording], rate: int, part: float) -> tuple[list[Recording], list[Recording]]:
    """Return training and validation recordings: the last ones by name, or the end of the only one."""
    if len(recordings) > 1:
        count = max(1, round(part * len(recordings)))
        return recordings[:-count], recordings[-count:]
    whole = recordings[0]
    later = whole.notes[whole.notes[:, 0] >= (1.0 - part) * len(whole.audio) / rate]
    if not len(later) or len(later) == len(whole.notes):
        raise RunError(
            f"{whole.name}.wav: the only recording, and too short to be divided into training and validation"
        )
    cut = max(0, round((later[0, 0] - 0.1) * rate))  # just before an onset, so that no attack is cut in two
    early = whole.notes[whole.notes[:, 0] < cut / rate]
    early[:, 1] = np.minimum(early[:, 1], cut / rate)
    later = whole.notes[whole.notes[:, 0] >= cut / rate] - [cut / rate, cut / rate, 0.0]
    return [Recording(whole.name, whole.audio[:cut], early)], [Recording(whole.name, whole.audio[cut:], later)]
