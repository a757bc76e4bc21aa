"""Facts of a training repository, read from its source by AST: nothing of it is imported or executed.

The readers are loaded when first asked for: most of the package needs the facts' types only.
"""

from typing import TYPE_CHECKING, Any

from amt_hydra.repository.facts import (
    FAMILY,
    HOME,
    LAYOUTS,
    Computed,
    ConfigValue,
    Flag,
    Layout,
    Place,
    Repository,
    Switch,
)
from amt_hydra.repository.locate import Located, locate
from amt_hydra.repository.read import read

if TYPE_CHECKING:
    from amt_hydra.repository.metrics import logs
    from amt_hydra.repository.sense import is_on, reads_switch, says_yes, switched_on

__all__ = [
    "FAMILY",
    "HOME",
    "LAYOUTS",
    "Computed",
    "ConfigValue",
    "Flag",
    "Layout",
    "Located",
    "Place",
    "Repository",
    "Switch",
    "is_on",
    "locate",
    "logs",
    "read",
    "reads_switch",
    "says_yes",
    "switched_on",
]

_LATER = {"logs": "metrics", "is_on": "sense", "reads_switch": "sense", "says_yes": "sense", "switched_on": "sense"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
