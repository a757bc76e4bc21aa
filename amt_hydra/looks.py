"""The verbs that only look: checkpoint and inspect."""

import json as json_module
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from amt_hydra.checkpoint import Xray, xray
from amt_hydra.conf_path import bundled_repository
from amt_hydra.errors import REFUSED, USAGE, AmtError
from amt_hydra.repository import Computed, Flag, Located, Repository, locate, read
from amt_hydra.schema import absolute


def checkpoint(paths: Sequence[str], json: bool) -> int:
    """X-ray each file. Returns 78 where one of them is not whole."""
    from amt_hydra.report.data import xray_data

    if not paths:
        raise AmtError("checkpoint needs a path", fix=["python -m amt_hydra checkpoint PATH.ckpt"], code=USAGE)
    rays = [xray(_path(p)) for p in paths]
    if json:
        print(json_module.dumps([xray_data(r) for r in rays], indent=2))
    else:
        for ray in rays:
            _show_xray(ray)
    return 0 if all(r.whole for r in rays) else REFUSED


def _path(text: str) -> Path:
    """The path that `text` names; the folder one stands in counts only where it has to: it may be gone."""
    return absolute(text, Path()).absolute()


def _show_xray(ray: Xray) -> None:
    from amt_hydra.report.console import console, line

    out = console()
    line(out, "checkpoint", str(ray.path), "bold")
    if ray.link is not None:
        line(out, "link to", str(ray.link), "yellow")
    if not ray.whole:
        line(out, "not whole", ray.problem or "", "bold red")
        return
    elements = sum(_elements(t.shape) for t in ray.tensors)
    line(out, "whole", f"{ray.size / 2**20:.1f} MiB, {len(ray.tensors)} tensors, {elements:,} elements")
    line(out, "progress", f"global_step {ray.global_step}, epoch {ray.epoch}, Lightning {ray.lightning_version}")
    for number, groups in enumerate(ray.optimizer_groups):
        rates = ", ".join(str(g.get("lr")) for g in groups)
        line(out, "optimizer", f"{number}: learning rate {rates}")
    for number, scheduler in enumerate(ray.schedulers):
        line(out, "schedule", f"{number}: " + ", ".join(f"{k} {v}" for k, v in scheduler.items()))
    for monitor in ray.monitors:
        line(out, "monitor", f"{monitor.monitor}: here {monitor.current_score}, best {monitor.best_score}")
    for name, value in ray.hyper_parameters.items():
        line(out, "hyper", f"{name} = {value}")
    for name in ray.refused_globals:
        line(out, "refused", f"{name} (torch.load with weights_only=True)", "yellow")
    for tensor in ray.tensors:
        line(out, "tensor", f"{tensor.name} {list(tensor.shape)} {tensor.dtype}", "dim")


def _elements(shape: Sequence[int]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def inspect(paths: Sequence[str], environ: Mapping[str, str], json: bool) -> int:
    """Show what a repository really accepts: the one at the path, else the one that a run would take."""
    from amt_hydra.report.data import plain
    from amt_hydra.repository.git import commit

    if len(paths) > 1:
        raise AmtError(f"inspect takes one path, not {len(paths)}", code=USAGE)
    if paths:
        located = Located(_path(paths[0]), "PATH", discovered=False)
    else:
        located = locate("auto", None, environ, bundled_repository())
    repository = read(located.root)
    revision, dirty = commit(repository.root)
    if json:
        data = {**plain(repository), "why": located.why, "commit": revision, "dirty": dirty}
        print(json_module.dumps(data, indent=2))
    else:
        _show_repository(repository, located.why, _revision(revision, dirty))
    return 0


def _revision(revision: str | None, dirty: bool | None) -> str:
    return "no git repository" if revision is None else revision + (" with uncommitted changes" if dirty else "")


def _show_repository(repository: Repository, why: str, revision: str) -> None:
    from amt_hydra.report.console import console, line

    out = console()
    line(out, "repository", f"{repository.root} ({why})", "bold")
    line(out, "layout", f"{repository.layout.name}: {repository.train.relative_to(repository.root)}")
    line(out, "commit", revision)
    line(
        out,
        "resumes",
        ", ".join(_short(p.file, p.line, repository) for p in repository.resumes) or "never: no fit(ckpt_path=…)",
    )
    for switch in repository.switches:
        line(out, "variable", f"{switch.expression}  ({_short(switch.place.file, switch.place.line, repository)})")
    line(out, "presets", ", ".join(repository.presets) or "none")
    line(out, "metrics", ", ".join(repository.metrics) or "none found")
    out.print(_flag_table(repository))
    out.print(_config_table(repository))
    for problem in repository.problems:
        line(out, "not read", problem, "yellow")


def _flag_table(repository: Repository) -> object:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("flag", "options", "type", "nargs", "default", "read", "line"):
        table.add_column(name, overflow="fold")
    for flag in repository.flags:
        where = _short(flag.place.file, flag.place.line, repository)
        nargs = "" if flag.nargs is None else str(flag.nargs)
        table.add_row(flag.dest, " ".join(flag.options), flag.type, nargs, _default(flag), _reads(flag), where)
    return table


def _default(flag: Flag) -> str:
    return str(flag.default) if isinstance(flag.default, Computed) else repr(flag.default)


def _reads(flag: Flag) -> str:
    return "unknown" if flag.reads is None else "yes" if flag.reads else "NOWHERE"


def _config_table(repository: Repository) -> object:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("config key", "value", "line"):
        table.add_column(name, overflow="fold")
    for value in repository.config.values():
        text = str(value.value) if isinstance(value.value, Computed) else repr(value.value)
        table.add_row(value.key, text, _short(value.place.file, value.place.line, repository))
    return table


def _short(file: Path, number: int, repository: Repository) -> str:
    return f"{os.path.relpath(file, repository.root)}:{number}"
