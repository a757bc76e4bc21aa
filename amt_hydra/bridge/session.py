"""The plan of the launch, what was done of it, and the reports of this rank."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from typing import Any

VARIABLE = "AMT_BRIDGE_PLAN"
REFUSED = 78  # as everywhere in the launcher: refused by a check
_NO = ("", "0", "false", "no", "off", "n", "f", "none", "null", "disable", "disabled")


class Refused(SystemExit):
    """Something that was asked for cannot be done. Ends the process with 78, through train.py's own handlers."""


def rank() -> Any:
    """Return the rank of this process, as torch, Lightning or Slurm say; 0 where there is one only.

    Slurm last: ranks that Lightning starts within one task of Slurm's all inherit that task's number.
    """
    for name in ("RANK", "LOCAL_RANK", "SLURM_PROCID"):
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def is_on(variable: str) -> Any:
    """Return whether an AMT_* variable is on."""
    return os.environ.get(variable, "").strip().lower() not in _NO


class Session:
    """What the plan says, and which parts of it were applied."""

    def __init__(self, file: str, worker: Any = False) -> None:
        self.worker = worker
        """Whether this process was spawned from train.py's, to load its data: it says nothing and writes nothing."""
        with open(file, "rb") as handle:
            data = handle.read()
        plan = json.loads(data.decode("utf-8", "surrogateescape"))
        if plan.get("schema") != 1:
            self.refuse("%s is of schema %r, and this bridge reads 1" % (file, plan.get("schema")))
        self.hash = hashlib.sha256(data).hexdigest()[:12]
        self.root = plan["root"]
        self.train = plan["train"]
        self.checkpoints = plan["checkpoints"]
        self.config = plan["config"]
        self.capabilities = plan["capabilities"]
        self.rank = rank()
        self.trainer: Any = None
        """The one that trained first."""
        self.reports = "%s-rank%d.jsonl" % (os.path.splitext(file)[0], self.rank)
        self.pending = set(self.capabilities)
        self.pending.update(named(entry) for entry in self.config)

    def arguments(self, name: str) -> Any:
        """Return the arguments of a capability, or None where the plan does not list it."""
        return self.capabilities.get(name)

    def done(self, name: str, text: str | None = None, what: str | None = None) -> None:
        """Note that a part of the plan was applied; say it once, on rank 0. `what`: its name to people."""
        if name not in self.pending:
            return
        self.pending.discard(name)
        self.report("patched", what=what or name, detail=text or "")
        if text:
            self.say("%s: %s" % (what or name, text))

    def say(self, text: str, every: Any = False) -> None:
        """Print one line; by rank 0 only, unless `every`."""
        if not self.worker and (every or self.rank == 0):
            _print(sys.stdout, text)

    def report(self, event: Any, **facts: Any) -> None:
        """Append one event to this rank's report. A disk that is full must not end the training."""
        if self.worker:
            return
        try:
            with open(self.reports, "a", encoding="utf-8", errors="surrogateescape") as handle:
                handle.write(json.dumps(dict(event=event, rank=self.rank, **facts), ensure_ascii=False) + "\n")
        except (OSError, ValueError) as error:
            self.say("no report: %s" % error, every=True)

    def never_applied(self) -> Any:
        """Return the parts of the plan that were not applied yet, and should have been on this rank."""
        elsewhere = ("csv", "unpickle") if self.rank != 0 else ()  # train.py may do these on rank 0 only
        return sorted(self.pending.difference(elsewhere))

    def refuse_pending(self, when: str) -> None:
        """End the process where a part of the plan was not applied."""
        missing = self.never_applied()
        if missing:
            self.refuse(
                "%s, and this was never applied: %s. What it would have changed was not met; look at the lines above"
                % (when, ", ".join(missing))
            )

    def refuse(self, text: str) -> None:
        """End the process: what was asked for would not be what is trained."""
        if hasattr(self, "reports"):
            self.report("refused", message=text)
        _print(sys.stderr, "refused: %s" % text)
        raise Refused(REFUSED)

    def end(self, text: str, code: Any) -> None:
        """End the process where it was asked to end, through train.py's own handlers."""
        self.report("stopped", message=text)
        self.say(text)
        raise SystemExit(code)


def named(entry: Any) -> str:
    """Return a name for a value of the plan that neither a capability nor another file's value has."""
    return "%s of %s" % (".".join(entry["key"]), entry["file"])


def _print(stream: Any, text: str) -> None:
    """Print a line, whatever the stream can write; a line that is lost must not end the training."""
    line = "[amt_hydra bridge] %s" % text
    encoding = getattr(stream, "encoding", None) or "utf-8"
    with contextlib.suppress(OSError, ValueError):
        print(line.encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)
