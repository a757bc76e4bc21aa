"""What `-d` may name: where the melodies come from, and how they are divided."""

from typing import Any

data_preset_single_cfg: dict[str, dict[str, Any]] = {
    # Melodies made up as training goes; the validation melodies come from another seed and never change.
    "synthetic": {
        "source": "synth",
        "eval_seed": 20_000_003,
        "eval_clips": 24,
        "eval_seconds": 6.0,
    },
    # Your own recordings: NAME.wav beside NAME*.csv (onset s, pitch Hz, duration s) or NAME.mid, in --data-home.
    "folder": {
        "source": "folder",
        "validation_part": 0.25,  # of the recordings, or of the time where there is only one
        "transpose_semitones": 3.0,  # training clips are resampled by up to this much, either way
    },
}
data_preset_multi_cfg: dict[str, dict[str, Any]] = {}
