"""What versions of Lightning, torch and Python mean for a run. Pure; each number with where it was read."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from amt_hydra.versions import Versions

Release = tuple[int, ...]

OLDEST, NEWEST = (2, 2), (2, 6)
"""Lightning's minor releases that the bridge was tried with."""
OLDEST_PYTHON = (3, 8)
"""The bridge is written for it: positional-only parameters and := need no less."""
LINKS_FROM, LINKS_UNTIL = (2, 1), (2, 2)
"""2.1: save_last=True makes a link to the newest top-k checkpoint. _save_last_checkpoint of
pytorch_lightning/callbacks/model_checkpoint.py in 2.1.0 and 2.1.4; 2.0.9 saves a copy, and 2.2.0 links for "link" only.
"""
FREEZES_FROM = (2, 6)
"""save_last=True is looked at after a top-k save only: on_validation_end of the same file in 2.6.0 and 2.6.6, against
2.5.6, which calls _save_last_checkpoint each time."""
PLAIN_VALUES_FROM = (2, 6)
"""torch.load(weights_only=None) means True: _get_wo_message and load in torch/serialization.py; 2.5 means False."""
LOADS_ALL_FROM, LOADS_ALL_UNTIL = (2, 4), (2, 6)
"""Lightning's own load, for fit(ckpt_path=…), says weights_only=False: _load of lightning_fabric/utilities/cloud_io.py
in 2.4.0, 2.5.0 and 2.5.6. 2.3.3 says nothing, and 2.6.0 says None: torch's default then counts."""
MIXED_FROM = (2, 0)
""""bf16-mixed" and "16-mixed": _PRECISION_INPUT_STR of lightning_fabric/plugins/precision/precision.py in 2.0.9; 1.9.5
knows "64", "32", "16" and "bf16" only."""
OLD_PRECISIONS: Mapping[str, str] = {"bf16-mixed": "bf16", "16-mixed": "16", "32-true": "32", "64-true": "64"}

Last = Literal["copy", "link", "frozen"]
"""What becomes of last.ckpt: a copy at each save, a link to the newest top-k one, a copy beside a top-k save only."""


def release(version: str | None) -> Release | None:
    """The numbers at the start of a version: "2.13.0+cpu" is (2, 13, 0). A pre-release counts as what it precedes."""
    found = re.match(r"(?:\d+!)?(\d+(?:\.\d+)*)", version or "")
    return tuple(map(int, found[1].split("."))) if found else None


def lightning(versions: Versions, imported: Sequence[str]) -> tuple[str, Release] | None:
    """Name and release of the Lightning that the repository imports: the packages are two, of two versions."""
    names = dict.fromkeys(name.replace("_", "-") for name in imported)
    found = [(name, number) for name in names if (number := release(versions.packages.get(name)))]
    return min(found, key=lambda item: item[1]) if found else None


def lacking(versions: Versions, imported: Sequence[str]) -> tuple[str, ...]:
    """Distributions that the repository needs and the environment is known not to have."""
    needed = ("torch", *(name.replace("_", "-") for name in imported))
    return tuple(name for name in dict.fromkeys(needed) if versions.whole and name not in versions.packages)


def last_is(number: Release, save_last: object) -> Last:
    """What ModelCheckpoint makes of save_last."""
    if save_last == "link" or LINKS_FROM <= number < LINKS_UNTIL:
        return "link"
    return "frozen" if number >= FREEZES_FROM else "copy"


def torch_refuses(versions: Versions) -> bool | None:
    """Whether torch.load refuses classes where it is told nothing; None where torch's version is not known."""
    number = release(versions.packages.get("torch"))
    return None if number is None else number >= PLAIN_VALUES_FROM


def fit_refuses(versions: Versions, imported: Sequence[str]) -> bool | None:
    """Whether fit(ckpt_path=…) refuses classes where it is told nothing."""
    found = lightning(versions, imported)
    if found is not None and LOADS_ALL_FROM <= found[1] < LOADS_ALL_UNTIL:
        return False
    return torch_refuses(versions)


def old_precision(number: Release, precision: object) -> str | None:
    """How a Lightning that does not know this spelling of a precision spells it; None where it knows it."""
    return OLD_PRECISIONS.get(str(precision)) if number < MIXED_FROM else None


def untested(number: Release) -> bool:
    """Whether the bridge was never tried with this Lightning."""
    return not OLDEST <= number[:2] <= NEWEST


def too_old(versions: Versions) -> bool:
    """Whether the interpreter cannot run the bridge."""
    return versions.python is not None and versions.python < OLDEST_PYTHON
