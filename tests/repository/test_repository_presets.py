"""What can be told of data presets and of tasks."""

from pathlib import Path

from small_repository import repository

PRESETS = """\
from vocabulary import *
data_preset_single_cfg = {
    "piano": {"eval_vocab": [PIANO], "train_split": "train", "validation_split": "validation"},
    "test_only": {"eval_vocab": [PIANO], "train_split": None, "validation_split": None},
    "computed": {"train_split": merge(["a", "b"]), "validation_split": None},
}
data_preset_multi_cfg = {
    "both": {"presets": ["piano", "computed"], "weights": [0.5, 0.5], "eval_vocab": [PIANO, None]},
    "short": {"presets": ["piano", "computed"], "eval_vocab": [PIANO]},
    "gone": {"presets": ["piano", "harp"], "eval_vocab": [None] * 2},
    "added": {"presets": ["piano"] + ["computed"], "eval_vocab": [PIANO] + 2 * [None] + [*[PIANO, PIANO]]},
    "unknown": {"presets": find_all(), "eval_vocab": [merge(v) for v in PIANO]},
    "bare": {"presets": ["piano"], "eval_vocab": VOCABULARIES},
}
"""
VOCABULARY = """\
import numpy as np
PIANO = {"Piano": np.arange(8)}
vocabularies = {"plus": {"Piano": np.arange(8), "Bass": [32], "Voice": [100]}}
"""


def test_members_vocabularies_and_splits_of_presets(tmp_path: Path) -> None:
    found = repository(tmp_path, data_presets=PRESETS, vocabulary=VOCABULARY).presets
    assert {name: (preset.members, preset.vocabularies) for name, preset in found.items()} == {
        "piano": (None, None),
        "test_only": (None, None),
        "computed": (None, None),
        "both": (("piano", "computed"), 2),
        "short": (("piano", "computed"), 1),
        "gone": (("piano", "harp"), 2),
        "added": (("piano", "computed"), 5),
        "unknown": (None, None),
        "bare": (("piano",), None),
    }
    assert {name: preset.lacks for name, preset in found.items() if preset.lacks} == {
        "test_only": ("train_split", "validation_split"),
        "computed": ("validation_split",),
    }
    assert found["short"].place.line == 9


TASKS = """\
from vocabulary import *
from utils.events import Event
task_cfg = {
    "plain": {"name": "plain", "train_program_vocab": vocabularies["plus"], "prefix": [Event("all", 0)]},
    "thirteen": {"name": "thirteen", "num_decoding_channels": 13},
    "counted": {"name": "counted", "num_decoding_channels": len(vocabularies["plus"]) + 1},
    "unknown": {"name": "unknown", "num_decoding_channels": count()},
    "spread": {"name": "spread", **more()},
}
"""


def test_tasks_and_their_channels(tmp_path: Path) -> None:
    found = repository(tmp_path, config="A = 1\n", task=TASKS, vocabulary=VOCABULARY).tasks
    channels = {name: task.channels for name, task in found.items()}
    assert channels == {"plain": 1, "thirteen": 13, "counted": 4, "unknown": None, "spread": None}
    assert (found["counted"].place.file.name, found["counted"].place.line) == ("task.py", 6)


def test_tasks_stand_beside_config_in_its_folder_or_in_config_itself(tmp_path: Path) -> None:
    table = "task_cfg = {'x': {}}\n"
    assert list(repository(tmp_path / "a", config__config="A = 1\n", config__task=table).tasks) == ["x"]
    assert list(repository(tmp_path / "b", config=table).tasks) == ["x"]
    assert repository(tmp_path / "c", config="A = 1\n").tasks == {}
    assert repository(tmp_path / "d", config="A = 1\n", task="task_cfg = build()\n").tasks == {}
