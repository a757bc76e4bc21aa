"""Which run a point of a sweep is: a short hash over the settings that change the result. Pure."""

import hashlib
import json
from collections.abc import Mapping

from amt_hydra.batches import global_batch
from amt_hydra.drift import BATCH_FACTORS
from amt_hydra.plan import setting
from amt_hydra.saved import number
from amt_hydra.schema import leaves
from amt_hydra.settings import Settings

LENGTH = 8
_NAMES = ("exp_id", "project")  # the signature is added to them


def signature(settings: Settings) -> str:
    """Eight hexadecimal digits: the same for the same training, wherever and however often it is started.

    The settings are those that were asked for, before this machine decided anything. Those that a resume brings back
    count as well: of two points with different learning rates neither goes on with the other's checkpoint.
    """
    text = json.dumps(content(settings), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:LENGTH]


def content(settings: Settings) -> dict[str, object]:
    """What is hashed: settings by key, without those that nobody set, and the global batch in place of its factors."""
    values = {key: setting(settings, key) for key in leaves(Settings)}
    batch = global_batch(values.get)
    factors = BATCH_FACTORS if batch else ()
    kept = {key: value for key, value in values.items() if _counts(key) and key not in factors}
    if batch:
        kept["global batch"] = batch.size
    elif isinstance(settings.ddp.devices, int) and (ranks := settings.ddp.devices * settings.ddp.nodes) > 1:
        kept["ranks"] = ranks  # whatever the repository's own batch is, they multiply it
    return {key: plain for key, value in kept.items() if (plain := _plain(value, key)) not in (None, {})}


def _counts(key: str) -> bool:
    return key not in _NAMES and leaves(Settings)[key].meta["kind"] in ("identity", "restored")


def _plain(value: object, key: str) -> object:
    """As JSON takes it; 1e5 and 100000 are one value of a setting, and two of what the repository reads itself."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one, key) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, key) for one in value]
    if value is None or isinstance(value, bool):
        return value
    if key.startswith("extra."):
        return str(value)
    found = number(value)
    return found if found is not None else str(value)
