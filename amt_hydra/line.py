"""The command line taken apart: verb, overrides or paths, our own options, and those that go to Hydra."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from amt_hydra.commands import render
from amt_hydra.errors import USAGE, AmtError, nearest
from amt_hydra.verbs import PATH_VERBS, VERBS

_OWN = ("--json", "--help", "--version", "--markdown", "--watch")
_SHORT = {"-c": "--cfg", "-p": "--package", "-i": "--info", "-sc": "--shell-completion", "-h": "--help"}
# Options of Hydra's that only show something, each with the values that may follow; "" for none, None for any.
_HYDRA: Mapping[str, tuple[str, ...] | None] = {
    "--cfg": ("job", "hydra", "all"),
    "--package": None,
    "--info": ("", "all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
    "--resolve": ("",),
    "--hydra-help": ("",),
    "--shell-completion": ("",),
}
_SHOWING = ("--cfg", "--info", "--hydra-help", "--shell-completion")
_VALUED: Mapping[str, str] = {"--config-dir": "config_dir", "-cd": "config_dir", "--emit": "emit"}
_MULTIRUN = ("--multirun", "-m")


@dataclass(frozen=True, slots=True)
class Line:
    """What was asked for."""

    verb: str
    words: tuple[str, ...]
    """Overrides, or paths for a verb that takes paths."""
    json: bool = False
    help: bool = False
    version: bool = False
    markdown: bool = False
    hydra: tuple[str, ...] = ()
    """Options that Hydra itself answers."""
    config_dir: str | None = None
    emit: str | None = None
    """The file that a mapping of the inspected repository goes to."""
    watch: bool = False
    multirun: bool = False
    """A sweep."""
    bare: bool = False
    """Nothing was given at all, besides options."""


def parse(argv: Sequence[str]) -> Line:
    """Take the words after the program's name apart. Raises AmtError with code 64."""
    rest = list(argv)
    words: list[str] = []
    options: set[str] = set()
    hydra: list[str] = []
    given: dict[str, str] = {}
    verb: str | None = None
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += rest
            break
        name, equals, value = word.partition("=")
        name = _SHORT.get(name, name)
        if not word.startswith("-") or word == "-":
            if verb is None and not words and word in VERBS:
                verb = word
            elif verb is not None and not words and word in VERBS and not takes_paths(verb):
                raise _second_verb(verb, word, rest)
            else:
                words.append(word)
        elif name in _OWN and not equals:
            options.add(name)
        elif name in _VALUED:
            given[_VALUED[name]] = value if equals else _next(rest, word)
        elif name in _HYDRA:
            hydra += _with_value(name, value if equals else None, rest)
        elif name in _MULTIRUN:
            options.add(_MULTIRUN[0])
        else:
            raise _no_option_but_a_path(verb, word) if verb and takes_paths(verb) else _unknown_option(word)
    verb = verb or "train"
    _check_combination(verb, options, hydra)
    if "emit" in given and verb != "inspect":
        raise AmtError(f"--emit is an option of inspect, not of {verb}", code=USAGE)
    return Line(
        verb=verb,
        words=tuple(words),
        json="--json" in options,
        help="--help" in options,
        version="--version" in options,
        markdown="--markdown" in options,
        hydra=tuple(hydra),
        config_dir=given.get("config_dir"),
        emit=given.get("emit"),
        watch="--watch" in options,
        multirun=_MULTIRUN[0] in options,
        bare=not words,
    )


def _check_combination(verb: str, options: set[str], hydra: list[str]) -> None:
    if "--markdown" in options and verb != "conventions":
        raise AmtError(f"--markdown is an option of conventions, not of {verb}", code=USAGE)
    if hydra and len(set(_SHOWING).intersection(hydra)) != 1:  # with none of them, Hydra would run, and write
        raise AmtError(f"{' '.join(hydra)}: give one of {', '.join(_SHOWING)}", code=USAGE)
    if "--watch" in options and (verb != "status" or "--json" in options):
        raise AmtError(f"--watch is an option of status, without --json; not of {verb}", code=USAGE)
    if _MULTIRUN[0] in options and (hydra or verb not in ("train", "plan")):
        raise AmtError(f"-m sweeps with train and plan, not with {hydra[0] if hydra else verb}", code=USAGE)
    if hydra and "--json" in options:
        raise AmtError(f"--json does not go with {hydra[0]}, which is answered by Hydra", code=USAGE)


def takes_paths(verb: str) -> bool:
    """Whether the words after a verb are paths, "=" in them included."""
    return verb in PATH_VERBS


def _with_value(name: str, value: str | None, rest: list[str]) -> list[str]:
    """An option of Hydra's with its value, which may be the next word."""
    valid = _HYDRA[name]
    if value is None and (valid is None or "" not in valid or (rest and rest[0] in valid)):
        value = _next(rest, name)
    if valid is not None and (value or "") not in valid:
        raise AmtError(f"{name} {value}: valid are {', '.join(v for v in valid if v) or 'no values'}", code=USAGE)
    return [name] if value is None else [name, value]


def _next(rest: list[str], option: str) -> str:
    if not rest:
        raise AmtError(f"{option} needs a value", code=USAGE)
    return rest.pop(0)


def _second_verb(verb: str, word: str, rest: list[str]) -> AmtError:
    others = [one for one in rest if one not in VERBS]
    ways = [render(name, others) for name in dict.fromkeys((verb, word))]
    return AmtError(f"{verb} {word}: one verb only", fix=ways, code=USAGE)


def _no_option_but_a_path(verb: str, word: str) -> AmtError:
    close = nearest(word, [*_OWN, *_VALUED], cutoff=0.75)
    hints = [f"did you mean {close}?"] if close else []
    hints.append(f"a path that begins with a dash: {render(verb, [f'./{word}'])}")
    return AmtError(f"{word}: there is no such option", fix=hints, code=USAGE)


def _unknown_option(word: str) -> AmtError:
    close = nearest(word.partition("=")[0], [*_OWN, *_HYDRA, *_VALUED], cutoff=0.75)
    hints = [f"did you mean {close}?"] if close else []
    flag = word.lstrip("-").partition("=")[0]
    hints.append(f"flags of train.py are given as settings, or as extra.flags.{flag.replace('-', '_')}=…")
    return AmtError(f"{word}: there is no such option", fix=hints, code=USAGE)
