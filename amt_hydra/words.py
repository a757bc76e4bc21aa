"""Values as a repository takes them: words of train.py's command line by argparse's rules, values of config.py."""

import contextlib
import re
from collections.abc import Mapping, Sequence

from amt_hydra.repository.facts import Computed, Flag

_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")  # argparse's own idea of a negative number


def render(flag: Flag, value: object) -> list[str]:
    """The words that put `value` on train.py's command line.

    Raises ValueError, in words for a user, where the flag cannot take it: argparse would only say so after the start.
    """
    if flag.action in ("store_true", "store_false", "store_const", "BooleanOptionalAction"):
        return _switch(flag, value)
    if flag.action == "count":
        return [flag.option or ""] * _whole_number(value)
    if flag.action not in ("store", "append", "extend") or flag.nargs in ("...", "A..."):
        raise ValueError("is of a kind that cannot be given from here")
    values = list(value) if isinstance(value, list | tuple) else [value]
    if flag.action == "append" and flag.nargs is None:
        return [word for one in values for word in _words(flag, [one])]
    if isinstance(flag.nargs, int) and len(values) != flag.nargs:
        raise ValueError(f"takes {flag.nargs} values, not {len(values)}")
    if flag.nargs in (None, "?") and len(values) != 1:
        raise ValueError(f"takes one value, not {len(values)}")
    if flag.nargs == "+" and not values:
        raise ValueError("takes one value or more, not 0")
    return _words(flag, values)


def _words(flag: Flag, values: Sequence[object]) -> list[str]:
    words = [cast(flag, v) for v in values]
    if "--" in words:
        raise ValueError("cannot be '--': argparse drops it")
    dashed = [w for w in words if w.startswith("-") and not _NEGATIVE_NUMBER.fullmatch(w)]
    if flag.option is None:
        if dashed:
            raise ValueError(f"{dashed[0]!r} would be taken for an option")
        return words
    if not dashed:
        return [flag.option, *words]
    if len(words) == 1:
        return [f"{flag.option}={words[0]}"]
    raise ValueError(f"{dashed[0]!r} would be taken for an option")


def cast(flag: Flag, value: object) -> str:
    """One value as the flag's type reads it. Raises ValueError."""
    if isinstance(value, Computed) or value is None:
        raise ValueError("has no value that can be written on a command line")
    if isinstance(value, Mapping | list | tuple):
        raise ValueError(f"takes single values, not {value}")
    if flag.type == "int":
        text = str(_whole_number(value))
    elif flag.type == "float":
        text = repr(_number(value))
    elif flag.type == "bool":
        # type=bool makes every text but the empty one true.
        if not isinstance(value, bool):
            raise ValueError("takes true or false")
        text = "True" if value else ""
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value)
    return _choice(flag, text)


def fit(value: object, own: object) -> object:
    """A value for config.py, of the type that its own value has there. Raises ValueError, in words for a user."""
    if own is None or isinstance(own, Computed) or value is None:
        return value
    if isinstance(own, bool):
        return _truth(value)
    if isinstance(own, int):
        return _number(value) if own in (0, 1) and _is_fraction(value) else _whole_number(value)  # dropout 0 -> 0.1
    if isinstance(own, float):
        return _number(value)
    if isinstance(own, list | tuple):
        if not isinstance(value, list | tuple):
            raise ValueError("takes a list")
        return [fit(one, _pattern(own, number)) for number, one in enumerate(value)]
    if isinstance(value, Mapping | list | tuple):
        raise ValueError(f"takes single values, not {value}")
    return value if str(own).lower() == "auto" else str(value)  # auto stands for a number


def _pattern(own: Sequence[object], number: int) -> object:
    """The element of a list whose type the one at `number` has: among numbers a float, where there is one."""
    if not own:
        return None
    if all(isinstance(one, int | float) and not isinstance(one, bool) for one in own):
        return next((one for one in own if isinstance(one, float)), own[0])
    return own[min(number, len(own) - 1)]


def _is_fraction(value: object) -> bool:
    with contextlib.suppress(ValueError):
        return 0 < abs(_number(value)) < 1
    return False


def _truth(value: object) -> bool:
    words = {"true": True, "false": False}
    text = str(value).lower()
    if text not in words:
        raise ValueError("takes true or false")
    return words[text]


def _number(value: object) -> float:
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with contextlib.suppress(ValueError, OverflowError):
            return float(value)
    raise ValueError("takes a number")


def _whole_number(value: object) -> int:
    with contextlib.suppress(ValueError, OverflowError):  # "x", NaN, infinity
        if isinstance(value, str):  # 1e5 is one too; digits alone are read to the last
            value = int(value) if value.lstrip("+-").isdecimal() else float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and int(value) == value:
            return int(value)
    raise ValueError("takes a whole number")


def _choice(flag: Flag, text: str) -> str:
    """The choice that is meant, as the repository spells it: argparse compares exactly, this family in lower case."""
    if not isinstance(flag.choices, tuple):
        return text
    known = [str(choice) for choice in flag.choices]
    if text in known or (flag.type == "float" and float(text) in flag.choices):
        return text
    meant = [choice for choice in known if choice.lower() == text.lower()]
    if len(meant) != 1:
        raise ValueError(f"takes one of {', '.join(known)}")
    return meant[0]


def _switch(flag: Flag, value: object) -> list[str]:
    if not isinstance(value, bool):
        raise ValueError("takes true or false")
    assert flag.option is not None  # a positional cannot be a switch
    if flag.action == "BooleanOptionalAction" and flag.option.startswith("--"):
        return [flag.option if value else f"--no-{flag.option.removeprefix('--')}"]
    if value == (flag.action != "store_false"):
        return [flag.option]
    if flag.default is value or (flag.action == "store_const" and flag.default is None):
        return []
    raise ValueError(f"can only be switched {'off' if flag.action == 'store_false' else 'on'}")
