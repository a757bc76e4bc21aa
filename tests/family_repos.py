"""A repository of the public layout with the architecture's flags, its config.py and task.py. Never run."""

from collections.abc import Mapping
from pathlib import Path

import repos

FLAGS = """\
parser.add_argument("-ac", "--audio-codec", type=str, default=None)
parser.add_argument("-hop", "--hop-length", type=int, default=None)
parser.add_argument("-nmel", "--n-mels", type=int, default=None)
parser.add_argument("-if", "--input-frames", type=int, default=None)
parser.add_argument("-sqr", "--sca-use-query-residual", type=str2bool, default=None)
parser.add_argument("-enc", "--encoder-type", type=str, default=None)
parser.add_argument("-dec", "--decoder-type", type=str, default=None)
parser.add_argument("-preenc", "--pre-encoder-type", type=str, default="default")
parser.add_argument("-epe", "--encoder-position-encoding-type", type=str, default="default")
parser.add_argument("-el", "--event-length", type=int, default=None)
parser.add_argument("-nl", "--num-latents", type=int, default=None)
parser.add_argument("-atc", "--attention-to-channel", type=str2bool, default=None)
parser.add_argument("-ff", "--ff-layer-type", type=str, default=None)
parser.add_argument("-wf", "--ff-widening-factor", type=int, default=None)
parser.add_argument("-nmoe", "--moe-num-experts", type=int, default=None)
parser.add_argument("-kmoe", "--moe-topk", type=int, default=None)
parser.add_argument("-act", "--hidden-act", type=str, default=None)
parser.add_argument("-rp", "--rope-partial-pe", type=str2bool, default=None)
parser.add_argument("-tk", "--task", type=str, default="mt3_full_plus")
parser.add_argument("-epv", "--eval-program-vocab", type=str, default=None)
parser.add_argument("-xk", "--xaug-max-k", type=int, default=None)
parser.add_argument("-se", "--train-num-samples-per-epoch", type=int, default=90000)
args = parser.parse_args()
print(args.audio_codec, args.hop_length, args.n_mels, args.input_frames, args.sca_use_query_residual)
print(args.encoder_type, args.decoder_type, args.pre_encoder_type, args.encoder_position_encoding_type)
print(args.event_length, args.num_latents, args.attention_to_channel, args.ff_layer_type, args.ff_widening_factor)
print(args.moe_num_experts, args.moe_topk, args.hidden_act, args.rope_partial_pe, args.task, args.eval_program_vocab)
print(args.xaug_max_k, args.train_num_samples_per_epoch)
"""

CONFIG = """\
audio_cfg = {"codec": "melspec", "hop_length": 128, "input_frames": 32767, "n_fft": 2048, "n_mels": 512}
model_cfg = {
    "encoder_type": "t5",
    "decoder_type": "t5",
    "pre_encoder_type": "default",
    "pre_encoder_type_default": {"t5": None, "perceiver-tf": "conv", "conformer": None},
    "pre_decoder_type_default": {
        "t5": {"t5": None},
        "perceiver-tf": {"t5": "linear", "multi-t5": "shared"},
        "conformer": {"t5": None},
    },
    "encoder": {
        "t5": {"d_model": 512},
        "perceiver-tf": {
            "num_latents": 24,
            "attention_to_channel": True,
            "sca_use_query_residual": False,
            "ff_layer_type": "mlp",
            "ff_widening_factor": 1,
            "moe_num_experts": 4,
            "moe_topk": 2,
            "hidden_act": "gelu",
        },
        "conformer": {"d_model": 512},
    },
    "decoder": {"t5": {"d_model": 512}, "multi-t5": {"d_model": 512, "num_channels": 13}},
    "event_length": 1024,
}
"""

TASKS = """\
NAMES = ["piano", "bass"]
task_cfg = {
    "mt3_full_plus": {"name": "mt3_full_plus"},
    "singing_v1": {"name": "singing", "max_task_token_length": 2},
    "mc13_full_plus_256": {
        "name": "mc13_full_plus_256",
        "num_decoding_channels": 13,
    },
    "mc11": {"name": "mc11", "num_decoding_channels": 11},
    "counted": {"name": "counted", "num_decoding_channels": max(map(len, NAMES))},
}
"""

PRESETS = """\
data_preset_single_cfg = {
    "musicnet": {"dataset_name": "musicnet", "train_split": "train", "validation_split": "validation"},
    "guitarset": {"dataset_name": "guitarset", "train_split": "train", "validation_split": "validation"},
    "maps_all": {"dataset_name": "maps", "train_split": "all", "validation_split": None},
    "maps_test": {"dataset_name": "maps", "train_split": None, "validation_split": "test"},
}
data_preset_multi_cfg = {
    "two": {"presets": ["musicnet", "guitarset"], "eval_vocab": [None] * 2},
    "two_one_validated": {"presets": ["maps_all", "guitarset"], "eval_vocab": [None]},
    "two_misspelt": {"presets": ["musicnet", "guitarsett"], "eval_vocab": [None, None]},
    "two_nested": {"presets": ["musicnet", "two"], "eval_vocab": [None, None]},
    "two_untrained": {"presets": ["musicnet", "maps_test"], "eval_vocab": [None, None]},
    "two_short": {"presets": ["musicnet", "guitarset"], "eval_vocab": [None]},
    "two_unvalidated": {"presets": ["maps_all", "maps_all"], "eval_vocab": [None, None]},
}
"""


def with_model(root: Path, changes: Mapping[str, str] | None = None) -> Path:
    """Write it; `changes` replaces text of its files."""
    source = repos.family(root) / "amt" / "src"
    train = (source / "train.py").read_text().replace("args = parser.parse_args()\n", FLAGS)
    config = (source / "config" / "config.py").read_text()
    augmentation = '    "AUGMENTATION": {"train_stem_xaug_policy": {"max_k": 3}},\n}\n'
    files = {
        "train.py": train,
        "config/config.py": config.rstrip().removesuffix("}") + augmentation + CONFIG,
        "config/task.py": TASKS,
        "config/data_presets.py": PRESETS,
    }
    for old, new in (changes or {}).items():
        assert any(old in text for text in files.values()), "a change that changes nothing"
        files = {name: text.replace(old, new) for name, text in files.items()}
    for name, text in files.items():
        (source / name).write_text(text, encoding="utf-8")
    return root
