"""Where a repository writes its runs, as it will itself resolve it."""

import os
from collections.abc import Mapping
from pathlib import Path

from amt_hydra.errors import AmtError
from amt_hydra.extras import extra_dest
from amt_hydra.mapping import Channel, lookup, parse
from amt_hydra.repository.facts import Repository
from amt_hydra.settings import Settings


def runs_folder(settings: Settings, repository: Repository, reach: Mapping[str, Channel]) -> Path:
    """The folder that holds <project>/<exp_id>.

    repo.runs says it only where it cannot be read: elsewhere it would have us look in one place, and train in another.
    """
    if "paths.outputs" in reach and reach["paths.outputs"].carrier is not None:
        known: Path | None = settings.paths.outputs
    else:
        known = _read(settings, repository)
    said = settings.repo.runs
    if said is not None and known is not None and os.path.realpath(said) != os.path.realpath(known):
        raise AmtError(
            f"repo.runs={said}, but this repository writes to {known}",
            fix=[
                "leave repo.runs out",
                f"name the place where the repository takes it: {_means(settings, reach)}",
                "where its source misleads: repo.runs_from=[]",
            ],
        )
    where = said or known
    if where is None:
        raise _unknown(settings, repository)
    return where


def _unknown(settings: Settings, repository: Repository) -> AmtError:
    what = f"where {repository.root} writes its runs could not be read"
    if repository.unparsed:
        broken = [f"{place} does not parse: {words}" for place, words in repository.unparsed.items()]
        return AmtError(f"{what}: {'; '.join(broken)}", fix=["mend that first: train.py dies there too"])
    tried = ", ".join(settings.repo.runs_from)
    why = f"by {tried}" if tried else "repo.runs_from names no means"
    return AmtError(
        f"{what}: {why}",
        fix=["repo.runs=<the folder that holds <project>/<exp_id>>", "or name its means: repo.runs_from"],
    )


def _means(settings: Settings, reach: Mapping[str, Channel]) -> str:
    return "paths.outputs" if "paths.outputs" in reach else " or ".join(settings.repo.runs_from)


def _read(settings: Settings, repository: Repository) -> Path | None:
    """What the first means of the mapping yields; None where it is computed."""
    means = [parse(text, "runs_from") for text in settings.repo.runs_from]
    extra = {extra_dest(name): value for name, value in settings.extra.flags.items()}
    keys = settings.extra.config
    given = [extra[m.name] for m in means if m.kind == "flag" and m.name in extra]
    given += [keys[m.name] for m in means if m.kind == "config" and m.name in keys]
    value = given[0] if given else lookup(means, repository)
    return Path(os.path.realpath(repository.cwd / value)) if isinstance(value, str) else None
