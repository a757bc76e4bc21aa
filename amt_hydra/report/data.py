"""Plans, findings and facts as plain data: what --json prints and records keep."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from amt_hydra.checkpoint import Xray
from amt_hydra.documented import documented
from amt_hydra.inspection import Inspection
from amt_hydra.preflight import Preflight
from amt_hydra.repository import Computed


def preflight_data(pre: Preflight) -> dict[str, Any]:
    """Everything a plan says."""
    subject, plan = pre.subject, pre.subject.plan
    entries = documented()
    data = {
        "repository": {
            "root": subject.repository.root,
            "why": pre.located.why,
            "kind": subject.settings.repo.kind,
            "layout": subject.repository.layout.name,
            "train": subject.repository.train,
        },
        "identity": subject.identity,
        "settings": {
            d.key: {
                "value": d.value,
                "repository": d.own,
                "by": d.origin.who,
                "where": d.origin.where,
                "reaches": d.reaches,
                **({"documented": entries[d.key].value} if d.key in entries else {}),
            }
            for d in plan.decisions
        },
        "plan": {
            "argv": plan.argv,
            "env": plan.env,
            "cwd": plan.cwd,
            "checkpoints": plan.place.checkpoints,
            "experiment": plan.place.experiment,
            "moved_to": plan.moved_to,
            "records": plan.records,
            "bridge": plan.bridge,
        },
        "machine": subject.machine,
        "findings": pre.findings,
        "stopped": bool(pre.stopped),
    }
    return {key: plain(value) for key, value in data.items()}


def inspection_data(inspection: Inspection) -> dict[str, Any]:
    """Everything an inspection says, with the facts it was made of."""
    found = plain(inspection)
    return {**found.pop("repository"), **found}


def xray_data(ray: Xray) -> dict[str, Any]:
    """Everything an X-ray shows."""
    return {**plain(ray), "score": plain(ray.score)}


def plain(value: object) -> Any:
    """Dataclasses and paths as mappings and text, for JSON."""
    if isinstance(value, Computed):
        return {"computed": value.text}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=str)  # the order of text in a set changes from process to process
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON knows no nan
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)
