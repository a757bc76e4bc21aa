"""What a repository keeps of the conventions, by which means, and what the bridge adds to it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from amt_hydra.documented import documented
from amt_hydra.env_switches import DEBUGGING, FORCE_SCRATCH
from amt_hydra.mapping import Channel, is_dead, why_dead
from amt_hydra.preset_faults import preset_faults
from amt_hydra.repository.facts import Flag, Place, Repository
from amt_hydra.unkept import flag_name

_BRINGS = ("flag", "env")  # what a repository takes by itself
_FEATURES = "features."


@dataclass(frozen=True, slots=True)
class Convention:
    """One setting in this repository."""

    key: str
    by: str
    """The means that carries it: "--precision", "env AMT_…", "config KEY (bridge)"; "" where there is none."""
    bridged: bool
    value: object
    """The repository's own, or None where it cannot be told."""
    place: Place | None
    documented: object
    """The documented default; None where there is none."""


@dataclass(frozen=True, slots=True)
class Lack:
    """Something that the repository does not do by itself."""

    what: str
    why: str
    added: bool
    """Whether the bridge brings it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong with the repository's source, in words with a place."""

    kind: Literal["dead flag", "dies at start", "preset"]
    text: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """A repository against the conventions."""

    repository: Repository
    kind: str
    """The mapping that was used."""
    conventions: tuple[Convention, ...]
    start: tuple[str, ...]
    """How its own code starts a run, in sentences."""
    lacks: tuple[Lack, ...]
    faults: tuple[Fault, ...]


def inspect(repository: Repository, kind: str, channels: Mapping[str, Channel]) -> Inspection:
    """Look at a repository through its mapping's channels, those of the bridge included."""
    return Inspection(
        repository=repository,
        kind=kind,
        conventions=tuple(_convention(channel) for channel in channels.values()),
        start=tuple(_start(repository)),
        lacks=tuple(_lacks(repository, channels)),
        faults=tuple(_faults(repository)),
    )


def _convention(channel: Channel) -> Convention:
    carrier, entry = channel.carrier, documented().get(channel.key)
    carried = "" if carrier is None else f"{carrier.kind} {carrier.name}"
    by = flag_name(channel.flag) if channel.flag else carried
    bridged = carrier is not None and carrier.kind not in _BRINGS
    return Convention(
        channel.key, by, bridged, channel.current, channel.place, entry.value if entry is not None else None
    )


def _start(repository: Repository) -> list[str]:
    start = repository.start
    words = {
        "resume": "a last.ckpt is resumed: step, optimizer and schedule go on",
        "warmstart": "a last.ckpt gives its weights only: what the code calls resuming starts at step 0",
        "scratch": "a last.ckpt is passed over",
        "unknown": "what becomes of a last.ckpt: unknown",
    }
    strict = {True: "strict", False: "not strict: missing and unexpected keys pass in silence", None: "strict: unknown"}
    found = [words[repository.goes_on] + (f" ({repository.resumes[0]})" if repository.resumes else "")]
    if not repository.trains:
        found.append("nothing in what train.py runs calls .fit(…): whether it trains is unknown")
    found += [f"weights are loaded at {load.place} (of {load.takes}; {strict[load.strict]})" for load in start.loads]
    found += [f"a checkpoint that is missing becomes a scratch run, exit 0 ({place})" for place in start.falls_through]
    if any(load.takes == "init" for load in start.loads):
        found.append(f"where last.ckpt and an init checkpoint are both there, the one that counts: {start.precedence}")
    return found


def _lacks(repository: Repository, channels: Mapping[str, Channel]) -> list[Lack]:
    can = bool(repository.lightning)
    read = {switch.name for switch in repository.switches}
    found = []
    if not repository.resumes:
        found.append(Lack("true resume", "fit() never gets a ckpt_path", can))
    if _without(channels, "init.ckpt"):
        found.append(Lack("warm-start from init.ckpt", "no flag takes a checkpoint", can))
    if _without(channels, "seed"):
        found.append(Lack("a seed", "no flag takes one", can))
    if FORCE_SCRATCH not in read:
        found.append(Lack(FORCE_SCRATCH, "read nowhere", can))
    if not repository.saves:
        found.append(Lack("last.ckpt current and a real file", "left to ModelCheckpoint, which leaves it behind", can))
    if _without(channels, "logger.kind"):
        place = repository.loggers.get("WandbLogger")
        why = f"WandbLogger alone ({place})" if place else "no logger flag, and no WandbLogger to replace"
        found.append(Lack("CSV files where W&B has no credentials", why, can and place is not None))
    found += [Lack(name, "read nowhere", can) for name in DEBUGGING.values() if name not in read]
    in_config = [key for key, c in channels.items() if c.carrier and c.carrier.kind == "config"]
    if in_config:
        found.append(Lack(f"a flag for {', '.join(in_config)}", "set in config.py by the bridge", can))
    nowhere = [key for key, c in channels.items() if c.carrier is None and not key.startswith(_FEATURES)]
    if nowhere:
        found.append(Lack(f"any means for {', '.join(nowhere)}", "none of the mapping's is there", False))
    return found


def _without(channels: Mapping[str, Channel], key: str) -> bool:
    carrier = channels[key].carrier if key in channels else None
    return carrier is None or carrier.kind not in _BRINGS


def _faults(repository: Repository) -> list[Fault]:
    found = [
        Fault("dies at start", f"args.{n} is read at {p}, and no flag defines it")
        for n, p in repository.undefined.items()
    ]
    found += [
        Fault("dies at start", f"{b.expression} at {b.used}: it is None since {b.none}") for b in repository.broken
    ]
    found += [
        Fault("dies at start", f"{place} does not parse: {words}") for place, words in repository.unparsed.items()
    ]
    found += [Fault("dead flag", _dead(flag)) for flag in repository.flags if is_dead(flag)]
    return found + [Fault("preset", text) for text in _presets(repository)]


def _dead(flag: Flag) -> str:
    return f"{flag_name(flag)} at {flag.place} {why_dead(flag)}"


def _presets(repository: Repository) -> list[str]:
    return [
        f"{name} at {preset.place} {text}"
        for name, preset in repository.presets.items()
        for text, _ in preset_faults(preset, name, repository.presets)
    ]
