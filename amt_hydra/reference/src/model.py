"""Log-frequency features, the network over them, and the Lightning module that trains and judges it."""
# ruff: noqa: ARG002 -- the arguments of hooks are Lightning's

from typing import Any

import lightning.pytorch as pl
import numpy as np
import torch
from evaluate import decode, score
from mir_eval.util import midi_to_hz
from numpy.typing import NDArray
from optimizers import OPTIMIZERS, rate_at
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 -- its customary name


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
    """Audio (batch, samples) in -1..1 to features (batch, samples // hop_length + 1, n_bins), always in fp32."""

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


class Network(nn.Module):
    """Features (batch, frames, bins) to onset and frame logits, each (batch, frames, pitches).

    Three small convolutions over time and frequency find partials and attacks; two over time alone see every bin at
    once, so that they can tell the melody from what is quieter.
    """

    def __init__(self, bins: int, pitches: int, channels: int, hidden: int) -> None:
        super().__init__()

        def local(inputs: int, outputs: int, stride: int) -> nn.Sequential:
            convolution = nn.Conv2d(inputs, outputs, 3, stride=(1, stride), padding=1, bias=False)
            return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU())

        def temporal(inputs: int) -> nn.Sequential:
            convolution = nn.Conv1d(inputs, hidden, 3, padding=1, bias=False)
            return nn.Sequential(convolution, nn.BatchNorm1d(hidden), nn.ReLU())

        self.norm = nn.BatchNorm2d(1)
        self.local = nn.Sequential(
            local(1, channels // 2, 2), local(channels // 2, channels, 2), local(channels, channels, 1)
        )
        self.temporal = nn.Sequential(temporal(channels * (bins // 4)), temporal(hidden))
        self.onset = nn.Linear(hidden, pitches)
        self.frame = nn.Linear(hidden, pitches)
        for head in (self.onset, self.frame):
            nn.init.constant_(head.bias, -4.0)  # a note is rare: start by saying so

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return onset and frame logits."""
        maps = self.local(self.norm(features.unsqueeze(1)))
        hidden = self.temporal(maps.permute(0, 1, 3, 2).flatten(1, 2)).transpose(1, 2)
        return self.onset(hidden), self.frame(hidden)


class Transcriber(pl.LightningModule):
    """Audio to melody notes. Every argument is a plain value, kept in the checkpoint's hyper_parameters."""

    def __init__(self, audio: dict[str, Any], model: dict[str, Any], **training: Any) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.training_rules = training
        self.features = LogFrequency(audio)
        self.network = Network(audio["n_bins"], model["n_pitches"], model["conv_channels"], model["hidden"])
        self.hop_seconds = audio["hop_length"] / audio["sample_rate"]
        self.lowest_pitch = int(model["lowest_pitch"])

    def forward(self, audio: Tensor) -> tuple[Tensor, Tensor]:
        """Return onset and frame logits, each (batch, frames, pitches), of audio (batch, samples)."""
        features = self.features(audio)
        return self.network(features.to(self.network.onset.weight.dtype))  # type: ignore[no-any-return]

    def loss(self, batch: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss and the two logits; onsets are rarer than frames, so they weigh more."""
        onset, frame = self(batch["audio"])
        onset_loss = F.binary_cross_entropy_with_logits(onset.float(), batch["onset"], pos_weight=onset.new_tensor(4.0))
        return 4.0 * onset_loss + F.binary_cross_entropy_with_logits(frame.float(), batch["frame"]), onset, frame

    def training_step(self, batch: dict[str, Any], batch_idx: int) -> Tensor:
        """Return the loss."""
        loss, _, _ = self.loss(batch)
        self.latest_loss = loss.detach()
        self.log("loss", loss, prog_bar=True, logger=False)
        return loss

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Log by the number of optimizer steps: self.log counts otherwise, and a resume can shift its count."""
        step = self.global_step + 1
        if step % self.trainer.log_every_n_steps == 0:  # type: ignore[attr-defined] # Lightning declares it nowhere
            row = {"train/loss": float(self.latest_loss), "train/lr": optimizer.param_groups[0]["lr"]}
            for logger in self.loggers:
                logger.log_metrics(row, step)

    def validation_step(self, batch: dict[str, Any], batch_idx: int) -> None:
        """Score one recording; each figure is the mean over recordings ("macro")."""
        loss, onset, frame = self.loss(batch)
        maps = [np.asarray(logits[0].float().sigmoid().cpu()) for logits in (onset, frame)]
        estimate = decode(maps[0], maps[1], self.hop_seconds, self.lowest_pitch)
        precision, recall, f1 = score(batch["notes"][0].cpu().numpy(), estimate)
        # Every rank scores the whole set, so all of them agree on what is best.
        common: dict[str, Any] = {"on_epoch": True, "sync_dist": True, "batch_size": 1}
        self.log("validation/macro_onset_f", f1, prog_bar=True, **common)
        self.log("validation/macro_onset_p", precision, **common)
        self.log("validation/macro_onset_r", recall, **common)
        self.log("validation/loss", loss, **common)
        self.log("step", float(self.global_step), **common)

    def configure_optimizers(self) -> Any:
        """Return the optimizer and a schedule that is a function of the step alone, whatever was resumed."""
        rules = self.training_rules
        optimizer = OPTIMIZERS[rules["optimizer"]](
            self.network.parameters(), lr=rules["learning_rate"], weight_decay=rules["weight_decay"]
        )

        def factor(step: int) -> float:  # a plain function, which LambdaLR leaves out of the checkpoint
            return rate_at(step, rules["scheduler"], rules["warmup_steps"], rules["total_steps"])

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
