"""From probabilities to notes, and from notes to the figures of mir_eval."""

import itertools

import numpy as np
from mir_eval.transcription import precision_recall_f1_overlap
from mir_eval.util import midi_to_hz
from numpy.typing import NDArray
from scipy.signal import find_peaks

Notes = NDArray[np.float64]  # (n, 3): onset s, offset s, MIDI pitch with fractions
THRESHOLD = 0.4


def decode(onset: NDArray[np.float32], frame: NDArray[np.float32], hop: float, lowest_pitch: int) -> Notes:
    """Return the melody in two maps of probabilities, each (frames, pitches); `hop` is in seconds per frame.

    A note starts at a peak of the strongest onset and lasts until its frames fade or the next note starts: one voice.
    """
    pitch, curve = onset.argmax(axis=1), onset.max(axis=1)
    # Of peaks within 60 ms the stronger one counts; one at either end is a peak too.
    starts = find_peaks(np.pad(curve, 1), height=THRESHOLD, distance=3)[0] - 1
    notes = []
    for start, limit in itertools.pairwise([*starts, len(curve)]):
        silent = np.flatnonzero(frame[start + 1 : limit, pitch[start]] < THRESHOLD)
        stop = start + 1 + int(silent[0]) if len(silent) else limit
        notes.append((start * hop, stop * hop, float(lowest_pitch + pitch[start])))
    return np.array(notes, dtype=np.float64).reshape(-1, 3)


def score(reference: Notes, estimate: Notes) -> tuple[float, float, float]:
    """Return onset precision, recall and F1: a hit is within 50 ms and within 50 cents; offsets are not judged."""
    if not len(reference) or not len(estimate):  # mir_eval warns about empty lists and returns zeros
        empty = float(len(reference) == len(estimate))
        return empty, empty, empty
    pairs = [(notes[:, :2], midi_to_hz(notes[:, 2])) for notes in (reference, estimate)]
    precision, recall, f1, _ = precision_recall_f1_overlap(*pairs[0], *pairs[1], offset_ratio=None)
    return float(precision), float(recall), float(f1)
