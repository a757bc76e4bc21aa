"""A mapping for a repository that none fits."""

from pathlib import Path

import pytest
import yaml
from repos import family, home
from stand import Stand, errors, option

from amt_hydra.cli import main
from amt_hydra.emit import kind_of, write
from amt_hydra.errors import AmtError

pytest_plugins = ["desks"]


def emitted(root: Path, file: Path) -> str:
    assert main(["inspect", str(root), "--emit", str(file)]) == 0
    return file.read_text()


def test_what_is_emitted_for_a_known_layout_works_as_it_stands(public: Stand) -> None:
    emitted(public.repository, public.folder / "conf" / "repo" / "other.yaml")
    pre = public.pre("repo=other", "optimizer.warmup_steps=250", "max_steps=20")
    assert errors(pre) == []
    assert pre.subject.settings.repo.kind == "other"
    assert option(pre.subject.plan.argv, "--max-steps") == "20"
    assert pre.subject.plan.bridge is not None
    assert pre.subject.plan.place == public.pre().subject.plan.place


def test_a_renamed_flag_is_proposed_with_its_place_and_never_taken(stand: Stand) -> None:
    home(stand.repository, changes={'"-it", "--max-steps"': '"--num-steps"', "args.max_steps": "args.num_steps"})
    file = stand.folder / "conf" / "repo" / "fork.yaml"
    text = emitted(stand.repository, file)
    assert "max_steps" not in yaml.safe_load(text)["means"]
    (line,) = [line for line in text.splitlines() if "flag:num_steps" in line]
    assert line.startswith("  # max_steps: [flag:num_steps]   # --num-steps at src/train.py:")
    assert [f.id for f in stand.pre("repo=fork", "max_steps=5").stopped] == ["SettingReaches"]
    file.write_text(text.replace("  # max_steps:", "  max_steps:"))
    assert option(stand.pre("repo=fork", "max_steps=5").subject.plan.argv, "--num-steps") == "5"


def test_every_line_that_is_not_commented_out_holds_in_this_repository(tmp_path: Path) -> None:
    means = yaml.safe_load(emitted(family(tmp_path / "r"), tmp_path / "repo" / "x.yaml"))["means"]
    assert means["batch"]["accumulate"] == ["config:shared_cfg.TRAINER.accumulate_grad_batches"]
    assert means["precision"]["name"] == ["flag:precision"]
    assert "model" not in means, "this one has no flag and no key of the architecture"


def test_a_value_of_several_lines_is_a_comment_of_one(tmp_path: Path) -> None:
    root = family(tmp_path / "r")
    file = root / "amt" / "src" / "config" / "config.py"
    file.write_text(file.read_text().replace('"validation/macro_onset_f"', '"validation/\\n- f"'))
    means = yaml.safe_load(emitted(root, tmp_path / "repo" / "x.yaml"))["means"]
    assert means["checkpoint"]["monitor"] == ["config:shared_cfg.CHECKPOINT.monitor"]


def test_no_file_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "repo" / "x.yaml"
    emitted(family(tmp_path / "r"), file)
    before = file.read_text()
    assert main(["inspect", str(tmp_path / "r"), "--emit", str(file)]) == 78
    assert "is there already" in capsys.readouterr().err
    assert file.read_text() == before


@pytest.mark.parametrize("name", ["repo/auto.yaml", "repo/yourmt3.yaml", "repo/x.yml", "x.yaml", "repo/a b.yaml"])
def test_a_name_under_which_nothing_would_be_found_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(AmtError, match="--emit"):
        kind_of(tmp_path / name)


def test_tables_that_a_fork_has_moved_are_found(public: Stand) -> None:
    source = public.repository / "amt" / "src"
    (source / "config" / "config.py").rename(source / "settings.py")
    (source / "config" / "data_presets.py").rename(source / "corpora.py")
    train = (source / "train.py").read_text()
    train = train.replace("config.config", "settings").replace("config.data_presets", "corpora")
    (source / "train.py").write_text(train)
    pre = public.pre("optimizer.warmup_steps=250", "data_presets=guitarset", "max_steps=9999")
    assert errors(pre) == []
    assert pre.subject.plan.bridge is not None
    assert {str(c.place.file) for c in pre.subject.plan.bridge.changes} == {str(source / "settings.py")}


def test_the_module_with_most_of_the_tables_is_the_config(model: Stand) -> None:
    """A network may well have a model_cfg of its own; and the tasks may stand in config.py."""
    source = model.repository / "amt" / "src"
    tasks = (source / "config" / "task.py").read_text()
    (source / "config" / "task.py").unlink()
    (source / "settings.py").write_text((source / "config" / "config.py").read_text() + tasks)
    (source / "config" / "config.py").unlink()
    (source / "net.py").write_text("model_cfg = {'d': 1}\n")
    train = (source / "train.py").read_text().replace("config.config", "settings")
    (source / "train.py").write_text(train.replace("import argparse\n", "import argparse\nimport net\n", 1))
    repository = model.pre().subject.repository
    assert repository.config_file == source / "settings.py"
    assert "mc11" in repository.tasks


def test_where_no_place_of_the_runs_is_found_the_next_command_asks_for_it(
    public: Stand, capsys: pytest.CaptureFixture[str]
) -> None:
    config = public.repository / "amt/src/config/config.py"
    config.write_text(config.read_text().replace("save_dir", "place"))
    emitted(public.repository, public.folder / "conf" / "repo" / "other.yaml")
    assert capsys.readouterr().out.rstrip().endswith(" repo.runs=FOLDER")
    with pytest.raises(AmtError, match=r"could not be read: repo\.runs_from names no means"):
        public.pre("repo=other")
    assert errors(public.pre("repo=other", f"repo.runs={public.runs}")) == []


def test_an_emitted_file_is_whole_or_not_there(tmp_path: Path) -> None:
    """A text that no encoding takes stands for a disk that is full in the middle of it."""
    file = tmp_path / "repo" / "x.yaml"
    with pytest.raises(UnicodeEncodeError):
        write(file, "kind: x\n\ud800")
    assert not file.exists()
