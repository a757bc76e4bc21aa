"""Configs of the user's own."""

from stand import Stand, of

pytest_plugins = ["desks"]


def test_a_file_named_like_a_shipped_option_is_said_to_be_without_effect(stand: Stand) -> None:
    mine = stand.folder / "conf" / "precision" / "bf16.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text("name: bf16-true\n")
    pre = stand.pre()
    (finding,) = of(pre, "ConfigsCount")
    assert finding.severity == "warning"
    assert str(mine) in finding.message
    assert pre.subject.settings.precision.name == "bf16-mixed"


def test_a_file_with_a_name_of_its_own_counts(stand: Stand) -> None:
    mine = stand.folder / "conf" / "precision" / "true.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text("name: bf16-true\n")
    pre = stand.pre("precision=true")
    assert of(pre, "ConfigsCount") == []
    assert pre.subject.settings.precision.name == "bf16-true"
