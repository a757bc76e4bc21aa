"""Output for people: rich tables, colour only on a terminal; commands are never wrapped, so that they can be pasted."""

import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from amt_hydra.checks.base import Finding
from amt_hydra.documented import documented
from amt_hydra.errors import INTERRUPTED, AmtError
from amt_hydra.plan import Decision, differs
from amt_hydra.preflight import Preflight

if TYPE_CHECKING:
    from amt_hydra.outcome import Outcome

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}
_WIDTH = 160  # of a file or pipe, which has none of its own


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave the end to the command line's one handler: rich would exit with code 1."""
        raise  # noqa: PLE0704 # called while the BrokenPipeError is being handled


def console(stderr: bool = False) -> Console:
    """A console on stdout or stderr."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _WIDTH
    return _Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def show_plan(pre: Preflight, out: Console) -> None:
    """Everything that would happen, and why."""
    subject, plan = pre.subject, pre.subject.plan
    show_repository(pre, out)
    identity = subject.identity
    declared = "" if identity.declared == identity.actual else f" (declared: {identity.declared})"
    line(out, "identity", f"{identity.actual}{declared}", "bold red" if identity.refusal else "bold green")
    if identity.checkpoint is not None:
        line(out, "starts from", f"{identity.checkpoint} at step {identity.start_step}")
    for text in (*identity.evidence, *identity.said):
        line(out, "", text, "dim")
    line(out, "experiment", str(plan.place.experiment))
    if plan.moved_to is not None:
        line(out, "moved aside", str(plan.moved_to), "yellow")
    out.print(_settings_table(plan.decisions))
    show_command(plan.argv, plan.env, plan.cwd, out)
    show_findings(pre.findings, out)


def show_refused(pre: Preflight, out: Console) -> None:
    """Why a run is not started."""
    show_repository(pre, out)
    show_findings(pre.findings, out)
    line(out, "not started", f"see it whole: {replace(pre.subject.typed, verb='plan')}")


def show_start(pre: Preflight, out: Console) -> None:
    """What is being started, before train.py speaks."""
    subject, plan = pre.subject, pre.subject.plan
    show_repository(pre, out)
    start = f" from {subject.identity.checkpoint}" if subject.identity.checkpoint else ""
    line(out, "identity", f"{subject.identity.actual}{start}", "bold green")
    for text in subject.identity.said:
        line(out, "", text, "yellow")
    line(out, "experiment", str(plan.place.experiment))
    show_command(plan.argv, plan.env, plan.cwd, out)
    show_findings(pre.findings, out)


def show_repository(pre: Preflight, out: Console) -> None:
    """The first line of every output: which repository, and why."""
    line(out, "repository", f"{pre.subject.repository.root} ({pre.located.why})", "bold")


def _settings_table(decisions: Sequence[Decision]) -> Table:
    """Settings that reach the repository or leave a documented default."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("setting", "value", "documented", "decided by", "reaches"):
        table.add_column(name, overflow="fold")
    for decision in decisions:
        entry = documented().get(decision.key)
        if decision.value is None and decision.own is None and entry is None:
            continue
        if not decision.reaches and entry is None and not decision.origin.asked:
            continue
        value = decision.value if decision.value is not None else decision.own
        shown = Text(str(value), style="yellow" if differs(decision) else "")
        where = f"{decision.origin.who}: {decision.origin.where}"
        table.add_row(decision.key, shown, str(entry.value) if entry else "", where, decision.reaches)
    return table


def show_command(argv: Sequence[str], env: Mapping[str, str], cwd: Path, out: Console) -> None:
    """The command as a shell would take it."""
    variables = " ".join(f"{k}={shlex.quote(v)}" for k, v in env.items())
    out.print(Text("command", style="bold"))
    out.print(Text(f"  cd {shlex.quote(str(cwd))} &&"), soft_wrap=True)
    out.print(Text(f"  {variables + ' ' if variables else ''}{shlex.join(argv)}"), soft_wrap=True)


def show_findings(findings: Iterable[Finding], out: Console) -> None:
    """Findings, worst first."""
    order = ["error", "warning", "info"]
    for finding in sorted(findings, key=lambda f: (bool(f.ignored), order.index(f.severity))):
        label = f"{finding.severity}" + (" (ignored)" if finding.ignored else "")
        head = Text(f"{label} ", style=_STYLES[finding.severity]).append(f"{finding.id}: ", style="bold")
        out.print(head.append(finding.message, style="default"), soft_wrap=True)
        if finding.ignored:
            out.print(Text(f"  ignored: {finding.ignored}"), soft_wrap=True)
        _show_fix(finding.fix, out)


def show_error(error: AmtError, out: Console) -> None:
    """One refusal with its ways out."""
    out.print(Text("error ", style=_STYLES["error"]).append(error.message, style="default"), soft_wrap=True)
    _show_fix(error.fix, out)


def show_outcome(outcome: "Outcome", record: Path, pre: Preflight, out: Console) -> None:
    """What was trained, where it lies, and what to do next."""
    line(out, "verdict", outcome.verdict, "bold green" if outcome.code == 0 else "bold red")
    line(out, "took", f"{outcome.seconds:.1f} s")
    line(out, "checkpoints", str(pre.subject.plan.place.checkpoints))
    line(out, "record", str(record))
    for number, way in enumerate(_next(outcome, record, pre)):
        line(out, "" if number else "next", way)


def _next(outcome: "Outcome", record: Path, pre: Preflight) -> Iterable[str]:
    """Commands that work as they stand; what this repository does not do is not offered."""
    ways = pre.subject.ways
    facts = ways.facts
    if outcome.code not in (0, INTERRUPTED) and not pre.subject.settings.launch.attach:
        yield f"read the log: less {shlex.quote(str(record / 'output.log'))}"
    if outcome.resumable and facts.resumes:
        further = [f"max_steps={2 * outcome.step}"] if outcome.code == 0 and outcome.step else []  # it got to its end
        drop = ("init.ckpt", "init.overwrite")
        yield f"train on: {ways.command('init=resume', *further, drop=drop, unforced=facts.forced)}"
    if outcome.best_checkpoint is not None and facts.takes_init:
        new = ("init=warmstart", f"init.ckpt={outcome.best_checkpoint}", f"exp_id={facts.state.unused}")
        yield f"warm-start: {ways.command(*new, drop=('init.overwrite',), unforced=facts.forced)}"


def line(out: Console, label: str, text: str, style: str = "") -> None:
    """One labelled line, never wrapped."""
    out.print(Text(f"{label:<12}", style="bold").append(text, style=style or "default"), soft_wrap=True)


def _show_fix(fix: Iterable[str], out: Console) -> None:
    for way in fix:
        out.print(Text(f"  -> {way}"), soft_wrap=True)
