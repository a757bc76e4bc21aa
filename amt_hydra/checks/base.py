"""What a check is, and what it finds."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from amt_hydra.commands import Typed
from amt_hydra.errors import nearest
from amt_hydra.extras import extra_dest
from amt_hydra.identity import Identity
from amt_hydra.machine import Machine
from amt_hydra.mapping import Channel, exists, is_dead, parse
from amt_hydra.plan import Decision, Plan
from amt_hydra.refusals import Ways
from amt_hydra.repository.facts import Computed, Repository
from amt_hydra.runstate import RunState
from amt_hydra.settings import Settings
from amt_hydra.versions import Versions

if TYPE_CHECKING:
    from amt_hydra.launch.lock_content import Holder

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check has to say."""

    id: str
    """The check's class name."""
    severity: Severity
    message: str
    fix: tuple[str, ...] = ()
    """Ways out, each a command to paste or a short imperative."""
    ignored: str = ""
    """The reason given in checks.ignore; an ignored finding stops nothing."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Everything that checks look at, as plain values."""

    typed: Typed
    ways: Ways
    """Commands under which a run of this experiment is what it declares itself to be."""
    settings: Settings
    """With every `auto` decided."""
    repository: Repository
    channels: dict[str, Channel]
    state: RunState
    machine: Machine
    identity: Identity
    plan: Plan
    shadowed: tuple[Path, ...]
    """Configs of the user's own that one of the same name hides."""
    leftovers: dict[str, str]
    """AMT_* switches found in the shell: name -> value."""
    locked: "Holder | None"
    free: dict[Path, int]
    """Bytes free, per folder that is written to."""
    python: Path
    versions: Versions
    """What is installed for that interpreter."""

    def decision(self, key: str) -> Decision:
        """The decision on one setting."""
        return next(d for d in self.plan.decisions if d.key == key)

    def effective(self, key: str) -> object:
        """The value that the run will have: the setting's, else the repository's own, else None."""
        decision = self.decision(key)
        return decision.value if decision.value is not None else decision.own

    def whole_number(self, key: str) -> int | None:
        """`effective`, where it is a whole number that was spelt out."""
        value = self.effective(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def flag_value(self, dest: str) -> object:
        """The value of a flag that no setting carries: as extra.flags gives it, else its default; None where there is
        no such flag, or one that does nothing."""
        flag = self.repository.flag(dest)
        if flag is None or is_dead(flag):
            return None
        given = next((v for k, v in self.settings.extra.flags.items() if extra_dest(k) == dest), None)
        return flag.default if given is None else given

    def config_value(self, key: str) -> object:
        """A value of config.py that no setting carries: as extra.config gives it, else its own; None where it cannot
        be told."""
        given = self.settings.extra.config.get(key)
        own = self.repository.config.get(key)
        value = given if given is not None else own.value if own else None
        return None if isinstance(value, Computed) else value

    def extra_flag(self, dest: str, value: object) -> str:
        """The command in which a flag that no setting carries has another value."""
        written = [f"extra.flags.{name}" for name in self.settings.extra.flags if extra_dest(name) == dest]
        return self.typed.changed(f"extra.flags.{dest}={value}", drop=written)

    def has_means(self, key: str) -> bool:
        """Whether the repository has a means for a setting, be it one that takes the bridge."""
        means = [parse(text, key) for text in self.settings.repo.means.get(key, ())]
        return any(exists(one, self.repository) for one in means)

    def where(self, key: str) -> str:
        """Who says what a setting is: FILE:LINE where it is the repository, else the option or the command line."""
        return str(self.decision(key).origin)

    def set_to(self, key: str, value: object) -> str:
        """How a setting gets another value: a command, or the line to edit where the repository has no flag for it."""
        channel = self.channels.get(key)
        if channel is None or channel.carrier is not None or channel.place is None:
            return self.typed.changed(f"{key}={value}")
        return f"write {value} at {channel.place}"


def number(value: object) -> int | None:
    """A whole number, whether it was spelt out in a source or typed (1e5 is one too); None where it is none."""
    with contextlib.suppress(ValueError, OverflowError):
        return int(str(value)) if str(value).lstrip("+-").isdecimal() else _whole(float(str(value)))
    return None


def _whole(value: float) -> int | None:
    return int(value) if int(value) == value else None


def closest(name: str, fitting: Sequence[str], own: object) -> str | None:
    """What may stand for a name that does not fit: the nearest spelling, else the repository's own, else the first."""
    return nearest(name, fitting) or next((one for one in fitting if one == own), fitting[0] if fitting else None)


class Check:
    """One rule. The class name is its id, the docstring's first line its title and the rest its reason."""

    requires: ClassVar[tuple[type["Check"], ...]] = ()
    """Checks without whose success this one would only repeat their errors: it is then skipped."""
    ignorable: ClassVar[bool] = True
    """Whether checks.ignore may name it."""

    def run(self, subject: Subject) -> Iterator[Finding]:
        """Yield what is found; nothing where all is well."""
        raise NotImplementedError

    @classmethod
    def error(cls, message: str, *fix: str) -> Finding:
        """A finding that stops the launch."""
        return Finding(cls.__name__, "error", message, fix)

    @classmethod
    def warning(cls, message: str, *fix: str) -> Finding:
        """A finding that is shown, and stops the launch under checks.strict."""
        return Finding(cls.__name__, "warning", message, fix)

    @classmethod
    def info(cls, message: str, *fix: str) -> Finding:
        """A finding that is shown."""
        return Finding(cls.__name__, "info", message, fix)

    @classmethod
    def title(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().splitlines()[0]

    @classmethod
    def reason(cls) -> str:
        """The docstring after its first line, as one paragraph."""
        return " ".join(" ".join((cls.__doc__ or "").strip().splitlines()[1:]).split())
