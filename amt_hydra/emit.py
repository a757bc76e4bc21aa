"""A mapping for a repository that none fits, written from what was read of it: ready to edit."""

import os
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from amt_hydra.errors import USAGE, AmtError
from amt_hydra.mapping import Channel, exists, is_dead, parse
from amt_hydra.repository.facts import ConfigValue, Flag, Repository
from amt_hydra.repository.locate import KINDS
from amt_hydra.unkept import flag_name

# Other names of settings, as training code has them. What is found by these is proposed, never taken.
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "exp_id": ("experiment", "exp_name", "exp", "experiment_id", "run_name", "name"),
    "project": ("project_name", "wandb_project"),
    "seed": ("random_seed", "rng_seed"),
    "max_steps": (
        *("num_steps", "total_steps", "train_steps", "steps", "n_steps", "num_training_steps"),
        *("iterations", "max_iters", "total_iters", "num_iters", "n_iters", "train_iters"),
    ),
    "val_interval": ("val_check_interval", "validation_interval", "eval_interval", "eval_every", "val_every"),
    "init.ckpt": ("init_checkpoint", "init_from", "pretrained_ckpt", "pretrained_path", "warmstart", "load_weights"),
    "precision.name": ("precision", "amp"),
    "optimizer.name": ("optimizer", "optim", "optimizer_name", "opt"),
    "optimizer.lr": ("lr", "learning_rate", "base_lr", "base_learning_rate"),
    "optimizer.warmup_steps": ("warmup", "num_warmup_steps", "warmup_iters", "n_warmup"),
    "optimizer.scheduler": ("lr_scheduler", "scheduler_name", "schedule", "scheduler_type"),
    "batch.sub": ("train_sub", "sub_batch_size", "sub_bsz"),
    "batch.local": ("train_local", "batch_size", "train_batch_size", "local_batch_size", "bsz"),
    "batch.accumulate": ("accumulate_grad_batches", "grad_accum", "accumulation_steps", "accumulate"),
    "ddp.devices": ("num_gpus", "gpus", "devices", "n_gpus"),
    "ddp.nodes": ("num_nodes", "nodes", "n_nodes"),
    "ddp.sync_batchnorm": ("sync_bn",),
    "data_presets.name": ("data_preset", "preset", "dataset", "data"),
    "data.num_workers": ("workers", "n_workers", "num_worker"),
    "data.home": ("data_home", "data_dir", "data_root", "dataset_dir"),
    "checkpoint.mode": ("monitor_mode",),
    "checkpoint.save_top_k": ("top_k", "keep_checkpoints"),
    "logger.kind": ("logger", "log_with"),
    "logger.mode": ("wandb_mode",),
}
_RUNS = ("save_dir", "log_dir", "logs_dir", "output_dir", "out_dir", "runs_dir", "checkpoint_dir")
_HEAD = """\
# How settings reach {root}, as its source was read. The first means of a list
# that the source has is used. Lines that are commented out are only proposed, by their names: look at the place, then
# take the "#" away. Means: flag:DEST, flag:DEST[INDEX], env:NAME, config:DOTTED.KEY, bridge:CAPABILITY.
# It is used by: repo={kind} repo.path={path}
kind: {kind}
"""


def emit(repository: Repository, kind: str, channels: Mapping[str, Channel], like: Mapping[str, Any]) -> str:
    """The text of conf/repo/<kind>.yaml for this repository; `like` is the mapping that `channels` was made of."""
    means: Mapping[str, Sequence[str]] = like["means"]
    taken = {c.carrier.name for c in channels.values() if c.carrier}
    lines = [_HEAD.format(root=repository.root.name, kind=kind, path=repr(str(repository.root))).rstrip("\n")]
    lines += [
        _runs(repository),
        f"loaders: {like['loaders']}   # DataLoaders per rank: one, or per_sub_batch",
        "means:",
    ]
    sections: dict[str, list[str]] = {}
    for key in means:
        head, _, name = key.rpartition(".")
        sections.setdefault(head, []).extend(_entry(key, name, repository, channels[key], means[key], taken))
    lines += [f"  {entry}" for entry in sections.pop("", [])]
    for head, entries in sections.items():
        empty = all(entry.startswith("#") for entry in entries)  # a section of nothing is no map
        lines += [f"  {'# ' if empty else ''}{head}:", *(f"    {entry}" for entry in entries)]
    rest = {title: _nested(like[title]) for title in ("saved", "lazy") if title in like}
    return "\n".join(lines) + "\n" + _dumped(rest)


def _nested(flat: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Dotted keys as files have them: section by section."""
    found: dict[str, Any] = {}
    for key, names in flat.items():
        head, _, name = key.rpartition(".")
        (found.setdefault(head, {}) if head else found)[name] = list(names)
    return found


def _dumped(content: Mapping[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(content, sort_keys=False) if content else ""


def _entry(
    key: str, name: str, repository: Repository, channel: Channel, means: Sequence[str], taken: Container[str]
) -> list[str]:
    """The lines of one setting: the means that are there, else what its name resembles, commented out."""
    there = [text for text in means if exists(parse(text, key), repository)]
    if there:
        shown = ", ".join(f'"{text}"' if "[" in text else text for text in there)
        value = " ".join(str(channel.current).split())  # of one line, as a comment is
        note = f"   # {value} at {_short(channel.place, repository)}" if channel.place else ""
        return [f"{name}: [{shown}]{note}"]
    proposed = [f"# {name}: [{text}]   # {note}" for text, note in _proposed(key, repository, taken)]
    return proposed or [f"# {name}: []   # nothing like it was found"]


def _proposed(key: str, repository: Repository, taken: Container[str]) -> Iterator[tuple[str, str]]:
    names = {key.rpartition(".")[2], *_ALIASES.get(key, ())}
    for flag in repository.flags:
        if flag.dest in names and flag.dest not in taken and not is_dead(flag):
            yield f"flag:{flag.dest}", f"{flag_name(flag)} at {_short(flag.place, repository)}"
    for value in repository.config.values():
        if value.key.rpartition(".")[2] in names and value.key not in taken:
            yield f"config:{value.key}", f"{value.value!r} at {_short(value.place, repository)}"


def runs_means(repository: Repository) -> list[str]:
    """The means that may say where runs go; the most likely first."""
    flags: list[Flag | ConfigValue] = [f for f in repository.flags if f.dest in _RUNS and not is_dead(f)]
    keys = [v for v in repository.config.values() if v.key.rpartition(".")[2] in _RUNS]
    return [f"flag:{x.dest}" if isinstance(x, Flag) else f"config:{x.key}" for x in (*flags, *keys)]


def _runs(repository: Repository) -> str:
    """The line that says where runs go."""
    found = runs_means(repository)
    note = "" if found else "   # nothing found: give repo.runs=FOLDER"
    return f"runs_from: [{', '.join(found)}]{note}"


def _short(place: object, repository: Repository) -> str:
    return str(place).replace(f"{repository.root}{os.sep}", "")


def write(file: Path, text: str) -> None:
    """Write a new mapping. Raises AmtError where a file is there already, or none can be written."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as handle:
            _whole(file, handle, text)
    except FileExistsError as error:
        raise AmtError(f"--emit {file}: a file is there already", fix=["name another, or move it away"]) from error
    except OSError as error:
        raise AmtError(f"--emit {file}: {error.strerror}", fix=["name a file that can be written"]) from error


def _whole(file: Path, handle: TextIO, text: str) -> None:
    """Half a file would be in the way of the next try, and be taken for a mapping."""
    try:
        handle.write(text)
        handle.flush()
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def kind_of(file: Path) -> str:
    """The name that a mapping in this file has. Raises AmtError where it would never be found under it."""
    if file.suffix != ".yaml" or file.parent.name != "repo":
        raise AmtError(
            f"--emit {file}: a mapping is looked for in a folder of configs as repo/NAME.yaml",
            fix=["--emit conf/repo/NAME.yaml"],
            code=USAGE,
        )
    if file.stem in KINDS or not file.stem.replace("-", "_").isidentifier():
        raise AmtError(
            f"--emit {file}: {file.stem!r} cannot be the name of a mapping of your own",
            fix=[f"a plain word that is none of {', '.join(KINDS)}: --emit {file.with_name('my_fork.yaml')}"],
            code=USAGE,
        )
    return file.stem
