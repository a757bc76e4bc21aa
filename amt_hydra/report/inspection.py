"""What `inspect` shows to people."""

import os
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from amt_hydra.inspection import Convention, Inspection
from amt_hydra.report.console import console, line
from amt_hydra.repository.facts import Computed, Flag, Place, Repository


def show_inspection(inspection: Inspection, why: str, revision: str) -> None:
    """The conventions first, what is missing and what is wrong, then every flag and key."""
    out, repository = console(), inspection.repository
    line(out, "repository", f"{repository.root} ({why})", "bold")
    line(out, "layout", f"{repository.layout.name}: {repository.train.relative_to(repository.root)}")
    line(out, "commit", revision)
    line(out, "mapping", f"conf/repo/{inspection.kind}.yaml")
    numbers = f"{len(repository.flags)} flags, {len(repository.config)} config keys, {len(repository.presets)} presets"
    line(out, "read", numbers)
    _list(out, "starts", inspection.start, repository)
    out.print(_conventions(inspection.conventions, repository))
    added = [f"{lack.what} ({lack.why})" for lack in inspection.lacks if lack.added]
    _list(out, "bridge adds", added, repository)
    _list(out, "cannot keep", [f"{x.what}: {x.why}" for x in inspection.lacks if not x.added], repository, "yellow")
    _list(out, "faults", [f"{fault.kind}: {fault.text}" for fault in inspection.faults], repository, "yellow")
    for switch in repository.switches:
        line(out, "variable", f"{switch.expression}  ({_short(switch.place, repository)})")
    line(out, "presets", ", ".join(repository.presets) or "none")
    line(out, "tasks", ", ".join(repository.tasks) or "none")
    line(out, "metrics", ", ".join(repository.metrics) or "none found")
    out.print(_flags(repository))
    out.print(_config(repository))
    _list(out, "not read", repository.problems, repository, "yellow")


def _list(
    out: Console, label: str, texts: tuple[str, ...] | list[str], repository: Repository, style: str = ""
) -> None:
    for number, text in enumerate(texts):
        line(out, "" if number else label, text.replace(f"{repository.root}{os.sep}", ""), style)


def _conventions(conventions: tuple[Convention, ...], repository: Repository) -> Table:
    table = _table("setting", "set by", "value here", "documented", "stands at")
    for item in conventions:
        by = f"{item.by} (bridge)" if item.bridged else item.by or "nothing"
        other = "" if item.documented is None else str(item.documented)
        differs = item.documented is not None and str(item.documented).lower() != str(item.value).lower()
        table.add_row(
            item.key,
            Text(by, style="yellow" if not item.by else ""),
            Text("" if item.value is None else str(item.value), style="yellow" if differs else ""),
            other,
            "" if item.place is None else _short(item.place, repository),
        )
    return table


def _flags(repository: Repository) -> Table:
    table = _table("flag", "options", "type", "nargs", "default", "read", "line")
    for flag in repository.flags:
        nargs = "" if flag.nargs is None else str(flag.nargs)
        options, where = " ".join(flag.options), _short(flag.place, repository)
        table.add_row(flag.dest, options, flag.type, nargs, _value(flag.default), _reads(flag), where)
    return table


def _config(repository: Repository) -> Table:
    table = _table("config key", "value", "line")
    for value in repository.config.values():
        table.add_row(value.key, _value(value.value), _short(value.place, repository))
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    return table


def _value(value: object) -> str:
    return str(value) if isinstance(value, Computed) else repr(value)


def _reads(flag: Flag) -> str:
    return (
        "unknown" if flag.reads is None else "NOWHERE" if not flag.reads else "WITHOUT EFFECT" if flag.lost else "yes"
    )


def _short(place: Place, repository: Repository) -> str:
    return f"{Path(os.path.relpath(place.file, repository.root))}:{place.line}"
