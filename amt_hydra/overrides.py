"""The words of a command line, made fit for Hydra's override grammar before Hydra sees them.

Values of text and path settings reach their setting as the shell handed them over: the grammar would turn
`exp_id=1e3` into a number, split a path at its commas, and fail on `=`, brackets or letters outside ASCII.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING

from amt_hydra.conf_path import shipped_groups
from amt_hydra.errors import USAGE, AmtError, nearest
from amt_hydra.schema import Leaf, leaves
from amt_hydra.settings import Settings

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

_REPO_MAPS = ("repo.means.", "repo.saved.", "repo.lazy.")
_VALUE_MAPS = ("extra.flags.", "extra.config.")
OPEN_MAPS = (*_VALUE_MAPS, "extra.env.", "checks.ignore.", "slurm.options.", *_REPO_MAPS)
"""Maps that take keys of the user's own, without Hydra's "+"."""

_WORD = re.compile(r"(?P<prefix>\+\+|\+|~)?(?P<key>[^=]*)(?:=(?P<value>.*))?", re.DOTALL)
_SECRET_NAME = re.compile(
    r"(?:(?:api_?key|access_?key|token|secret|passwd|password|passphrase|credentials?)|(?:^|[._-])(?:key|pass|pwd))"
    r"[_-]?\d*$",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"://[^/?#\s@:]*:[^/?#\s@]+@")  # user:password@ of a URL
_FOLDERS = ("PWD", "OLDPWD")  # the shell's: "present working directory"
_HYDRAS_SWEEP = re.compile(r"hydra(?:/|\.)(?:launcher|sweeper)(?:\.|/|$)")
_FUNCTION = re.compile(r"(?:choice|range|interval|glob|shuffle|sort|tag)\(")
_QUOTING = re.compile(r"[\[\](){}'\"]")
_KEY = re.compile(r"[\w$-]+(?:\.[\w$-]+)*", re.ASCII)
_ITEM_NAME = re.compile(r"([\w.-]+)['\"]?\s*:")


def looks_secret(name: str) -> bool:
    """Whether a key or variable of this name holds a credential: WANDB_API_KEY, wandb.api_key, db_password, …"""
    return name not in _FOLDERS and bool(_SECRET_NAME.search(name))


def prepare(words: Sequence[str], groups: Sequence[str], sweep: bool = False) -> list[str]:
    """Return the overrides for Hydra. Raises AmtError on a secret, an unknown key, or a word that is no override.

    In a sweep a list of values stays one, but for paths: those sweep by choice(a,b) only.
    """
    return [_prepare(word, groups, sweep) for word in words]


def _of_hydra(key: str) -> AmtError:
    if _HYDRAS_SWEEP.match(key):
        return AmtError(f"{key} is for sweeps, and this is a single run", fix=["a sweep is given with -m"], code=USAGE)
    return AmtError(
        f"{key} has no effect here: Hydra's own folders and logs are switched off",
        fix=["records go to paths.outputs; config folders are named by --config-dir or AMT_CONF"],
        code=USAGE,
    )


def quote(text: str) -> str:
    """A Hydra value that composes to exactly `text`."""
    from hydra.core.override_parser.types import Quote, QuotedString

    return str(QuotedString(text=escape(text), quote=Quote.single).with_quotes())


def escape(text: str) -> str:
    """`text` for a config: OmegaConf follows "${" unless it is escaped, and then backslashes before it count too."""
    return re.sub(r"(\\*)\$\{", lambda m: m.group(1) * 2 + r"\${", text)


def _prepare(word: str, groups: Sequence[str], sweep: bool) -> str:
    match = _WORD.fullmatch(word)
    assert match is not None  # the pattern takes any text
    prefix, key, value = match["prefix"] or "", match["key"], match["value"]
    if not key or (value is None and prefix != "~"):
        raise _no_override(word)
    refuse_secret(key, value or "")
    if sweep and value and "{" in value:
        refuse_secret(key, value[value.index("{") :])  # within one of several values
    if "" in key.split("."):
        raise AmtError(f"{word!r}: a name is missing beside a dot of {key!r}", code=USAGE)
    known: Mapping[str, Leaf] = leaves(Settings)
    if sweep and _HYDRAS_SWEEP.match(key):
        return word
    if re.match(r"hydra(?:[./]|$)", key):
        raise _of_hydra(key)
    if f"{key}.".startswith(OPEN_MAPS):
        return word if prefix == "~" else _open(key, value or "", sweep)
    group = key.partition("@")[0]
    if key not in known and group not in groups and not _is_section(key, known):
        raise unknown_key(key, groups)
    if value is None:
        raise _not_to_be_taken_away(key, known)
    if group in groups:
        return f"{prefix}{key}={value}" if sweep and elements(value) else _choice(prefix, key, value)
    if prefix == "+":
        raise AmtError(f"{key} is a setting already: leave the + out", code=USAGE, new=[f"{key}={value}"])
    if value in ("", "null") or key not in known or not (known[key].accepts(str) or known[key].accepts(Path)):
        return word
    several = elements(value) if sweep else ()
    one = known[key].accepts(Path) or key.startswith("slurm.")  # a list of partitions is Slurm's own, and no two runs
    if several == (value,) or (several and not one):
        return f"{prefix}{key}={value if several == (value,) else ','.join(map(quote, several))}"
    return f"{prefix}{key}={quote(value)}"


def elements(value: str) -> tuple[str, ...]:
    """The values that a text lists for a sweep: those of a,b as they are typed, else itself where it is choice(…) or
    another of Hydra's functions; () where it is one value."""
    from hydra.core.override_parser.types import ChoiceSweep, QuotedString

    override, parts = _grammar(value), tuple(part.strip() for part in value.split(","))
    if override is None:  # letters that the grammar does not know, say
        if _FUNCTION.match(value):
            raise AmtError(
                f"{value} cannot be read as a list of values", fix=["quote each: choice('…','…')"], code=USAGE
            )
        return parts if len(parts) > 1 and not _QUOTING.search(value) else ()
    if not override.is_sweep_override():
        return ()
    sweep = override.value()
    if _FUNCTION.match(value) or not (
        isinstance(sweep, ChoiceSweep) and sweep.simple_form and len(sweep.list) == len(parts)
    ):
        return (value,)
    return tuple(
        one.text if isinstance(one, QuotedString) else part for one, part in zip(sweep.list, parts, strict=True)
    )


def _not_to_be_taken_away(key: str, known: Mapping[str, Leaf]) -> AmtError:
    """~key: where nothing in it has to be given, null leaves it to the repository."""
    inside = [leaf for name, leaf in known.items() if f"{name}.".startswith(f"{key}.")]
    new, drop = ([f"{key}=null"], []) if all(leaf.accepts(NoneType) for leaf in inside) else ([], [key])
    return AmtError(
        f"~{key} cannot be taken away" + (f": {key}=null leaves it to the repository" if new else ""),
        code=USAGE,
        new=new,
        drop=drop,
    )


def _choice(prefix: str, key: str, value: str) -> str:
    """An option of a group is a name, whatever it looks like; null takes the group's choice back."""
    if prefix.startswith("+") and key in shipped_groups():  # a habit, and wrong for what has a choice already
        prefix = ""
    return f"~{key}" if value == "null" else f"{prefix}{key}={quote(value)}"


def carries_secret(key: str, value: str = "") -> bool:
    """Whether an override's key, or one within its value, is that of a credential, or its value a URL with one."""
    inside = _ITEM_NAME.findall(value) if value.lstrip().startswith(("{", "[")) else []
    return any(map(looks_secret, (key, *inside))) or bool(_USERINFO.search(value))


def refuse_secret(key: str, value: str = "") -> None:
    """Raise AmtError where an override carries a credential; its value is never shown."""
    if carries_secret(key, value):
        raise AmtError(
            f"{key} looks like a secret, and settings are saved with the run",
            fix=["export it in the environment of the shell (e.g. WANDB_API_KEY) or use `wandb login`"],
            code=USAGE,
        )


def unknown_key(key: str, groups: Sequence[str]) -> AmtError:
    """The error for a key that is no setting, with the nearest name there is."""
    if key in groups:  # the content of one of its files, merged under its name
        return AmtError(f"{key} is no setting", fix=["begin the file with `# @package _global_`"], code=USAGE)
    known = [*leaves(Settings), *groups]
    last = key.rpartition(".")[2]
    by_last = [k for k in known if k.rpartition(".")[2] == last]
    close = by_last[0] if len(by_last) == 1 else nearest(key, known)
    if close is None and (tail := nearest(last, [k.rpartition(".")[2] for k in known], cutoff=0.75)):
        close = next(k for k in known if k.rpartition(".")[2] == tail)
    hints = [f"did you mean `{close}`?"] if close else ["`python -m amt_hydra --cfg job` shows every setting"]
    if not close:
        hints.append(f"a flag of train.py without a setting goes through `extra.flags.{last}=…`")
    return AmtError(f"{key} is no setting", fix=hints, code=USAGE)


def _no_override(word: str) -> AmtError:
    from amt_hydra.verbs import VERBS

    close = nearest(word, list(VERBS))
    hint = f"did you mean the verb `{close}`? It comes first" if close else "settings are given as key=value"
    return AmtError(f"{word!r} is neither an override nor a verb", fix=[hint, "python -m amt_hydra --help"], code=USAGE)


def _is_section(key: str, known: Mapping[str, Leaf]) -> bool:
    return any(k.startswith(f"{key}.") for k in known)


def _open(key: str, value: str, sweep: bool) -> str:
    if not _KEY.fullmatch(key):
        raise AmtError(f"{key!r} is no key: names in it have letters, digits, _ and -", code=USAGE)
    return f"++{key}={_open_value(key, value, sweep)}"


def _open_value(key: str, value: str, sweep: bool) -> str:
    """Environment values and reasons are text; of a flag or a config value that is for the repository to say."""
    if f"{key}." in OPEN_MAPS or key.startswith(_REPO_MAPS):
        return value
    if key.startswith(_VALUE_MAPS):
        several = elements(value) if sweep else ()
        return value if several == (value,) else ",".join(map(_flag_value, several or (value,)))
    return quote(value)


def _flag_value(value: str) -> str:
    """A scalar keeps its spelling (1e5, 007, a,b), whatever the flag reads in it; lists, maps, true and null do not."""
    override = _parse(value)
    if override is None:
        return quote(value)
    parsed = override.value()
    is_scalar = isinstance(parsed, str | int | float) and not isinstance(parsed, bool)
    return quote(value) if is_scalar and not _is_quoted(value) else value


def _parse(value: str) -> "Override | None":
    """What Hydra's grammar makes of one value; None where it makes nothing of it, or a sweep."""
    override = _grammar(value)
    return None if override is None or override.is_sweep_override() else override


def _grammar(value: str) -> "Override | None":
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        return OverridesParser.create().parse_override(f"key={value}")
    except HydraException:
        return None


def _is_quoted(value: str) -> bool:
    return len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" and _parse(value) is not None
