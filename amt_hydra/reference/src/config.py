"""Every default, in dictionaries named after the family's; a flag that was given overrides its entry."""

from typing import Any

audio_cfg: dict[str, Any] = {
    "sample_rate": 16000,  # Hz
    "hop_length": 320,  # samples between frames: 20 ms
    "n_fft": 2048,  # samples per window: 128 ms, enough to part semitones from about 130 Hz
    "bins_per_semitone": 2,
    "lowest_bin": 36,  # MIDI pitch of the first feature bin, 65 Hz
    "n_bins": 144,  # up to MIDI 107.5, 4 kHz: the harmonics that tell an octave from its neighbour
}

model_cfg: dict[str, Any] = {
    "lowest_pitch": 40,  # MIDI pitches 40..87, E2..D#6: voices and most melody instruments
    "n_pitches": 48,
    "conv_channels": 16,
    "hidden": 128,
}

shared_cfg: dict[str, Any] = {
    "BSZ": {"train_sub": 4, "train_local": 4},  # clips; local is per device and a multiple of sub
    "DATAIO": {
        "data_home": "../data",  # where the preset `folder` looks, relative to the cwd
        "num_workers": 1,  # per device
        "prefetch_factor": 4,  # batches per worker; not used with 0 workers
        "steps_per_epoch": 300,  # the stream of clips has no end, so an epoch is this many optimizer steps
        "clip_seconds": 2.0,
    },
    "CHECKPOINT": {
        "monitor": "validation/macro_onset_f",
        "mode": "max",
        "save_top_k": 7,
        "save_last": True,  # last.ckpt: a real file, written after each validation and at the end
    },
    "TRAINER": {
        "max_steps": 900,
        "max_epochs": -1,  # no limit of its own
        "val_check_interval": 100,  # optimizer steps
        "gradient_clip_val": 1.0,
        "accumulate_grad_batches": 1,
        "log_every_n_steps": 10,
        "precision": "bf16-mixed",
        "seed": 0,
    },
    "OPTIMIZER": {"name": "adamw", "weight_decay": 0.01},
    "LR_SCHEDULE": {"scheduler": "cosine", "warmup_steps": 500},
    "WANDB": {"save_dir": "../logs", "mode": "online", "logger": "auto"},
}

# Peak learning rates. AdamWScale and Adafactor scale their steps by the size of the parameter, so theirs are larger.
base_lr: dict[str, float] = {"adamw": 4e-3, "adamwscale": 3e-2, "adafactor": 3e-2}

# What the model logs, any of which may say which checkpoints are best.
monitors = ["validation/macro_onset_f", "validation/macro_onset_p", "validation/macro_onset_r", "validation/loss"]
