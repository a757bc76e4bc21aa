"""A repository against the conventions."""

from pathlib import Path

from repos import family, home, line_of

from amt_hydra.conf_path import bundled_repository, shipped
from amt_hydra.inspection import Convention, Inspection, inspect
from amt_hydra.mapping import channels
from amt_hydra.mapping_choice import fitting_kind, mapping
from amt_hydra.repository import read


def inspected(root: Path) -> Inspection:
    repository = read(root)
    kind = fitting_kind(repository)
    return inspect(repository, kind, channels(mapping([shipped()], kind, repository)["means"], repository))


def row(inspection: Inspection, key: str) -> Convention:
    return next(c for c in inspection.conventions if c.key == key)


def test_each_convention_names_its_means_its_value_here_and_the_documented_one(tmp_path: Path) -> None:
    found = inspected(family(tmp_path))
    config = tmp_path / "amt/src/config/config.py"
    warmup = row(found, "optimizer.warmup_steps")
    assert (warmup.by, warmup.bridged) == ("config shared_cfg.LR_SCHEDULE.warmup_steps", True)
    assert (warmup.value, warmup.documented) == (1000, 500)
    assert str(warmup.place) == line_of(config, '"warmup_steps"')
    precision = row(found, "precision.name")
    assert (precision.by, precision.bridged, precision.value) == ("--precision", False, "bf16-mixed")


def test_what_a_public_repository_lacks_and_the_bridge_adds(tmp_path: Path) -> None:
    found = inspected(family(tmp_path))
    added = {lack.what for lack in found.lacks if lack.added}
    assert {"true resume", "warm-start from init.ckpt", "AMT_FORCE_SCRATCH", "AMT_DEBUG_GRAD_FINITE"} <= added
    assert "seed" in " ".join(added)


def test_what_neither_the_repository_nor_the_bridge_can_set_is_named(tmp_path: Path) -> None:
    family(
        tmp_path,
        changes={'parser.add_argument("-n", "--num-nodes", type=int, default=1)\n': "", "args.num_nodes, ": ""},
    )
    (cannot,) = [lack for lack in inspected(tmp_path).lacks if not lack.added]
    assert "ddp.nodes" in cannot.what
    assert "ddp.devices" not in cannot.what


def test_how_its_own_code_starts_a_run(tmp_path: Path) -> None:
    found = inspected(family(tmp_path))
    assert "weights only" in found.start[0]
    assert line_of(tmp_path / "amt/src/train.py", "load_state_dict") in found.start[1]
    assert "not strict" in found.start[1]


def test_flags_without_effect_are_faults(tmp_path: Path) -> None:
    dead = [f.text for f in inspected(family(tmp_path)).faults if f.kind == "dead flag"]
    assert any("--base-name" in text for text in dead)


def test_presets_that_name_what_is_not_there_are_faults(tmp_path: Path) -> None:
    home(
        tmp_path,
        changes={"data_preset_multi_cfg = {}": 'data_preset_multi_cfg = {"all": {"presets": ["musicnet", "gone"]}}'},
    )
    (fault,) = [f.text for f in inspected(tmp_path).faults if f.kind == "preset"]
    assert "gone" in fault
    assert "musicnet" not in fault


def test_the_bundled_repository_lacks_nothing_that_the_bridge_would_add() -> None:
    assert [lack for lack in inspected(bundled_repository()).lacks if lack.added] == []
