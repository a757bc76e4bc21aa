"""The verbs: the first bare word of a command line. No override is one."""

from collections.abc import Mapping

VERBS: Mapping[str, str] = {
    "train": "compose, check and launch (the default)",
    "plan": "everything but the launch: what would run, and why",
    "status": "every point of every sweep: state, job, step, best score, folder: status [paths.outputs=DIR] [--watch]",
    "cancel": "end what runs and take back what is queued: cancel STATE|SIGNATURE|EXP_ID|SWEEP… [paths.outputs=DIR]",
    "retry": "run what failed, stopped or never began again: retry STATE|SIGNATURE|EXP_ID|SWEEP… [paths.outputs=DIR]",
    "inspect": "what a repository really accepts: inspect [PATH] [--emit conf/repo/NAME.yaml]",
    "checkpoint": "X-ray of checkpoints, without torch: checkpoint PATH…",
    "conventions": "every convention, its reason, the check that holds it: conventions [--markdown]",
}
PATH_VERBS = ("inspect", "checkpoint")
