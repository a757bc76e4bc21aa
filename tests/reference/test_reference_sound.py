"""Features, synthesis, targets and scores as functions: what they must give follows from theory."""

import math

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("reference_modules")
RATE = 16000


def tone(hz: float, seconds: float = 1.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hz * np.arange(int(seconds * RATE)) / RATE)).astype(np.float32)


@pytest.mark.parametrize(("hz", "midi"), [(440.0, 69), (220.0, 57), (880.0, 81), (261.63, 60), (130.81, 48)])
def test_a_tone_peaks_in_the_bin_of_its_pitch(hz, midi):
    import torch
    from config import audio_cfg
    from model import LogFrequency

    features = LogFrequency(audio_cfg)(torch.from_numpy(tone(hz)).unsqueeze(0))[0]
    expected = (midi - audio_cfg["lowest_bin"]) * audio_cfg["bins_per_semitone"]
    assert features.shape == (RATE // audio_cfg["hop_length"] + 1, audio_cfg["n_bins"])
    assert int(features[25].argmax()) == expected


def test_an_octave_is_a_shift_by_24_bins():
    from config import audio_cfg
    from model import log_frequency_matrix

    matrix = log_frequency_matrix(audio_cfg)
    hz = np.arange(matrix.shape[0]) * RATE / audio_cfg["n_fft"]
    centroid = (hz[:, None] * matrix).sum(axis=0)
    assert matrix.sum(axis=0) == pytest.approx(1.0, abs=1e-5)
    assert centroid[120] / centroid[96] == pytest.approx(2.0, rel=0.01)
    assert centroid[66] == pytest.approx(440.0, rel=0.01)  # (69 - 36) * 2


def test_a_clip_is_a_function_of_its_seed():
    from synth import make_clip

    first, again, other = (make_clip(np.random.default_rng([0, seed]), 2.0, RATE) for seed in (5, 5, 6))
    assert np.array_equal(first[0], again[0])
    assert np.array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])
    assert first[0].dtype == np.float32
    assert np.abs(first[0]).max() <= 1.0


def test_a_melody_is_one_voice_within_the_clip():
    from synth import melody_notes

    for seed in range(50):
        notes = melody_notes(np.random.default_rng(seed), 6.0)
        assert (notes[:, 1] > notes[:, 0]).all()
        assert (notes[1:, 0] >= notes[:-1, 1]).all()
        assert notes[0, 0] >= 0.0
        assert notes[-1, 1] <= 6.0
        assert notes[:, 2].min() >= 45
        assert notes[:, 2].max() <= 84


def test_a_rendered_note_has_its_pitch_and_nothing_above_nyquist():
    from synth import render

    for seed in range(5):
        audio = render(np.random.default_rng(seed), np.array([[0.0, 1.0, 84.0]]), RATE, RATE)
        spectrum = np.abs(np.fft.rfft(audio * np.hanning(RATE)))  # 1 Hz a bin
        pitch, peaks = spectrum.argmax(), np.flatnonzero(spectrum > 0.02 * spectrum.max())
        assert 12 * abs(np.log2(pitch / 1046.5)) < 0.71  # 0.2 semitones of tuning, and 0.5 of vibrato
        # A partial aliased from above would lie between those that are meant, each widened by the vibrato's 6 %.
        partial = np.round(peaks / pitch)
        assert (np.abs(peaks / pitch - partial) <= 0.06 * partial + 0.02).all()
        assert np.sqrt(np.mean(audio**2)) == pytest.approx(0.1, rel=1e-3)


def test_targets_mark_onset_and_frames():
    from data import targets

    onset, frame = targets(np.array([[0.1, 0.2, 60.2], [-0.5, 0.06, 62.0], [0.3, 0.4, 99.0]]), 50, 0.02, 40, 48)
    assert onset[:, 20].nonzero()[0].tolist() == [4, 5, 6]
    assert onset[5, 20] == 1.0
    assert frame[:, 20].nonzero()[0].tolist() == [5, 6, 7, 8, 9]
    assert onset[:, 22].sum() == 0.0  # it began before the clip
    assert frame[:, 22].nonzero()[0].tolist() == [0, 1, 2]
    assert frame.sum() == 8.0  # pitch 99 is beyond the last column


def test_decoding_perfect_maps_gives_the_notes_back():
    from data import targets
    from evaluate import decode, score

    notes = np.array([[0.10, 0.30, 60.0], [0.30, 0.50, 60.0], [0.62, 0.90, 67.0]])
    onset, frame = targets(notes, 60, 0.02, 40, 48)
    estimate = decode(onset, frame, 0.02, 40)
    assert estimate[:, 2].tolist() == [60.0, 60.0, 67.0]
    assert estimate[:, 0] == pytest.approx(notes[:, 0], abs=0.011)
    assert score(notes, estimate) == (1.0, 1.0, 1.0)


def test_the_score_is_onset_f1_with_pitch_at_50_ms():
    from evaluate import score

    reference = np.array([[0.0, 0.5, 60.0], [1.0, 1.5, 62.0], [2.0, 2.5, 64.0], [3.0, 3.5, 65.0]])
    estimate = np.array([[0.04, 0.9, 60.0], [1.06, 1.5, 62.0], [2.0, 2.5, 65.0], [3.0, 3.1, 65.4], [5.0, 5.1, 60.0]])
    # hits: the first (40 ms) and the fourth (40 cents, another offset); misses: 60 ms late, a semitone off, too many
    precision, recall, f1 = score(reference, estimate)
    assert (precision, recall) == (2 / 5, 2 / 4)
    assert f1 == pytest.approx(2 * 0.4 * 0.5 / 0.9)
    assert score(reference, estimate[:0]) == (0.0, 0.0, 0.0)
    assert score(reference[:0], estimate[:0]) == (1.0, 1.0, 1.0)


def test_the_learning_rate_warms_up_and_falls_to_zero():
    from optimizers import rate_at

    assert rate_at(0, "cosine", 500, 900) == pytest.approx(1 / 501)
    assert rate_at(500, "cosine", 500, 900) == 1.0
    assert rate_at(700, "cosine", 500, 900) == pytest.approx(0.5)
    assert rate_at(900, "cosine", 500, 900) == pytest.approx(0.0)
    assert rate_at(5000, "constant", 500, 900) == 1.0
    for total in (0, 1, 10):
        assert math.isfinite(rate_at(10, "cosine", 10, total))


def test_adamwscale_steps_by_the_size_of_the_parameter():
    import torch
    from optimizers import AdamWScale

    large, small = torch.nn.Parameter(torch.full((4,), 2.0)), torch.nn.Parameter(torch.full((4,), 0.5))
    optimizer = AdamWScale([large, small], lr=0.1, weight_decay=0.0)
    (large.sum() + small.sum()).backward()
    optimizer.step()
    # Adam's first step is the learning rate itself
    assert large.tolist() == pytest.approx([2.0 - 0.1 * 2.0] * 4)
    assert small.tolist() == pytest.approx([0.5 - 0.1 * 0.5] * 4)
