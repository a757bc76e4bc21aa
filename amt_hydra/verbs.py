"""The verbs: the first bare word of a command line. No override is one."""

from collections.abc import Mapping

VERBS: Mapping[str, str] = {
    "train": "compose, check and launch (the default)",
    "plan": "everything but the launch: what would run, and why",
    "status": "every point of every sweep: state, step, best score, folder: status [paths.outputs=DIR] [--watch]",
    "inspect": "what a repository really accepts: inspect [PATH] [--emit conf/repo/NAME.yaml]",
    "checkpoint": "X-ray of checkpoints, without torch: checkpoint PATH…",
    "conventions": "every convention, its reason, the check that holds it: conventions [--markdown]",
}
PATH_VERBS = ("inspect", "checkpoint")
