"""Output for people: rich tables, colour only on a terminal; commands are never wrapped, so that they can be pasted."""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from amt_hydra.bridged import Bridge
from amt_hydra.checks.base import Finding
from amt_hydra.commands import quote
from amt_hydra.documented import documented
from amt_hydra.errors import INTERRUPTED, AmtError
from amt_hydra.origins import Origin
from amt_hydra.plan import Decision, differs
from amt_hydra.preflight import Preflight
from amt_hydra.refusals import Facts

if TYPE_CHECKING:
    from amt_hydra.outcome import Outcome

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}
_WIDTH = 160  # of a file or pipe, which has none of its own


_HEAD = ("setting", "value", "documented", "decided by", "reaches")
# Columns of the plan's table: the least that a value gets, and what "decided by" and "reaches" need to stand in words.
_NARROWEST = 12
_OTHERS = 38


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
    line(out, "identity", f"{identity}{declared}", "bold red" if identity.refusal else "bold green")
    if identity.checkpoint is not None:
        line(out, "starts from", f"{identity.checkpoint} at step {identity.start_step}")
    for text in (*identity.evidence, *identity.said):
        line(out, "", text, "dim")
    line(out, "experiment", str(plan.place.experiment))
    if plan.moved_to is not None:
        line(out, "moves aside", str(plan.moved_to), "yellow")
    out.print(_settings_table(plan.decisions, subject.repository.root, out.width))
    show_bridge(plan.bridge, subject.repository.root, out)
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
    line(out, "identity", f"{subject.identity}{start}", "bold green")
    for text in subject.identity.said:
        line(out, "", text, "yellow")
    line(out, "experiment", str(plan.place.experiment))
    show_bridge(plan.bridge, subject.repository.root, out)
    show_command(plan.argv, plan.env, plan.cwd, out)
    show_findings(pre.findings, out)


def show_repository(pre: Preflight, out: Console) -> None:
    """The first line of every output: which repository, and why."""
    line(out, "repository", f"{pre.subject.repository.root} ({pre.located.why})", "bold")


def _settings_table(decisions: Sequence[Decision], root: Path, width: int) -> Table:
    """Settings that reach the repository or leave a documented default. Where it is narrow, values fold last."""
    shown = [decision for decision in decisions if _is_shown(decision)]
    rows = [_row(decision, root) for decision in shown]
    keys, values, others = (max(cell_len(row[n]) for row in (_HEAD, *rows)) for n in range(3))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column(_HEAD[0], no_wrap=True)
    table.add_column(_HEAD[1], overflow="fold", width=max(_NARROWEST, min(values, width - keys - others - _OTHERS)))
    for name in _HEAD[2:]:
        table.add_column(name, overflow="fold")
    for decision, (key, value, *rest) in zip(shown, rows, strict=True):
        table.add_row(key, Text(value, style="yellow" if differs(decision) else ""), *rest)
    return table


def _is_shown(decision: Decision) -> bool:
    entry = documented().get(decision.key)
    if decision.key.startswith("model.") and decision.value is None:
        return False  # the repository's own architecture
    if decision.key.startswith("repo.") or (decision.value is None and decision.own is None and entry is None):
        return False  # where the repository is and what reaches it is said elsewhere
    return bool(decision.reaches) or entry is not None or decision.origin.asked


def _row(decision: Decision, root: Path) -> tuple[str, str, str, str, str]:
    entry = documented().get(decision.key)
    value = decision.value if decision.value is not None else decision.own
    other = str(entry.value) if entry and differs(decision) else ""
    return decision.key, str(value), other, _decided_by(decision.origin, root), decision.reaches


def _decided_by(origin: Origin, root: Path) -> str:
    """Who, in a word or two; the whole story is in --json, and that of the machine in the findings too."""
    short = {
        "override": "override",
        "default": "default",
        "documented": "documented",
        "experiment": origin.where,
        "repository": origin.where.removeprefix(f"{root}{os.sep}"),
        "machine": f"machine: {origin.where.partition(',')[0]}",
        "environment": f"environment: {origin.where}",
    }
    return short[origin.who]


def show_bridge(bridge: Bridge | None, root: Path, out: Console) -> None:
    """What is added to train.py in its own process, a line each."""
    if bridge is None:
        return
    texts = [f"{c.key} = {c.value!r} (was {c.own}, {_within(root, str(c.place))})" for c in bridge.changes]
    texts += [f"{capability.name}: {_within(root, capability.why)}" for capability in bridge.added]
    for number, text in enumerate(texts):
        line(out, "" if number else "bridge adds", text)


def _within(root: Path, text: str) -> str:
    return text.replace(f"{root}{os.sep}", "")


def show_command(argv: Sequence[str], env: Mapping[str, str], cwd: Path, out: Console) -> None:
    """The command as a shell would take it."""
    variables = " ".join(f"{k}={quote(v)}" for k, v in env.items())
    out.print(Text("command", style="bold"))
    out.print(Text(f"  cd {quote(str(cwd))} &&"), soft_wrap=True)
    out.print(Text(f"  {variables + ' ' if variables else ''}{' '.join(map(quote, argv))}"), soft_wrap=True)


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
        yield f"read the log: less {quote(str(record / 'output.log'))}"
    if outcome.resumable and facts.resumes:
        drop = ("init.ckpt", "init.overwrite")
        yield f"train on: {ways.command('init=resume', *_further(outcome, facts), drop=drop, unforced=facts.forced)}"
    if outcome.best_checkpoint is not None and facts.takes_init:
        new = ("init=warmstart", f"init.ckpt={outcome.best_checkpoint}", f"exp_id={facts.state.unused}")
        yield f"warm-start: {ways.command(*new, drop=('init.overwrite',), unforced=facts.forced)}"


def _further(outcome: "Outcome", facts: Facts) -> tuple[str, ...]:
    """Another goal, where the run got to its own; one that was stopped before goes on to that."""
    goal, step = facts.max_steps, outcome.step or 0
    at_its_end = outcome.code == 0 if goal is None else 0 <= goal <= step
    return (f"max_steps={2 * step}",) if step and at_its_end else ()


def line(out: Console, label: str, text: str, style: str = "") -> None:
    """One labelled line, never wrapped."""
    out.print(Text(f"{label:<12}", style="bold").append(text, style=style or "default"), soft_wrap=True)


def _show_fix(fix: Iterable[str], out: Console) -> None:
    for way in fix:
        out.print(Text(f"  -> {way}"), soft_wrap=True)
