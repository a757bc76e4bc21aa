"""From a command line to a checked plan: reads the world, starts nothing, writes nothing."""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from amt_hydra.bridged import CSV, brought, can_bridge
from amt_hydra.checks import run_checks, stops
from amt_hydra.checks.base import Finding, Subject
from amt_hydra.commands import Typed
from amt_hydra.compose import Composed, compose
from amt_hydra.conf_path import bundled_repository, search_dirs, shadowed
from amt_hydra.env_switches import ALL as ALL_SWITCHES
from amt_hydra.env_switches import FORCE_SCRATCH
from amt_hydra.errors import USAGE, AmtError
from amt_hydra.identity import decide
from amt_hydra.launch.environment import child_environment, described
from amt_hydra.machine import free_bytes, read_machine
from amt_hydra.mapping import Channel, channels
from amt_hydra.mapping_choice import with_mapping
from amt_hydra.origins import Origin
from amt_hydra.overrides import unknown_key
from amt_hydra.plan import World, lay_out, weights
from amt_hydra.refusals import Facts, Ways
from amt_hydra.repository import Located, Repository, locate, read, reads_switch, says_yes, switched_on
from amt_hydra.repository.locate import KINDS
from amt_hydra.resolve import resolve, wandb_mode
from amt_hydra.runs import runs_folder
from amt_hydra.runstate import RunState, place, read_runstate
from amt_hydra.schema import NO_SETTING, Problem, build, leaves
from amt_hydra.settings import NOT_ONLINE, Repo, Settings
from amt_hydra.slurm.resources import machine_to_come, resources, starter
from amt_hydra.sweep.signature import signature
from amt_hydra.versions import read_versions

if TYPE_CHECKING:
    from amt_hydra.launch.lock_content import Holder


@dataclass(frozen=True, slots=True)
class Preflight:
    """Everything known before a launch."""

    composed: Composed
    subject: Subject
    located: Located
    findings: tuple[Finding, ...]
    signature: str
    """Which training it is, in a sweep and in the record."""

    @property
    def stopped(self) -> tuple[Finding, ...]:
        """The findings that keep the run from starting."""
        strict = self.subject.settings.checks.strict
        return tuple(f for f in self.findings if stops(f, strict))


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for, before anything of the world is looked at."""

    typed: Typed
    dirs: list[Path]
    """Where configs were looked for."""
    composed: Composed
    settings: Settings
    to_submit: bool = False
    """It will run in a Slurm job that is yet to be submitted."""


def preflight(typed: Typed, environ: Mapping[str, str], cwd: Path) -> Preflight:
    """Compose, read, decide, plan and check. Raises AmtError where there is nothing to check yet."""
    return look(request(typed, environ, cwd), environ)


def request(typed: Typed, environ: Mapping[str, str], cwd: Path) -> Request:
    """Compose and type. Raises AmtError where that cannot be done."""
    dirs = search_dirs(typed.config_dir, environ, cwd)
    composed = compose(typed.words, dirs)
    return Request(typed, dirs, composed, typed_settings(composed, cwd))


def look(asked: Request, environ: Mapping[str, str], read_repository: Callable[[Path], Repository] = read) -> Preflight:
    """Read the world, decide, plan and check. Raises AmtError where there is nothing to check yet."""
    typed, dirs, composed, settings = asked.typed, asked.dirs, asked.composed, asked.settings
    located = locate(_kind(settings.repo), _text(settings.repo.path), environ, bundled_repository())
    repository = read_repository(located.root)
    settings = with_mapping(settings, composed, repository, dirs)
    child = child_environment(environ, settings.extra.env)
    reach = channels(settings.repo.means, repository, bridged=can_bridge(settings, repository))
    machine = read_machine({**child, **described(environ)}, cwd=repository.cwd)
    if asked.to_submit:
        machine = machine_to_come(machine, resources(settings, reach))
    resolved = resolve(settings, composed.origins, reach, machine)
    settings = resolved.settings
    where = place(settings, runs_folder(settings, repository, reach))
    ckpt = composed.origins.get("init.ckpt")
    state = read_runstate(settings, where, ckpt.where if ckpt and ckpt.asked else "")
    if settings.init.ckpt is None and state.init is not None:
        resolved = replace(resolved, origins={**resolved.origins, "init.ckpt": Origin("default", state.init_from)})
    ways = Ways(_facts(settings, state, repository, reach, child), typed)
    identity = decide(ways)
    python = settings.repo.python or own_python(repository)
    world = World(where, free_name(where.experiment), python, starter(settings, machine, where.experiment))
    on = [name for name in ALL_SWITCHES if _switched_on(settings, repository, name, child)[0]]
    if not machine.wandb.credentials and wandb_mode(settings, reach, machine) not in NOT_ONLINE:
        on.append(CSV)
    added = brought(ways.facts, repository, reach, identity, weights(identity, world.aside), on)
    plan = lay_out(resolved, repository, reach, identity, world, added)
    subject = Subject(
        typed=typed,
        ways=ways,
        settings=settings,
        repository=repository,
        channels=reach,
        state=state,
        machine=machine,
        identity=identity,
        plan=plan,
        shadowed=shadowed(dirs),
        leftovers={name: child[name] for name in ALL_SWITCHES if name in child and name not in plan.env},
        locked=_holder(where.lock),
        free={folder: free_bytes(folder) for folder in (where.checkpoints, settings.paths.outputs)},
        python=python,
        versions=read_versions(python, child),
    )
    return Preflight(composed, subject, located, run_checks(subject), signature(asked.settings))


def typed_settings(composed: Composed, cwd: Path) -> Settings:
    """Type the composed values. Raises AmtError naming every value that does not fit, and where it stands."""
    settings, problems = build(Settings, composed.tree, cwd)
    if not problems:
        known = leaves(Settings)
        problems = [Problem(f"repo.means.{k}", v, NO_SETTING) for k, v in settings.repo.means.items() if k not in known]
    if problems:
        text = "\n".join(_explain(p, composed) for p in problems)
        raise AmtError(text, fix=_hints(problems, composed), code=USAGE, drop=[p.key for p in problems])
    assert isinstance(settings, Settings)
    return _without_nulls(settings)


def _without_nulls(settings: Settings) -> Settings:
    """A null below extra.flags or extra.config is, as everywhere, a value left to the repository."""
    given = {
        name: {k: v for k, v in getattr(settings.extra, name).items() if v is not None} for name in ("flags", "config")
    }
    return replace(settings, extra=replace(settings.extra, **given))


def _kind(repo: Repo) -> str:
    """How the repository is looked for; one with a mapping of the user's own is where paths and variables say."""
    return repo.kind if repo.kind in KINDS or not repo.means else "auto"


def own_python(repository: Repository) -> Path:
    """The repository's own virtual environment, else the interpreter running us."""
    for name in (".venv", "venv"):
        python = repository.root / name / "bin" / "python"
        if os.path.lexists(python):
            return python
    return Path(sys.executable)


def free_name(folder: Path) -> Path:
    """A name beside `folder` that nothing has yet, for moving it aside."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    suffixes = (f"-{number}" if number > 1 else "" for number in count(1))
    candidates = (folder.with_name(f"{folder.name}.before-{stamp}{suffix}") for suffix in suffixes)
    return next(c for c in candidates if not os.path.lexists(c))


def _holder(lock: Path) -> "Holder | None":
    """Who holds the lock. What reads one takes a while to load, and most often there is none."""
    if not os.path.lexists(lock):
        return None
    from amt_hydra.launch.lock import inspect

    return inspect(lock)


def _facts(
    settings: Settings,
    state: RunState,
    repository: Repository,
    reach: Mapping[str, Channel],
    child: Mapping[str, str],
) -> Facts:
    forced, why = _switched_on(settings, repository, FORCE_SCRATCH, child)
    own = reach["max_steps"].current if "max_steps" in reach else None
    init = reach.get("init.ckpt")
    return Facts(
        settings=settings,
        state=state,
        forced=forced,
        forced_why=why,
        resumes=bool(repository.resumes) or can_bridge(settings, repository),
        goes_on=repository.goes_on,
        takes_init=init is not None and init.carrier is not None,
        max_steps=settings.max_steps if settings.max_steps is not None else own if isinstance(own, int) else None,
    )


def _switched_on(settings: Settings, repository: Repository, name: str, child: Mapping[str, str]) -> tuple[bool, str]:
    """Whether a variable is on for the run, and why: one that the repository never reads is honoured by the bridge."""
    value = child.get(name)
    if value is None or reads_switch(repository, name) or not can_bridge(settings, repository):
        return switched_on(repository, name, value)
    word = "on" if says_yes(value) else "off"
    return word == "on", f"{name} ({value!r}) is {word}, and the bridge honours it: the repository never reads it"


def _explain(problem: Problem, composed: Composed) -> str:
    inside = (o for k, o in composed.origins.items() if k.startswith(f"{problem.key}."))
    origin = composed.origins.get(problem.key, next(inside, None))
    where = f" ({origin})" if origin else ""
    value = "" if problem.message in ("must be given", NO_SETTING) else f"={_as_typed(problem.value)}"
    return f"{problem.key}{value} {problem.message}{where}"


def _as_typed(value: object) -> str:
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def _hints(problems: list[Problem], composed: Composed) -> list[str]:
    from amt_hydra.conf_path import groups, shipped

    names = groups([shipped()])
    unknown = [p.key.removeprefix("repo.means.") for p in problems if p.message == NO_SETTING]
    hints = [hint for key in unknown for hint in unknown_key(key, names).fix]
    if any(p.key == "repo.kind" and p.message == "must be given" for p in problems):
        hints.append("a mapping says its own name: `kind: NAME` in conf/repo/NAME.yaml")
    origins = [composed.origins.get(p.key) for p in problems]
    return hints + list(dict.fromkeys(f"unset {o.where}" for o in origins if o and o.who == "environment"))


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
