"""The verbs that only look: checkpoint and inspect."""

import json as json_module
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amt_hydra.checkpoint import Xray, xray
from amt_hydra.conf_path import bundled_repository, shipped
from amt_hydra.errors import REFUSED, USAGE, AmtError
from amt_hydra.repository import Located, Repository, locate, read
from amt_hydra.schema import absolute

if TYPE_CHECKING:
    from amt_hydra.mapping import Channel


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


def inspect(paths: Sequence[str], environ: Mapping[str, str], json: bool, emit: str | None = None) -> int:
    """Show what a repository keeps of the conventions: the one at the path, else the one that a run would take.

    With `emit`, a mapping for it is written to that file.
    """
    from amt_hydra.inspection import inspect as look
    from amt_hydra.mapping import channels
    from amt_hydra.mapping_choice import fitting_kind, mapping
    from amt_hydra.repository.git import commit

    if len(paths) > 1:
        raise AmtError(f"inspect takes one path, not {len(paths)}", code=USAGE)
    if paths:
        located = Located(_path(paths[0]), "PATH", discovered=False)
    else:
        located = locate("auto", None, environ, bundled_repository())
    repository = read(located.root)
    kind = fitting_kind(repository)
    like = mapping([shipped()], kind, repository)
    reach = channels(like["means"], repository)
    if emit is not None:
        return _emit(_path(emit), repository, reach, like)
    inspection, revision = look(repository, kind, reach), commit(repository.root)
    if json:
        from amt_hydra.report.data import inspection_data

        data = {**inspection_data(inspection), "why": located.why, "commit": revision[0], "dirty": revision[1]}
        print(json_module.dumps(data, indent=2))
    else:
        from amt_hydra.report.inspection import show_inspection

        show_inspection(inspection, located.why, _revision(*revision))
    return 0


def _emit(file: Path, repository: Repository, reach: "Mapping[str, Channel]", like: Mapping[str, Any]) -> int:
    from amt_hydra.commands import quote
    from amt_hydra.emit import emit, kind_of, runs_means, write

    kind = kind_of(file)
    write(file, emit(repository, kind, reach, like))
    runs = "" if runs_means(repository) else " repo.runs=FOLDER"  # it was not found: there is nothing to propose
    where = f"repo={kind} repo.path={quote(str(repository.root))}{runs}"
    print(f"{file}\nlook through it, then: python -m amt_hydra plan {where}")
    return 0


def _revision(revision: str | None, dirty: bool | None) -> str:
    return "no git repository" if revision is None else revision + (" with uncommitted changes" if dirty else "")
