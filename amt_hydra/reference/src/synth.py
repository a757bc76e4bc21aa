"""Melodies made up from a seed: notes, their sound, and the room and band around them.

A clip is a function of its random generator alone. Notes are rows (onset s, offset s, MIDI pitch).
"""

import itertools
from typing import Any

import numpy as np
import scipy.fft
from features import midi_to_hz
from numpy.typing import NDArray

Audio = NDArray[np.float32]
Notes = NDArray[np.float64]
STEPS = np.array([0, 1, 2, 3, 4, 5, 7, 12])  # semitones from note to note
STEP_ODDS = np.array([0.08, 0.18, 0.30, 0.13, 0.11, 0.10, 0.07, 0.03])


def melody_notes(rng: np.random.Generator, seconds: float, low: int = 45, high: int = 84) -> Notes:
    """Return one voice's notes, ordered and never overlapping, all ending before `seconds`."""
    pace = np.exp(rng.uniform(np.log(0.16), np.log(0.5)))
    time, pitch = rng.uniform(0.0, 0.2), int(rng.integers(low, high + 1))
    notes: list[tuple[float, float, int]] = []
    while True:
        length = pace * float(rng.choice([0.5, 1.0, 1.0, 1.5, 2.0])) * rng.uniform(0.9, 1.1)
        length = max(length, 0.1)
        if time + length > seconds - 0.05:
            return np.array(notes, dtype=np.float64).reshape(-1, 3)
        rest = rng.uniform(0.0, 0.03) if rng.random() < 0.75 else rng.uniform(0.05, 0.3)
        notes.append((time, time + length - min(rest, 0.4 * length), pitch))
        time += length
        step = int(rng.choice(STEPS, p=STEP_ODDS)) * int(rng.choice([-1, 1]))
        pitch = pitch + step if low <= pitch + step <= high else pitch - step


def draw_timbre(rng: np.random.Generator) -> dict[str, Any]:
    """Return what the notes of one instrument share: harmonics, envelope, vibrato."""
    count = int(rng.integers(4, 13))
    strength = np.arange(1, count + 1) ** -rng.uniform(0.6, 2.0) * rng.uniform(0.4, 1.0, count)
    strength[1::2] *= rng.uniform(0.3, 1.0)  # some instruments are poor in even harmonics
    return {
        "harmonics": strength / np.sqrt(np.sum(strength**2)),
        "attack": rng.uniform(0.004, 0.04),  # s
        "decay": rng.choice([0.0, rng.uniform(1.0, 5.0)]),  # 1/s; 0 is sustained, as a voice or a bow
        "vibrato_hz": rng.uniform(4.5, 7.0),
        "vibrato_cents": rng.choice([0.0, rng.uniform(10.0, 50.0)]),
    }


def render_note(timbre: dict[str, Any], hz: float, samples: int, rate: int) -> Audio:
    """Return one note of `samples` samples: harmonics of `hz` under an envelope, vibrato growing in."""
    time = np.arange(samples, dtype=np.float32) / np.float32(rate)
    vibrato = np.sin(np.float32(2 * np.pi * timbre["vibrato_hz"]) * time) * np.minimum(1.0, time / np.float32(0.3))
    cycles = np.cumsum(hz / rate * np.exp2(np.float32(timbre["vibrato_cents"] / 1200.0) * vibrato), dtype=np.float64)
    angle = (2.0 * np.pi * (cycles % 1.0)).astype(np.float32)
    turn = np.cos(angle) + np.complex64(1j) * np.sin(angle)
    harmonics = timbre["harmonics"][: max(1, int(0.45 * rate / hz))]  # nothing above the Nyquist frequency
    tone = np.zeros(samples, dtype=np.complex64)
    for strength in harmonics[::-1]:  # Horner's scheme: the sum of strength[k] * turn ** (k + 1)
        tone = (tone + np.complex64(strength)) * turn
    attack, release = np.float32(timbre["attack"]), np.float32(0.02)
    envelope = np.minimum(1.0, time / attack) * np.minimum(1.0, (time[-1] - time) / release)
    return np.asarray(tone.imag * envelope * np.exp(np.float32(-timbre["decay"]) * time), dtype=np.float32)


def render(rng: np.random.Generator, notes: Notes, samples: int, rate: int) -> Audio:
    """Return the notes played by one random instrument, each a little louder or softer, at an RMS of 0.1."""
    timbre, audio = draw_timbre(rng), np.zeros(samples, dtype=np.float32)
    tuning = rng.uniform(-0.2, 0.2)  # semitones, the same for the whole clip
    for onset, offset, pitch in notes:
        start, stop = round(onset * rate), min(round(offset * rate), samples)
        loudness = np.float32(rng.uniform(0.6, 1.0))
        audio[start:stop] += loudness * render_note(timbre, midi_to_hz(pitch + tuning), stop - start, rate)
    return audio * np.float32(0.1 / max(float(np.sqrt(np.mean(audio**2))), 1e-6))


def accompaniment(rng: np.random.Generator, seconds: float, rate: int) -> Audio:
    """Return one to three held voices, changing together, at an RMS of 0.1."""
    bars = np.append(np.arange(0.0, seconds, rng.uniform(0.5, 1.2)), seconds)
    voices = int(rng.integers(1, 4))
    notes = [(a, b, p) for a, b in itertools.pairwise(bars) for p in rng.integers(40, 68, voices)]
    return render(rng, np.array(notes, dtype=np.float64), round(seconds * rate), rate)


def reverb(rng: np.random.Generator, audio: Audio, rate: int) -> Audio:
    """Return the audio in a room: a tail of decaying noise, 0.1 to 0.5 s, well below the direct sound."""
    time = np.arange(int(rng.uniform(0.1, 0.5) * rate)) / rate
    tail = rng.standard_normal(len(time)) * np.exp(-6.9 * time / time[-1])
    tail *= rng.uniform(0.1, 0.4) / np.sqrt(np.sum(tail**2))
    size = scipy.fft.next_fast_len(len(audio) + len(tail), real=True)
    wet = scipy.fft.rfft(audio, size) * scipy.fft.rfft(tail.astype(np.float32), size)
    return audio + np.asarray(scipy.fft.irfft(wet, size)[: len(audio)], dtype=np.float32)


def gain(rng: np.random.Generator, low: float, high: float) -> np.float32:
    """Return a random amplitude between two levels in dB."""
    return np.float32(10.0 ** (rng.uniform(low, high) / 20.0))


def make_clip(rng: np.random.Generator, seconds: float, rate: int) -> tuple[Audio, Notes]:
    """Return audio (samples,) within -1..1 and the melody's notes."""
    notes = melody_notes(rng, seconds)
    audio = render(rng, notes, round(seconds * rate), rate)
    audio += gain(rng, -14.0, -3.0) * accompaniment(rng, seconds, rate)
    audio = reverb(rng, audio, rate)
    audio += gain(rng, -60.0, -36.0) * rng.standard_normal(len(audio), np.float32)
    audio *= gain(rng, -10.0, 0.0)
    return audio / max(1.0, float(np.abs(audio).max())), notes
