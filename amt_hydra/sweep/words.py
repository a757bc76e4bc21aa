"""The overrides that a sweeper hands to a launcher, as a user would type them for that one point."""

import re
from collections.abc import Sequence


def typed(overrides: Sequence[str]) -> tuple[str, ...]:
    """Undo what `overrides.prepare` did for Hydra's grammar; Hydra's own settings are left out."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parsed = OverridesParser.create().parse_overrides(list(overrides))
    return tuple(_word(one) for one in parsed if not one.key_or_group.startswith("hydra"))


def _word(override: object) -> str:
    from hydra.core.override_parser.types import Override, QuotedString

    assert isinstance(override, Override)
    value = override._value  # value() loses whether it was quoted
    key = override.get_key_element()
    if isinstance(value, QuotedString):
        return f"{key.lstrip('+')}={_unescaped(value.text)}"
    return f"{key.lstrip('+') if key.startswith('++') else key}={override.get_value_element_as_str()}"


def _unescaped(text: str) -> str:
    """The inverse of `overrides.escape`."""
    return re.sub(r"(\\*)\\\$\{", lambda match: "\\" * (len(match[1]) // 2) + "${", text)
