"""How checks are run: prerequisites, ignored findings, strict runs; and that the registry is whole."""

from collections.abc import Iterator
from typing import ClassVar

import pytest
from stand import Stand, errors, of

import amt_hydra.checks
from amt_hydra.checks import CHECKS, run_checks, stops
from amt_hydra.checks.base import Check, Finding, Subject

pytest_plugins = ["desks"]

NOT_IGNORABLE = {
    "IgnoresAreKnown",
    "IdentityHolds",
    "ExperimentFree",
    "SettingReaches",
    "ValueFits",
    "ExtraFlagExists",
    "FeatureImplemented",
    "FoldersWritable",
    "InterpreterRuns",
    "RanksAreStarted",
    "JobIsSized",
    "RanksFitJob",
}
"""What would make a run other than declared, or let it write where it must not."""


class First(Check):
    """Fails."""

    def run(self, subject: Subject) -> Iterator[Finding]:
        yield self.error("first")


class Second(Check):
    """Would repeat it."""

    requires = (First,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        yield self.error("second")


class Third(Check):
    """Builds on the second, which is skipped."""

    requires = (Second,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        yield self.error("third")


class Warns(Check):
    """A warning is no failure."""

    def run(self, subject: Subject) -> Iterator[Finding]:
        yield self.warning("warns")


class AfterWarning(Check):
    """Runs all the same."""

    requires: ClassVar[tuple[type[Check], ...]] = (Warns,)

    def run(self, subject: Subject) -> Iterator[Finding]:
        yield self.info("after")


def test_what_depends_on_a_failed_check_is_skipped_and_so_is_what_depends_on_that(stand: Stand) -> None:
    subject = stand.pre().subject
    stand.monkeypatch.setattr(amt_hydra.checks, "CHECKS", (First, Second, Third, Warns, AfterWarning))
    assert [f.message for f in run_checks(subject)] == ["first", "warns", "after"]


def test_every_prerequisite_comes_before_what_depends_on_it() -> None:
    for number, check in enumerate(CHECKS):
        assert set(check.requires) <= set(CHECKS[:number])


def test_every_check_has_a_title_and_a_reason() -> None:
    for check in CHECKS:
        assert check.title().endswith(".")
        assert len(check.reason()) > 20


def test_what_would_make_a_run_other_than_declared_cannot_be_ignored() -> None:
    assert {c.__name__ for c in CHECKS if not c.ignorable} == NOT_IGNORABLE


def test_a_failed_identity_is_reported_once(stand: Stand) -> None:
    stand.checkpoint.cut(stand.experiment() / "last.ckpt", step=10)
    pre = stand.pre("init=resume", "max_steps=2000")
    assert [f.id for f in pre.findings if f.severity != "info"] == ["IdentityHolds"]


def test_a_finding_is_ignored_by_name_with_a_reason_which_it_then_carries(stand: Stand) -> None:
    assert errors(stand.pre("batch.sub=5")) != []
    pre = stand.pre("batch.sub=5", "checks.ignore.BatchDivides=the loader drops the rest")
    (finding,) = of(pre, "BatchDivides")
    assert finding.ignored == "the loader drops the rest"
    assert errors(pre) == []


def test_an_ignored_check_of_another_name_changes_nothing(stand: Stand) -> None:
    pre = stand.pre("batch.sub=5", "checks.ignore.DiskSpace=purged nightly")
    assert [f.id for f in pre.stopped] == ["BatchDivides"]


def test_an_ignored_check_that_does_not_exist_gets_the_nearest_name(stand: Stand) -> None:
    (finding,) = of(stand.pre("checks.ignore.BatchDivide=why"), "IgnoresAreKnown")
    assert finding.severity == "error"
    assert finding.fix == ("did you mean checks.ignore.BatchDivides?",)


def test_identity_cannot_be_ignored(stand: Stand) -> None:
    stand.last()
    pre = stand.pre("checks.ignore.IdentityHolds=I know")
    assert [f.id for f in pre.stopped] == ["IgnoresAreKnown", "IdentityHolds"]
    assert "cannot be ignored" in pre.stopped[0].message


@pytest.mark.parametrize("reason", ["", "  "])
def test_an_ignored_check_needs_a_reason(stand: Stand, reason: str) -> None:
    pre = stand.pre("batch.sub=5", f"checks.ignore.BatchDivides={reason}")
    assert "give the reason" in of(pre, "IgnoresAreKnown")[0].message
    assert pre.stopped != ()


def test_a_strict_run_is_stopped_by_warnings_and_not_by_what_is_merely_said(stand: Stand) -> None:
    words = ("max_steps=100", "optimizer.warmup_steps=100", "optimizer=adafactor")
    pre = stand.pre(*words)
    assert {f.severity for f in pre.findings} == {"warning", "info"}
    assert pre.stopped == ()
    assert [f.id for f in stand.pre(*words, "checks.strict=true").stopped] == ["WarmupEnds"]


def test_a_strict_run_passes_over_an_ignored_warning(stand: Stand) -> None:
    pre = stand.pre("max_steps=9", "checks.strict=true", "checks.ignore.WarmupEnds=only a smoke test")
    assert errors(pre) == []


@pytest.mark.parametrize(
    ("severity", "strict", "stopped"),
    [("error", False, True), ("warning", False, False), ("warning", True, True), ("info", True, False)],
)
def test_what_stops_a_run(severity: str, strict: bool, stopped: bool) -> None:
    finding = Finding("X", severity, "m")  # type: ignore[arg-type]
    assert stops(finding, strict) is stopped
    assert stops(Finding("X", severity, "m", ignored="why"), strict) is False  # type: ignore[arg-type]


def test_an_ordinary_run_has_nothing_to_say(stand: Stand) -> None:
    assert [f for f in stand.pre("max_steps=5000", "val_interval=500").findings if f.severity != "info"] == []
