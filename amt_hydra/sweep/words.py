"""The overrides that a sweeper hands to a launcher, as a user would type them for that one point."""

import re
from collections.abc import Sequence


def typed(overrides: Sequence[str]) -> tuple[str, ...]:
    """Undo what `overrides.prepare` did for Hydra's grammar; Hydra's own settings are left out."""
    return tuple(_word(one) for one in overrides if not one.lstrip("+~").startswith("hydra"))


def _word(text: str) -> str:
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import QuotedString
    from hydra.errors import HydraException

    try:
        override = OverridesParser.create().parse_override(text)
    except HydraException:
        return text.lstrip("+")  # an element of choice('…'), from which Hydra has taken the quotes: text as it is
    value = override._value  # value() loses whether it was quoted
    key = override.get_key_element()
    key = key.lstrip("+") if key.startswith("++") else key
    if isinstance(value, QuotedString):
        return f"{key}={_unescaped(value.text)}"
    return f"{key}={value if isinstance(value, str) else text.partition('=')[2]}"


def _unescaped(text: str) -> str:
    """The inverse of `overrides.escape`."""
    return re.sub(r"(\\*)\\\$\{", lambda match: "\\" * (len(match[1]) // 2) + "${", text)
