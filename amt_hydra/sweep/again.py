"""The verbs cancel and retry: points of the ledgers, chosen by signature, exp_id, state or sweep."""

import json as json_module
import os
import signal
import socket
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import get_args

from amt_hydra.commands import key_of, render
from amt_hydra.errors import REFUSED, USAGE, AmtError, nearest
from amt_hydra.report.sweep import show_acted
from amt_hydra.slurm.queue import cancel as cancel_jobs
from amt_hydra.sweep import ledger
from amt_hydra.sweep.ledger import Asked, Entry
from amt_hydra.sweep.run import Sweep
from amt_hydra.sweep.standing import Standing, State, standings

_ACTIVE = ("running", "queued")
_LEFT = ("failed", "stopped", "waiting")


def cancel(outputs: Path, chosen: Sequence[str], environ: Mapping[str, str], *, json: bool) -> int:
    """End what runs and take back what is queued, of the points chosen. What they have saved stays."""
    pairs = _chosen("cancel", outputs, chosen, environ, unsure=True)
    found = [now for _, now in pairs if now.state in _ACTIVE or (now.in_queue is None and now.state != "done")]
    if any(now.in_queue is None for now in found):
        raise AmtError("squeue does not answer: what is queued cannot be told, and not cancelled", fix=["try: squeue"])
    jobs = [now.job for now in found if now.job is not None and now.in_queue]
    wrong = cancel_jobs(environ, jobs) if jobs else ""  # all at once: there may be hundreds
    told = [(now.exp_id, wrong if now.job in jobs else _ended(now)) for now in found]
    if json:
        print(json_module.dumps([{"exp_id": exp_id, "error": wrong} for exp_id, wrong in told], indent=2))
    else:
        show_acted("cancelled", told)
    return REFUSED if any(wrong for _, wrong in told) else 0


def retry(outputs: Path, chosen: Sequence[str], environ: Mapping[str, str], *, json: bool) -> list[Sweep]:
    """Have those of the points chosen that failed, stopped or never began run again, as their sweeps had asked for it.

    Each goes on where it has got somewhere: what it was to overwrite it overwrites once. Raises AmtError where one is
    refused.
    """
    groups: dict[tuple[Asked, str], list[tuple[str, ...]]] = defaultdict(list)
    for entry, now in _chosen("retry", outputs, chosen, environ):
        if now.state in _LEFT:
            once = () if now.state == "waiting" else ("init.overwrite",)
            groups[entry.asked, entry.sweep].append(tuple(w for w in entry.words if key_of(w) not in once))
    done = []
    for (asked, sweep), words in groups.items():
        file = outputs / ledger.FOLDER / sweep / ledger.FILE
        task = Sweep(environ, asked.cwd, asked.config_dir, False, json, asked.launcher, asked.gpus, file)
        done.append(task)
        _launch(task, words)
    return done


def _launch(task: Sweep, words: Sequence[tuple[str, ...]]) -> None:
    if task.launcher == "slurm":
        task.submit(words, 0)
    elif task.launcher == "gpu_pool":
        from amt_hydra.sweep.gpus import pool

        task.launch(words, 0, lambda: pool(task.gpus, task.environ))
    else:
        task.launch(words, 0)


def _chosen(
    verb: str, outputs: Path, chosen: Sequence[str], environ: Mapping[str, str], *, unsure: bool = False
) -> list[tuple[Entry, Standing]]:
    """The points that any of the words names, each once. Raises AmtError where a word names none.

    With `unsure` those as well whose state Slurm does not tell.
    """
    entries = list({(one.exp_id, one.lock): one for one in ledger.read(outputs)}.values())
    pairs = list(zip(entries, standings(entries, environ), strict=True))
    states = get_args(State)
    if not chosen:
        raise AmtError(
            f"{verb} what? Name points by signature, exp_id, sweep or state",
            fix=[
                render(verb, [_ACTIVE[0] if verb == "cancel" else _LEFT[0]]),
                f"see them: {render('status', [])}",
            ],
            code=USAGE,
        )
    for word in chosen:
        names = {name for entry, _ in pairs for name in _names(entry)}
        if word not in names and word not in states:
            close = nearest(word, [*names, *states])
            hint = [f"did you mean {close}?"] if close else []
            raise AmtError(
                f"{verb} {word}: no point in {outputs} has this signature, exp_id or sweep; states are "
                f"{', '.join(states)}",
                fix=[*hint, f"see them: {render('status', [])}"],
                code=USAGE,
            )
    wanted = set(chosen)
    return [
        (entry, now)
        for entry, now in pairs
        if wanted & {*_names(entry), now.state} or (unsure and now.in_queue is None)
    ]


def _names(entry: Entry) -> tuple[str, ...]:
    """Those of a point; exp_id as it was typed names all points of it."""
    return entry.signature, entry.exp_id, entry.exp_id.removesuffix(f"_{entry.signature}"), entry.sweep


def _ended(now: Standing) -> str:
    """End one that no queue has; returns what is wrong, or ""."""
    holder = now.holder
    if holder is None:
        return "it has ended by itself"
    if holder.host != socket.gethostname():
        return f"it runs on {holder.host}: ssh {holder.host} kill {' '.join(map(str, holder.pids[:1]))}"
    try:
        os.kill(holder.pids[0], signal.SIGTERM)
    except OSError as error:
        return f"pid {holder.pids[0]}: {error.strerror}"
    return ""
