"""The public layout in small: its kinds of flags, and each thing that reading its source has to cope with."""

from pathlib import Path

import pytest
from small_repository import repository

from amt_hydra.repository import Flag, Repository
from amt_hydra.repository.facts import Computed

TRAIN = """\
import argparse
from setup import set_up, override
from net import Net
from loaders import Loaders
from config.data_presets import data_preset_single_cfg
from utils import str2bool
parser = argparse.ArgumentParser()
parser.add_argument('exp_id', type=str, help='A name; "@" selects a checkpoint.')
parser.add_argument('-p', '--project', type=str, default='ymt3')
parser.add_argument('-xiaug', '--uhat-intra-stem_augment', type=str2bool, default=None)
parser.add_argument('-ps', '--pitch-shift-range', nargs=2, type=int, default=None)
parser.add_argument('-b', '--base-name', type=str, default="google/t5")
parser.add_argument('-twe', '--tie-word-embedding', type=str2bool, default=None)
parser.add_argument('-ln', '--layer-norm-type', type=str, default=None, help='{"layer_norm", "rms_norm"}')
parser.add_argument('-rk', '--rope-apply-to-keys', type=str2bool, default=None)
parser.add_argument('-bsz', '--train-batch-size', nargs=2, type=int, default=None)
parser.add_argument('-pr','--precision', type=str, default="bf16-mixed", help='{32, 16, bf16-mixed}')
parser.add_argument('-vit', '--val-interval', type=int, default=None)
parser.add_argument('-it', '--max-steps', type=int, default=-1)
parser.add_argument('-wb', '--wandb-mode', type=str, default=None)
args = parser.parse_args()
trainer, shared_cfg = set_up(args, stage='train')
shared_cfg, model_cfg = override(args, shared_cfg)

def main():
    loaders = Loaders(data_preset_single_cfg[args.project], **shared_cfg["AUGMENTATION"])
    net = Net(model_cfg=model_cfg, shared_cfg=shared_cfg, max_steps=int(args.max_steps))
    trainer.fit(net, datamodule=loaders)

if __name__ == "__main__":
    main()
"""
MODULES = {
    "setup": """\
from copy import deepcopy
import pytorch_lightning as pl
from config.config import shared_cfg as default_shared_cfg
from config.config import model_cfg as default_model_cfg

def set_up(args, stage='train'):
    shared_cfg = deepcopy(default_shared_cfg)
    if args.wandb_mode is not None:
        shared_cfg["WANDB"]["mode"] = str(args.wandb_mode)
    logger = pl.loggers.WandbLogger(id=args.exp_id, project=args.project, **shared_cfg["WANDB"])
    if stage == 'train' and args.val_interval is not None:
        shared_cfg["TRAINER"]["check_val_every_n_epoch"] = None
        shared_cfg["TRAINER"]["val_check_interval"] = int(args.val_interval)
    if args.train_batch_size is not None:
        sub = int(args.train_batch_size[0])
        local = int(args.train_batch_size[1])
        if local % sub == 0:
            shared_cfg["BSZ"]["train_sub"] = sub
            shared_cfg["BSZ"]["train_local"] = local
        else:
            raise ValueError(f'{local} must be divisible by {sub}')
    options = dict(**shared_cfg["TRAINER"], precision=args.precision, max_steps=args.max_steps, logger=logger)
    return pl.Trainer(**options), shared_cfg

def override(args, shared_cfg):
    model_cfg = default_model_cfg
    if args.pitch_shift_range is not None:
        if args.pitch_shift_range in [["0", "0"], [0, 0]]:
            shared_cfg["AUGMENTATION"]["train_pitch_shift_range"] = None
        else:
            shared_cfg["AUGMENTATION"]["train_pitch_shift_range"] = list((int(args.pitch_shift_range[0]), 1))
    if args.uhat_intra_stem_augment is not None:
        shared_cfg["AUGMENTATION"]["policy"]["uhat"] = bool(args.uhat_intra_stem_augment)
    if args.tie_word_embedding is not None:
        model_cfg["tie_word_embedding"] = bool(args.tie_word_embedding)
    if args.layer_norm_type != None:
        model_cfg["encoder"]["perceiver-tf"]["layer_norm"] = str(args.layer_norm_type)
    if args.rope_apply_to_keys != None:
        model_cfg["encoder"]["perceiver-tf"]["rope_apply_to_keys"] = bool(args.rope_apply_to_keys)
    return shared_cfg, model_cfg
""",
    "net": """\
from config.config import shared_cfg as default_shared_cfg
from perceiver import PerceiverConfig, Perceiver

class Net:
    def __init__(self, model_cfg, shared_cfg=None, max_steps=-1):
        if shared_cfg is None:
            shared_cfg = default_shared_cfg
        self.model_cfg, self.shared_cfg = model_cfg, shared_cfg
        self.head = LMHead(model_cfg["tie_word_embeddings"])
        config = PerceiverConfig()
        config.update(self.model_cfg["encoder"]["perceiver-tf"])
        self.encoder = Perceiver(config)
    def setup(self, stage):
        shift = self.shared_cfg["AUGMENTATION"]["train_pitch_shift_range"]
        self.shape = (self.shared_cfg["BSZ"]["train_local"], 1)
""",
    "perceiver": """\
from transformers import PretrainedConfig

class PerceiverConfig(PretrainedConfig):
    def __init__(self, layer_norm_type="layer_norm", rope_apply_to_keys=False, **kwargs):
        super().__init__(**kwargs)
        self.layer_norm_type = layer_norm_type

class Perceiver:
    def __init__(self, config):
        self.layer_norm = norm(config.layer_norm_type)
        self.keys = config.rope_apply_to_keys
    def forward(self, x):
        return self.layer_norm(x)
""",
    "loaders": """\
from config.config import shared_cfg

class Loaders:
    def __init__(self, preset, train_pitch_shift_range=None, policy={"uhat": True}):
        assert shared_cfg["BSZ"]["train_local"] % shared_cfg["BSZ"]["train_sub"] == 0
        self.on = policy["uhat"]
""",
    "utils": "def str2bool(text):\n    return text == '1'\n",
    "config__config": '''\
"""config.py"""
import os
if os.path.exists("/data"):
    HOME = "/data"
else:
    HOME = "../../data"
"""
model_cfg: what the arguments of train.py override
"""
model_cfg = {
    "tie_word_embeddings": True,
    # "dropped": 1,
    "encoder": {"perceiver-tf": {"layer_norm_type": "layer_norm", "conv": (5, 2, 2), "rotary_apply_to_keys": False}},
}
shared_cfg = {
    "PATH": {"data_home": HOME},
    "BSZ": {"train_sub": 12, "train_local": 24},
    "AUGMENTATION": {"train_pitch_shift_range": [-2, 2], "policy": {"uhat": True}},
    "TRAINER": {"check_val_every_n_epoch": 1},
    "WANDB": {"mode": "online"},
}
''',
    "config__data_presets": "data_preset_single_cfg = {'guitarset': {'train_split': 'train'}}\n",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return repository(tmp_path_factory.mktemp("family"), TRAIN, **MODULES)


# The flag table: a row of each kind.


@pytest.mark.parametrize(
    ("dest", "options", "kind", "nargs", "default"),
    [
        ("exp_id", (), "str", None, None),
        ("project", ("-p", "--project"), "str", None, "ymt3"),
        ("uhat_intra_stem_augment", ("-xiaug", "--uhat-intra-stem_augment"), "str2bool", None, None),
        ("pitch_shift_range", ("-ps", "--pitch-shift-range"), "int", 2, None),
        ("precision", ("-pr", "--precision"), "str", None, "bf16-mixed"),
        ("max_steps", ("-it", "--max-steps"), "int", None, -1),
    ],
)
def test_a_flag_as_argparse_would_have_it(
    found: Repository, dest: str, options: tuple[str, ...], kind: str, nargs: int | None, default: object
) -> None:
    flag = found.flag(dest)
    assert flag is not None
    assert (flag.options, flag.type, flag.nargs, flag.default) == (options, kind, nargs, default)
    assert flag.choices is None  # they stand in the help text, which is sometimes wrong


def test_which_flags_do_nothing_and_why(found: Repository) -> None:
    def is_dead(flag: Flag) -> bool:
        return flag.reads == () or bool(flag.lost)

    assert {flag.dest: flag.lost for flag in found.flags if is_dead(flag)} == {
        "base_name": "",
        "tie_word_embedding": "sets tie_word_embedding of model_cfg at src/setup.py:35, which nothing reads",
        "layer_norm_type": "sets encoder.perceiver-tf.layer_norm of model_cfg at src/setup.py:37, which nothing reads",
        "train_batch_size": (
            "sets BSZ.train_sub of a copy made at src/setup.py:7; src/loaders.py:5 reads the original"
        ),
    }


# What reading the source has to cope with.


def test_parsing_and_the_trainer_on_import_and_a_parser_in_a_function(found: Repository, tmp_path: Path) -> None:
    """None of it is imported: a parser at module level and one in a function are read alike."""
    inside = TRAIN.replace("parser.", "    parser.").replace("parser = ", "def options():\n    parser = ")
    inside = inside.replace("args =     parser.parse_args()", "    return parser\nargs = options().parse_args()")
    other = repository(tmp_path, inside, **MODULES)
    assert [(flag.dest, flag.options) for flag in other.flags] == [(flag.dest, flag.options) for flag in found.flags]
    assert len(found.flags) == 13


def test_a_read_of_a_flag_that_is_not_there(found: Repository, tmp_path: Path) -> None:
    assert found.undefined == {}
    setup = MODULES["setup"].replace("args.precision", "args.accelerator")
    other = repository(tmp_path, TRAIN, **{**MODULES, "setup": setup})
    assert {name: place.line for name, place in other.undefined.items()} == {"accelerator": 22}
    assert [flag.dest for flag in other.flags if flag.reads == ()] == ["base_name", "precision"]


def test_a_config_with_choices_bare_strings_comments_and_tuples(found: Repository) -> None:
    home, conv = found.config["shared_cfg.PATH.data_home"], found.config["model_cfg.encoder.perceiver-tf.conv"]
    assert isinstance(home.value, Computed)
    assert "'/data' or '../../data'" in home.value.text
    assert (conv.value, conv.place.line) == ((5, 2, 2), 13)
    assert "model_cfg.dropped" not in found.config
    assert found.config["shared_cfg.BSZ.train_sub"].value == 12


def test_nothing_else_is_wrong_with_it(found: Repository) -> None:
    assert (found.problems, found.broken, found.lightning) == ((), (), ("pytorch_lightning",))
    assert list(found.loggers) == ["WandbLogger"]
    assert (found.goes_on, found.start.loads) == ("scratch", ())
