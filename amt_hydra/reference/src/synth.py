"""Melodies made up by a random generator, with their accompaniment. Notes are rows (onset s, offset s, MIDI pitch)."""

import itertools

import numpy as np
from mir_eval.util import midi_to_hz
from numpy.typing import NDArray
from scipy.signal import fftconvolve

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
        length = max(0.1, pace * float(rng.choice([0.5, 1.0, 1.0, 1.5, 2.0])) * rng.uniform(0.9, 1.1))
        if time + length > seconds - 0.05:
            return np.array(notes, dtype=np.float64).reshape(-1, 3)
        rest = rng.uniform(0.0, 0.03) if rng.random() < 0.75 else rng.uniform(0.05, 0.3)
        notes.append((time, time + length - min(rest, 0.4 * length), pitch))
        time += length
        step = int(rng.choice(STEPS, p=STEP_ODDS)) * int(rng.choice([-1, 1]))
        pitch = pitch + step if low <= pitch + step <= high else pitch - step


def render(rng: np.random.Generator, notes: Notes, samples: int, rate: int) -> Audio:
    """Return the notes played by one random instrument, each a little louder or softer, at an RMS of 0.1."""
    count = int(rng.integers(4, 13))
    strengths = np.arange(1, count + 1) ** -rng.uniform(0.6, 2.0) * rng.uniform(0.4, 1.0, count)
    attack, decay = rng.uniform(0.004, 0.04), rng.choice([0.0, rng.uniform(1.0, 5.0)])  # s, 1/s; 0 as a voice or a bow
    vibrato_hz, vibrato_cents = rng.uniform(4.5, 7.0), rng.choice([0.0, rng.uniform(10.0, 50.0)])
    tuning = rng.uniform(-0.2, 0.2)  # semitones
    audio = np.zeros(samples, dtype=np.float32)
    for onset, offset, pitch in notes:
        start, stop = round(onset * rate), min(round(offset * rate), samples)
        time, hz = np.arange(stop - start, dtype=np.float32) / np.float32(rate), float(midi_to_hz(pitch + tuning))
        swing = np.sin(np.float32(2 * np.pi * vibrato_hz) * time) * np.minimum(1.0, time / np.float32(0.3))  # grows in
        cycles = np.cumsum(hz / rate * np.exp2(np.float32(vibrato_cents / 1200.0) * swing), dtype=np.float64)
        turn = np.exp(np.complex64(2j * np.pi) * (cycles % 1.0).astype(np.float32))
        tone = np.zeros(len(time), dtype=np.complex64)
        for strength in strengths[: max(1, int(0.45 * rate / hz))][::-1]:  # none above the Nyquist frequency
            tone = (tone + np.complex64(strength)) * turn  # Horner's scheme: the sum of strength[k] * turn ** (k + 1)
        envelope = np.minimum(1.0, time / attack) * np.minimum(1.0, (time[-1] - time) / 0.02) * np.exp(-decay * time)
        audio[start:stop] += (rng.uniform(0.6, 1.0) * envelope).astype(np.float32) * tone.imag
    return audio * np.float32(0.1 / max(float(np.sqrt(np.mean(audio**2))), 1e-6))


def reverb(rng: np.random.Generator, audio: Audio, rate: int) -> Audio:
    """Return the audio in a room: a tail of decaying noise, 0.1 to 0.5 s, well below the direct sound."""
    time = np.arange(int(rng.uniform(0.1, 0.5) * rate)) / rate
    tail = rng.standard_normal(len(time)) * np.exp(-6.9 * time / time[-1])  # -60 dB at its end
    tail *= rng.uniform(0.1, 0.4) / np.sqrt(np.sum(tail**2))
    return audio + np.asarray(fftconvolve(audio, tail.astype(np.float32))[: len(audio)], dtype=np.float32)


def gain(rng: np.random.Generator, low: float, high: float) -> np.float32:
    """Return a random amplitude between two levels in dB."""
    return np.float32(10.0 ** (rng.uniform(low, high) / 20.0))


def make_clip(rng: np.random.Generator, seconds: float, rate: int) -> tuple[Audio, Notes]:
    """Return audio (samples,) within -1..1 and the melody's notes: over softer held chords, in a room, with noise."""
    notes, samples = melody_notes(rng, seconds), round(seconds * rate)
    bars, voices = np.append(np.arange(0.0, seconds, rng.uniform(0.5, 1.2)), seconds), int(rng.integers(1, 4))
    chords = np.array([(a, b, p) for a, b in itertools.pairwise(bars) for p in rng.integers(40, 68, voices)])
    audio = render(rng, notes, samples, rate)
    audio += gain(rng, -14.0, -3.0) * render(rng, chords, samples, rate)
    audio = reverb(rng, audio, rate)
    audio += gain(rng, -60.0, -36.0) * rng.standard_normal(samples, np.float32)
    audio *= gain(rng, -10.0, 0.0) / max(np.float32(1.0), np.abs(audio).max())
    return audio, notes
