"""Log-frequency features: a spectrogram whose bins are half semitones, so that transposition is a shift."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


def midi_to_hz(midi: NDArray[Any] | float) -> Any:
    """Return the frequency in Hz of a MIDI pitch (69 is A4, 440 Hz); fractions are cents."""
    return 440.0 * 2.0 ** ((np.asarray(midi, dtype=np.float64) - 69.0) / 12.0)


def hz_to_midi(hz: NDArray[Any] | float) -> Any:
    """Return the MIDI pitch, with fractions, of a frequency in Hz."""
    return 69.0 + 12.0 * np.log2(np.asarray(hz, dtype=np.float64) / 440.0)


def log_frequency_matrix(audio: dict[str, Any]) -> NDArray[np.float32]:
    """Return the weights (n_fft // 2 + 1, n_bins) that gather FFT bins into log-frequency bins.

    Each column is a triangle around its centre, one bin wide to either side but never narrower than the spacing of
    the FFT (low pitches would otherwise fall between two FFT bins), and sums to one.
    """
    spacing = audio["sample_rate"] / audio["n_fft"]
    hz = np.arange(audio["n_fft"] // 2 + 1) * spacing
    centre = midi_to_hz(audio["lowest_bin"] + np.arange(audio["n_bins"]) / audio["bins_per_semitone"])
    width = np.maximum(centre * (2.0 ** (1.0 / (12 * audio["bins_per_semitone"])) - 1.0), spacing)
    weights = np.clip(1.0 - np.abs(hz[:, None] - centre[None, :]) / width[None, :], 0.0, None)
    return np.asarray(weights / weights.sum(axis=0, keepdims=True), dtype=np.float32)


class LogFrequency(nn.Module):
    """Audio (batch, samples) in -1..1 to features (batch, frames, n_bins), always in fp32.

    Frame i is centred on sample i * hop_length, so there are samples // hop_length + 1 of them.
    """

    window: Tensor
    matrix: Tensor

    def __init__(self, audio: dict[str, Any]) -> None:
        super().__init__()
        self.n_fft, self.hop = int(audio["n_fft"]), int(audio["hop_length"])
        self.register_buffer("window", torch.hann_window(self.n_fft), persistent=False)
        self.register_buffer("matrix", torch.from_numpy(log_frequency_matrix(audio)), persistent=False)

    def forward(self, audio: Tensor) -> Tensor:
        """Return log(1 + 10000 * power): zero for silence, about 9 for a tone at full scale."""
        with torch.autocast(device_type=audio.device.type, enabled=False):  # half precision has no FFT on the CPU
            window = self.window.float()
            spectrum = torch.stft(audio.float(), self.n_fft, self.hop, window=window, return_complex=True)
            power = torch.view_as_real(spectrum).square().sum(-1).transpose(1, 2) * (2.0 / window.sum()) ** 2
            return torch.log1p(1e4 * (power @ self.matrix.float()))
