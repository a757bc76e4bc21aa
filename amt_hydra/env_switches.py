"""The AMT_* variables that a run's environment may have on."""

from collections.abc import Mapping

FORCE_SCRATCH = "AMT_FORCE_SCRATCH"
DEBUGGING: Mapping[str, str] = {"grad_finite": "AMT_DEBUG_GRAD_FINITE", "detect_anomaly": "AMT_DETECT_ANOMALY"}
"""By the setting below debug, which is the bridge's capability too."""
ALL = (FORCE_SCRATCH, *DEBUGGING.values())
