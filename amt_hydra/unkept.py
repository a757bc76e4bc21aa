"""Settings that do not reach the repository as they stand, and why. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal

from amt_hydra.errors import nearest
from amt_hydra.mapping import Channel, is_dead, why_dead
from amt_hydra.origins import Origin
from amt_hydra.repository.facts import Flag, Repository
from amt_hydra.schema import leaves
from amt_hydra.settings import Settings

# Settings that we act on ourselves, so that nothing of them has to reach the repository.
_OURS = ("repo.", "init.", "ddp.accelerator", "launch.", "sweep.", "slurm.", "paths.", "checks.", "extra.")
# Values that say "nothing special": no means is needed for them, and a setting that knows no null returns to them.
_NEUTRAL: Mapping[str, object] = {"ddp.nodes": 1, "ddp.devices": 1}
_PLAIN: Mapping[str, str] = {"ddp.nodes": "1", "ddp.devices": "auto", "logger.kind": "auto"}
_SAME_WORD = 0.8  # another spelling of it: save_topk for save_top_k, and not moe_topk
_SWITCHES = ("features.", "debug.")  # off is what they are without any means


@dataclass(frozen=True, slots=True)
class Unkept:
    """A setting that does not reach the repository as it stands."""

    kind: Literal["unreached", "misfit", "feature", "flag", "dead"]
    key: str
    value: object
    asked: bool
    """The user asked for it; otherwise it is a documented default, or what this machine made of one."""
    message: str
    fix: str = ""
    """An override that ends it, or words."""


def is_default(origin: Origin | None) -> bool:
    """Whether a value is a documented default, or what this machine made of one: it is a convention, and no wish."""
    return origin is not None and origin.who in ("documented", "machine")


def unreached(
    key: str,
    value: Any,
    origin: Origin | None,
    channels: Mapping[str, Channel],
    repository: Repository,
    tried: str,
) -> Unkept | None:
    """What is wrong with a setting for which the repository has no means; None where nothing is.

    `tried` are the means of a mapping of the user's own, in words that follow "takes it".
    """
    if value is None or key.startswith(_OURS) or _NEUTRAL.get(key) == value or origin is None:
        return None
    if value is False and key.startswith(_SWITCHES):
        return None
    if key.startswith("features."):
        return Unkept("feature", key, value, True, "the repository was not found to implement it", f"{key}=false")
    channel = channels.get(key)
    if channel and same(value, channel.current):
        return None
    if key == "logger.kind" and value == "wandb" and "WandbLogger" in repository.loggers:
        return None  # it does so by itself
    if origin.who == "machine" and key in _PLAIN:
        return None  # the repository counts the GPUs and looks for credentials itself
    if not (origin.asked or is_default(origin)):
        return None
    fix = "false" if key.startswith(_SWITCHES) else _PLAIN.get(key, "null")
    fix = "" if fix == "null" and not leaves(Settings)[key].accepts(NoneType) else f"{key}={fix}"
    why = _why_unreached(key, channels, repository, tried)
    return Unkept("unreached", key, value, origin.asked, why, fix)


def _why_unreached(key: str, channels: Mapping[str, Channel], repository: Repository, tried: str) -> str:
    name, channel = key.rpartition(".")[2], channels.get(key)
    dead = [f for f in repository.flags if f.dest == name and is_dead(f)]
    owned = {c.flag.dest for c in channels.values() if c.flag}
    others = [f.dest for f in repository.flags if f not in dead and f.dest not in owned]
    close = nearest(name, others, cutoff=_SAME_WORD)
    flag = repository.flag(close) if close else None
    hint = f" (dead: {flag_name(dead[0])} at {dead[0].place} {why_dead(dead[0])})" if dead else ""
    hint += f"; the nearest flag is {flag_name(flag)} at {flag.place}" if flag else ""
    if channel and channel.stands:
        return f"it has no flag there, and no bridge is used: {channel.current} stands at {channel.place}{hint}"
    return f"no flag or variable of the repository takes it{tried}{hint}"


def same(value: object, own: object) -> bool:
    """Whether the repository's own value is what is wanted; names are compared in lower case, as this family does."""
    if "/" in str(value):  # a path or a metric, which is another one in other letters
        return str(value) == str(own)
    return value == own or (own is not None and str(value).lower() == str(own).lower())


def flag_name(flag: Flag) -> str:
    """What a flag is called on train.py's command line."""
    return flag.option or flag.dest
