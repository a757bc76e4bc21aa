"""What a run's settings are today against what the run so far had. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from amt_hydra.batches import GlobalBatch, global_batch
from amt_hydra.checkpoint import Xray
from amt_hydra.checks.base import Subject
from amt_hydra.extras import extra_dest
from amt_hydra.saved import Saved, alike, judged, saved
from amt_hydra.schema import Leaf, leaves
from amt_hydra.settings import Settings

_RECORD = "the last launch's record"
BATCH_FACTORS = ("batch.local", "batch.accumulate")
"""With the ranks, they make the global batch."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One setting that is not what the run had."""

    key: str
    before: object
    """None: it was not given."""
    who: str
    """Who had it, or where it was read."""
    now: object
    """None: it cannot be told."""
    left_out: bool
    """Nobody asks for today's value: it is what the setting falls back to."""

    @property
    def judged(self) -> bool:
        """Whether it is sure to be another value; what was given, and is not, below extra is."""
        return self.now is not None or self.key.startswith("extra.")

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.key}={shown(self.now)}, which the run so far did not have ({self.who})"
        if self.now is None:
            return f"{self.key}: the run so far had {shown(self.before)} ({self.who}), and it is left out now"
        text = f"{self.key}={shown(self.now)}, but the run so far had {shown(self.before)} ({self.who})"
        return f"{text}; left out now, it falls back to {shown(self.now)}" if self.left_out else text


def of_checkpoint(subject: Subject, ray: Xray) -> dict[str, Saved]:
    """The settings that a checkpoint holds."""
    repo = subject.settings.repo
    return saved(ray.hyper_parameters, repo.means, repo.saved, subject.repository)


def drifts(subject: Subject, ray: Xray) -> list[Drift]:
    """The settings that change the result and are not those of the run that `ray` is the last checkpoint of."""
    earlier, held = subject.state.earlier, of_checkpoint(subject, ray)
    before, now = batches(subject)
    factors = (
        BATCH_FACTORS if before and now and before.size == now.size else ()
    )  # shared out otherwise, it is the same
    found: list[Drift] = []
    for key, leaf in leaves(Settings).items():
        if leaf.meta["kind"] != "identity" or key == "init.ckpt" or key in factors:
            continue
        if leaf.is_map:
            found += _of_map(subject, leaf, earlier.get(key))
        elif judged(earlier.get(key)):
            found += _of_setting(subject, key, earlier[key], _RECORD)
        elif key in held:
            found += _of_setting(subject, key, held[key].value, told(ray, held[key]))
    return found


def batches(subject: Subject) -> tuple[GlobalBatch | None, GlobalBatch | None]:
    """The global batch of the last launch, by its record, and that of this one."""
    return global_batch(subject.state.earlier.get), global_batch(subject.effective)


def architecture(subject: Subject, ray: Xray) -> list[Drift]:
    """The settings of the model that are not those of the checkpoint."""
    held = of_checkpoint(subject, ray)
    models = [key for key in leaves(Settings) if key.startswith("model.") and key in held]
    return [drift for key in models for drift in _of_setting(subject, key, held[key].value, told(ray, held[key]))]


def told(ray: Xray, value: Saved) -> str:
    """Where a checkpoint says so."""
    return f"{ray.path.name}: {value.path}"


def shown(value: object) -> str:
    """A value as it is typed."""
    if isinstance(value, list | tuple):
        return f"[{','.join(map(shown, value))}]"
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _of_setting(subject: Subject, key: str, before: object, who: str) -> Iterator[Drift]:
    now, decision = subject.effective(key), subject.decision(key)
    left_out = not (decision.origin.asked and decision.value is not None)
    if now is None and who == _RECORD:
        yield Drift(key, before, who, None, left_out)
    elif judged(now) and not alike(before, now, key):
        yield Drift(key, before, who, now, left_out)


def _of_map(subject: Subject, leaf: Leaf, recorded: object) -> Iterator[Drift]:
    """Flags and values of config.py beyond the settings, where there is a record: one by one."""
    if not isinstance(recorded, Mapping):
        return
    given = subject.effective(leaf.key)
    before, now = _named(leaf.key, recorded), _named(leaf.key, given if isinstance(given, Mapping) else {})
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name), now.get(name)
        own = _own(subject, leaf.key, name)
        was, is_ = (own if value is None else value for value in (old, new))
        if not alike(was, is_) and all(value is None or judged(value) for value in (was, is_)):
            yield Drift(f"{leaf.key}.{name}", old, _RECORD, is_, new is None)


def _own(subject: Subject, key: str, name: str) -> object:
    """What the repository has where nothing is given; None where it cannot be told."""
    if key == "extra.config":
        value = subject.repository.config.get(name)
        own = value.value if value else None
    else:
        flag = subject.repository.flag(name)
        own = flag.default if flag else None
    return own if judged(own) else None


def _named(key: str, values: Mapping[str, object]) -> dict[str, object]:
    """By one name each; what is null is not given."""
    as_name = extra_dest if key == "extra.flags" else str
    return {as_name(name): value for name, value in values.items() if value is not None}
