"""From probabilities to notes, and from notes to the figures of mir_eval."""

import itertools

import numpy as np
from features import midi_to_hz
from numpy.typing import NDArray

Notes = NDArray[np.float64]  # (n, 3): onset s, offset s, MIDI pitch with fractions
THRESHOLD = 0.4
ONSET_TOLERANCE = 0.05  # s, mir_eval's usual one
METRICS = ("validation/macro_onset_f", "validation/macro_onset_p", "validation/macro_onset_r", "validation/loss")


def decode(onset: NDArray[np.float32], frame: NDArray[np.float32], hop: float, lowest_pitch: int) -> Notes:
    """Return the melody in two maps of probabilities, each (frames, pitches); `hop` is in seconds per frame.

    A note starts at a peak of the strongest onset and lasts until its frames fade or the next note starts: one voice.
    """
    pitch, curve = onset.argmax(axis=1), onset.max(axis=1)
    left, right = np.r_[0.0, curve[:-1]], np.r_[curve[1:], 0.0]
    starts: list[int] = []
    for start in np.flatnonzero((curve >= THRESHOLD) & (curve >= left) & (curve > right)).tolist():
        if starts and start - starts[-1] < 3:  # two peaks within 60 ms are one onset: keep the stronger
            starts[-1] = max(starts[-1], start, key=lambda i: float(curve[i]))
        else:
            starts.append(start)
    notes = []
    for start, limit in itertools.pairwise([*starts, len(curve)]):
        silent = np.flatnonzero(frame[start + 1 : limit, pitch[start]] < THRESHOLD)
        stop = start + 1 + int(silent[0]) if len(silent) else limit
        notes.append((start * hop, stop * hop, float(lowest_pitch + pitch[start])))
    return np.array(notes, dtype=np.float64).reshape(-1, 3)


def score(reference: Notes, estimate: Notes) -> tuple[float, float, float]:
    """Return onset precision, recall and F1: a hit is within 50 ms and within 50 cents; offsets are not judged."""
    from mir_eval.transcription import precision_recall_f1_overlap

    if not len(reference) or not len(estimate):  # mir_eval warns about empty lists and returns zeros
        empty = float(len(reference) == len(estimate))
        return empty, empty, empty
    precision, recall, f1, _ = precision_recall_f1_overlap(
        reference[:, :2],
        midi_to_hz(reference[:, 2]),
        estimate[:, :2],
        midi_to_hz(estimate[:, 2]),
        onset_tolerance=ONSET_TOLERANCE,
        offset_ratio=None,
    )
    return float(precision), float(recall), float(f1)
