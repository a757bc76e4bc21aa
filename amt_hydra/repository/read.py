"""Reads all facts of a repository in one go. The readers are loaded with the first read, not with the package."""

import gc
import re
from pathlib import Path
from typing import TYPE_CHECKING

from amt_hydra.errors import AmtError
from amt_hydra.repository.facts import FAMILY, HOME, Layout, Place, Repository

if TYPE_CHECKING:
    from amt_hydra.repository.closure import Training
    from amt_hydra.repository.source import Sources

# The names of this family's tables, where they are spelled out.
_CONFIG = re.compile(rb"^((?:shared|audio|model)_cfg)\s*(?::[^=\n]*)?=\s*(?:\{|dict\()", re.MULTILINE)
_PRESETS = re.compile(rb"^(data_preset_(?:single|multi)_cfg)\s*(?::[^=\n]*)?=\s*(?:\{|dict\()", re.MULTILINE)


def read(root: Path, layout: Layout | None = None) -> Repository:
    """Read a repository's facts from its source. Raises AmtError where there is no train.py, or none that parses."""
    collecting = gc.isenabled()
    gc.disable()  # the many nodes of syntax trees make the collector run in vain: half the time of a read
    try:
        return _read(*find_layout(root.absolute(), layout))
    except RecursionError as error:
        raise AmtError(f"repository: {root}: its source is nested too deeply to be read") from error
    finally:
        if collecting:
            gc.enable()


def _read(root: Path, layout: Layout) -> Repository:
    from amt_hydra.repository.broken import find_broken
    from amt_hydra.repository.closure import find_training
    from amt_hydra.repository.configfile import config_values, unread_config
    from amt_hydra.repository.fits import find_resumes, may_train
    from amt_hydra.repository.flags import FlagReader
    from amt_hydra.repository.flow import Flow
    from amt_hydra.repository.lost import mark_lost
    from amt_hydra.repository.metrics import Metrics, find_strings
    from amt_hydra.repository.namespaces import Namespaces
    from amt_hydra.repository.presets import PRESET_MARK, find_presets, unread_presets
    from amt_hydra.repository.source import Sources
    from amt_hydra.repository.startup import find_lightning, find_loggers, find_saves, find_start
    from amt_hydra.repository.switches import find_switches
    from amt_hydra.repository.tasks import TABLE, find_tasks
    from amt_hydra.repository.trace import Trace

    train = root / layout.train
    sources = Sources(root, train.parent)
    _check(sources, train)
    files = list(sources.walk())
    namespaces = Namespaces(sources)
    training = find_training(sources, train)
    config_file = _beside(root, layout.config, train) or _binding(_CONFIG, training)
    presets_file = _beside(root, layout.data_presets, train) or _binding(_PRESETS, training)
    config, presets = namespaces.at(config_file), namespaces.at(presets_file, PRESET_MARK)
    tasks = namespaces.at(_table(config_file, _beside(root, _task_py(layout), train), sources, TABLE))
    reader = FlagReader(Trace(sources, train), namespaces.of)
    flags = reader.read()
    flow = Flow(reader.trace, training.files)
    metrics = Metrics().read(sources, files)
    switches = find_switches(sources, files)
    resumes = find_resumes(sources, files)
    _unread(sources, unread_config(config) if config else [], "may add keys that cannot be named")
    _unread(sources, unread_presets(presets) if presets else [], "may add presets that cannot be named")
    return Repository(
        root=root,
        layout=layout,
        cwd=train.parent,
        train=train,
        config_file=config_file,
        presets_file=presets_file,
        flags=flags if reader.opaque else mark_lost(flow, flags),
        config=config_values(config) if config else {},
        presets=find_presets(presets) if presets else {},
        switches=switches,
        metrics=metrics.names,
        strings=find_strings(files, tuple(metrics.names)) if metrics.computed or not metrics.names else {},
        resumes=resumes,
        computed_metrics=tuple(metrics.computed),
        metric_patterns=tuple(metrics.patterns) if metrics.whole else None,
        start=find_start(flow),
        saves=find_saves(sources, training.files),
        loggers=find_loggers(sources, training.files),
        lightning=find_lightning(training.roots),
        undefined=reader.undefined,
        broken=find_broken(flow),
        unparsed=_unparsed(sources, train),
        trains=may_train(training.files),
        tasks=find_tasks(tasks) if tasks else {},
        problems=tuple(dict.fromkeys(sources.problems)),
    )


def _unparsed(sources: "Sources", train: Path) -> dict[Place, str]:
    """Return what does not parse of the files that train.py imports in any case; it is read last."""
    from amt_hydra.repository.closure import surely_imported

    run = surely_imported(sources, train) if sources.unparsed else set()
    return {Place(f, error.lineno or 1): error.msg for f, error in sources.unparsed.items() if f in run}


def find_layout(root: Path, layout: Layout | None) -> tuple[Path, Layout]:
    """Return the root and the layout that a path means; the path may also be the amt/ or src/ inside the root."""
    if layout is not None:
        candidates = [(root, layout)]
    else:
        candidates = [(root, HOME), (root, FAMILY)]
        if root.name == "src":
            candidates += [(root.parents[1], FAMILY)] if root.parent.name == "amt" else []
            candidates.append((root.parent, HOME))
        # amt/ of the family layout looks like a root of the home layout, but for its config.py.
        if root.name == "amt" and (root.parent / FAMILY.config).is_file():
            candidates.insert(0, (root.parent, FAMILY))
    for base, found in candidates:
        if (base / found.train).is_file():
            return base, found
    raise _nothing(root, layout)


def _nothing(root: Path, layout: Layout | None) -> AmtError:
    wanted = [layout.train] if layout is not None else [HOME.train, FAMILY.train]
    if not root.is_dir():
        what = f"{root} is not a folder" if root.exists() else f"{root} does not exist"
    else:
        what = f"no {' and no '.join(wanted)} in {root}"
    return AmtError(
        f"repository: {what}",
        fix=(
            "name the folder that holds src/ or amt/: repo.path=PATH or AMT_REPO=PATH for a run",
            "python -m amt_hydra inspect PATH shows what is read from a folder",
        ),
    )


def _check(sources: "Sources", train: Path) -> None:
    """Refuse a train.py that cannot be read: nothing is known without it."""
    source = sources.load(train)
    if source is None:
        raise AmtError(
            f"repository: {sources.problems[-1]}",
            fix=(f"make {train} readable",),
        )
    if source.tree is None:
        error = source.error
        line, words = (error.lineno or 1, error.msg) if error is not None else (1, "no Python source")
        raise AmtError(
            f"repository: {train}:{line}: does not parse: {words}",
            fix=(f"python -m py_compile {train.name} in {train.parent} shows the place",),
        )


def _beside(root: Path, wanted: str, train: Path) -> Path | None:
    """Return the file of the layout, else the one of that name beside train.py or in config/ there."""
    name = Path(wanted).name
    candidates = (root / wanted, train.parent / name, train.parent / "config" / name)
    return next((path for path in candidates if path.is_file()), None)


def _binding(tables: re.Pattern[bytes], training: "Training") -> Path | None:
    """Return the module that holds most of this family's tables, where a fork has moved it."""
    found = [(len(set(tables.findall(source.data))), source.path) for source in training.files]
    return max(found, key=lambda one: one[0])[1] if any(count for count, _ in found) else None


def _task_py(layout: Layout) -> str:
    return str(Path(layout.config).with_name("task.py"))


def _table(config: Path | None, path: Path | None, sources: "Sources", name: str) -> Path | None:
    """Return the task.py beside config.py, else config.py where it holds the table itself."""
    for candidate in (path, config):
        source = sources.load(candidate) if candidate is not None else None
        if source is not None and name.encode() in source.data:
            return candidate
    return None


def _unread(sources: "Sources", entries: list[tuple[Place, str]], words: str) -> None:
    sources.problems.extend(f"{sources.place(place.file, place.line)}: {text} {words}" for place, text in entries)
