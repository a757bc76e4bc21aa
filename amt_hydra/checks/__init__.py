"""The checks, in the order in which they are run and shown. A new one is added to this list."""

from dataclasses import replace

from amt_hydra.checks.base import Check, Finding, Subject
from amt_hydra.checks.config_checks import ConfigsCount
from amt_hydra.checks.ddp_checks import BatchIsMeant, RanksAreStarted, StrategyKnown
from amt_hydra.checks.family_checks import FirstEpochEnds, PresetTrains, SamplesPerEpoch
from amt_hydra.checks.identity_checks import (
    ExperimentFree,
    IdentityHolds,
    LastIsCurrent,
    LeftoverSwitches,
)
from amt_hydra.checks.machine_checks import (
    DevicesExist,
    DiskSpace,
    FoldersWritable,
    InterpreterRuns,
    PrecisionFits,
    WandbReady,
    WorkersFit,
)
from amt_hydra.checks.model_checks import EncoderFitsDecoder, MelsFitModel, TaskFitsDecoder
from amt_hydra.checks.resume_checks import (
    ArchitectureFits,
    LazyPartsFit,
    RestoredOnResume,
    ScheduleReaches,
    SettingsContinue,
)
from amt_hydra.checks.setting_checks import (
    DataHomeExists,
    DefaultKept,
    DocumentedDefaults,
    ExtraFlagExists,
    FeatureImplemented,
    IgnoresAreKnown,
    PrecisionKnown,
    PresetExists,
    SettingReaches,
    ValueFits,
)
from amt_hydra.checks.slurm_checks import JobIsSized, RanksFitJob, TimeLimitIsSeen
from amt_hydra.checks.source_checks import TrainStarts, WandbRunFresh
from amt_hydra.checks.training_checks import (
    BatchDivides,
    FirstValidation,
    MonitorLogged,
    StepsToTrain,
    WarmupEnds,
)
from amt_hydra.checks.version_checks import LastIsWritten, LoadsAsIs, VersionsKnown

CHECKS: tuple[type[Check], ...] = (
    IgnoresAreKnown,
    ConfigsCount,
    TrainStarts,
    InterpreterRuns,
    VersionsKnown,
    IdentityHolds,
    ExperimentFree,
    LastIsCurrent,
    LastIsWritten,
    LoadsAsIs,
    SettingsContinue,
    ArchitectureFits,
    LazyPartsFit,
    LeftoverSwitches,
    SettingReaches,
    ValueFits,
    PrecisionKnown,
    ExtraFlagExists,
    FeatureImplemented,
    PresetExists,
    PresetTrains,
    DataHomeExists,
    TaskFitsDecoder,
    EncoderFitsDecoder,
    MelsFitModel,
    DefaultKept,
    DocumentedDefaults,
    RestoredOnResume,
    ScheduleReaches,
    MonitorLogged,
    StepsToTrain,
    FirstValidation,
    FirstEpochEnds,
    WarmupEnds,
    BatchDivides,
    SamplesPerEpoch,
    BatchIsMeant,
    StrategyKnown,
    RanksAreStarted,
    JobIsSized,
    TimeLimitIsSeen,
    RanksFitJob,
    DevicesExist,
    PrecisionFits,
    WorkersFit,
    DiskSpace,
    FoldersWritable,
    WandbReady,
    WandbRunFresh,
)


def run_checks(subject: Subject) -> tuple[Finding, ...]:
    """Run every check whose prerequisites hold; findings that checks.ignore names carry its reason."""
    findings: list[Finding] = []
    failed: set[type[Check]] = set()
    for check in CHECKS:
        if failed.intersection(check.requires):
            failed.add(check)  # so that what depends on this one is skipped too
            continue
        found = list(check().run(subject))
        if any(f.severity == "error" for f in found):
            failed.add(check)
        reason = subject.settings.checks.ignore.get(check.__name__, "") if check.ignorable else ""
        findings += [replace(f, ignored=reason) for f in found]
    return tuple(findings)


def stops(finding: Finding, strict: bool) -> bool:
    """Whether a finding keeps the run from starting."""
    if finding.ignored:
        return False
    return finding.severity == "error" or (strict and finding.severity == "warning")
