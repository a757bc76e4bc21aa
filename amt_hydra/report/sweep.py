"""A sweep for people: what would be run, and how each point ended."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from amt_hydra.commands import PROGRAM, key_of
from amt_hydra.report.console import console, line, show_findings
from amt_hydra.sweep.local import Finished
from amt_hydra.sweep.points import Point
from amt_hydra.sweep.standing import Standing

_STYLES = {
    "start": "green",
    "continue": "green",
    "done": "dim",
    "running": "yellow",
    "queued": "yellow",
    "refused": "bold red",
}
_STATES = {
    "running": "yellow",
    "queued": "cyan",
    "done": "green",
    "failed": "bold red",
    "stopped": "red",
    "waiting": "dim",
}
_HEAD = ("point", "becomes", "step", "what differs", "exp_id")


def show_points(points: Sequence[Point], config_dir: str | None, first: int, *, to_submit: bool) -> None:
    """The table of the points, the findings of those that are refused, and what it all comes to."""
    out = console(stderr=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in _HEAD:
        table.add_column(name, overflow="fold")
    shared = set.intersection(*(set(point.words) for point in points))
    for number, point in enumerate(points, first + 1):
        differs = " ".join(w for w in point.words if w not in shared and key_of(w) not in ("exp_id", "init"))
        action = Text(point.action, style=_STYLES[point.action])
        steps = _steps(point.step, point.goal) if point.paths else ""  # it could not even be composed
        table.add_row(str(number), action, steps, Text(differs), Text(point.exp_id))
    out.print(table)
    for number, point in enumerate(points, first + 1):
        if point.action == "refused":
            line(out, f"point {number}", str(point.command(config_dir)), "bold red")
            show_findings([f for f in point.findings if f.severity == "error"], out)
    if to_submit:
        _show_jobs(points, out)
    out.print(Text(_sum(points, to_submit)), soft_wrap=True)


def _steps(step: int | None, goal: int | None) -> str:
    return f"{step or 0} of {'no end' if goal is None or goal < 0 else goal}"


def _show_jobs(points: Sequence[Point], out: Console) -> None:
    """What the jobs ask for, who starts their processes, and what is to be known of them."""
    todo = [point for point in points if point.trains]
    for asks in dict.fromkeys(point.asks for point in todo):
        line(out, "a job", str(asks))
    warnings = dict.fromkeys(f for point in todo for f in point.findings if f.id == "TimeLimitIsSeen")
    show_findings(warnings, out)


def _sum(points: Sequence[Point], to_submit: bool) -> str:
    counts = {action: sum(point.action == action for point in points) for action in _STYLES}
    ranks = {point.ranks for point in points if point.trains}
    told = ", ".join(f"{count} {action}" for action, count in counts.items() if count)
    runs = counts["start"] + counts["continue"]
    devices = f", of {', '.join(map(str, sorted(ranks)))} devices each" if ranks - {1} else ""
    hours = sum(p.asks.gpu_hours for p in points if p.asks and p.trains) if to_submit else 0
    budget = f", {hours:g} GPU-hours asked for" if hours else ""
    return f"this is {runs} run{'' if runs == 1 else 's'}{devices}{budget}: {told}"


def show_submitted(jobs: Mapping[str, str], ledger: Path) -> None:
    """The ids of the jobs, and how to look after them."""
    out = console(stderr=True)
    line(out, "submitted", ", ".join(f"{exp_id} as {job}" for exp_id, job in jobs.items()), "bold green")
    line(out, "logs", str(ledger.parent / "jobs"))


def show_warning(text: str) -> None:
    """What went wrong, and does not end anything."""
    line(console(stderr=True), "warning", text, "yellow")


def show_started(point: Point, number: str) -> None:
    """The line before a point's own output."""
    line(console(stderr=True), f"[{number}]", f"{point.exp_id}: {point.action}, {point.why}", "bold")


def show_waiting(why: str) -> None:
    """Why nothing happens."""
    line(console(stderr=True), "waiting", why, "yellow")


def show_finished(end: Finished, number: str) -> None:
    """The line after it."""
    style = "bold green" if end.code == 0 else "bold red"
    line(console(stderr=True), f"[{number}]", f"{end.point.exp_id}: {end.verdict}", style)


def show_left_to_slurm(sweep: str, planned: int, submitted: int) -> None:
    """How to look after what was submitted, and not waited for."""
    out = console()
    rest = planned - submitted
    line(out, "sweep", f"{sweep}: {submitted} submitted, {rest} were done, running or queued", "bold green")
    for what, words in (("how they stand", "status"), ("take them back", f"cancel {sweep}")):
        line(out, "", f"{what}: {PROGRAM} {words}")


def show_end(planned: Sequence[Point], finished: Sequence[Finished], config_dir: str | None) -> None:
    """How many ended well, and each that did not with its verdict and the command to go on with it."""
    out = console()
    well = sum(end.code == 0 for end in finished)
    bad = [end for end in finished if end.code != 0]
    left = sum(point.trains for point in planned) - len(finished)
    skipped = len(planned) - left - len(finished)
    told = [f"{well} ended well", f"{len(bad)} failed", f"{skipped} were done or running", f"{left} not started"]
    line(out, "sweep", ", ".join(told), "bold red" if bad or left else "bold green")
    for end in bad:
        _show_bad(end, config_dir, out)
    if bad or left:
        out.print(Text("  -> the same command again goes on with what is not done"), soft_wrap=True)


def _show_bad(end: Finished, config_dir: str | None, out: Console) -> None:
    line(out, "failed", f"{end.point.exp_id} (exit code {end.code}): {end.verdict}", "bold red")
    out.print(Text(f"  -> alone: {end.point.command(config_dir)}"), soft_wrap=True)


def show_standings(standings: Sequence[Standing], outputs: Path) -> None:
    """A row per point, sweep by sweep; and for each that failed or stopped, the command that goes on with it."""
    out = console()
    if not standings:
        out.print(Text(f"no sweep has a ledger in {outputs}"), soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("sweep", "exp_id", "state", "job", "step", "best", "checkpoints"):
        table.add_column(name, overflow="fold")
    for one in standings:
        best = "" if one.best is None else f"{one.best:.4f}"
        state = Text(one.state, style=_STATES[one.state])
        steps = _steps(one.step, one.goal)
        table.add_row(one.sweep, Text(one.exp_id), state, one.job or "", steps, best, Text(str(one.checkpoints)))
    out.print(table)
    for one in standings:
        if one.state in ("running", "queued", "failed", "stopped") and one.said:
            line(out, one.state, f"{one.exp_id}: {one.said}", _STATES[one.state])


def show_acted(what: str, told: Sequence[tuple[str, str]]) -> None:
    """What became of each point; `told` has what is wrong with it, or ""."""
    out = console()
    if not told:
        line(out, what, "nothing: none of these runs or is queued")
    for exp_id, wrong in told:
        line(
            out,
            "not " + what if wrong else what,
            f"{exp_id}: {wrong}" if wrong else exp_id,
            "red" if wrong else "green",
        )
