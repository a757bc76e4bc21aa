"""The command line taken apart: verb, overrides or paths, our own options, and those that go to Hydra."""

from collections.abc import Sequence
from dataclasses import dataclass

from amt_hydra.errors import USAGE, AmtError, nearest
from amt_hydra.verbs import PATH_VERBS, VERBS

_OWN = ("--json", "--help", "-h", "--version", "--markdown")
# Options of Hydra's that only show something. The value says whether a word follows.
_HYDRA = {
    "--cfg": True,
    "-c": True,
    "--package": True,
    "-p": True,
    "--info": False,
    "-i": False,
    "--resolve": False,
    "--hydra-help": False,
    "--shell-completion": False,
    "-sc": False,
}
_CONFIG_DIR = ("--config-dir", "-cd")
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
    bare: bool = False
    """Nothing was given at all, besides options."""


def parse(argv: Sequence[str]) -> Line:
    """Take the words after the program's name apart. Raises AmtError with code 64."""
    rest = list(argv)
    words: list[str] = []
    options: set[str] = set()
    hydra: list[str] = []
    config_dir: str | None = None
    verb: str | None = None
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += rest
            break
        name, equals, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            if verb is None and not words and word in VERBS:
                verb = word
            else:
                words.append(word)
        elif word in _OWN:
            options.add(word)
        elif name in _CONFIG_DIR:
            config_dir = value if equals else _next(rest, word)
        elif name in _HYDRA:
            hydra.append(word)
            if _HYDRA[name] and not equals:
                hydra.append(_next(rest, word))
        elif name in _MULTIRUN:
            raise AmtError("sweeps (-m) are not part of this version", fix=["give one value per setting"], code=USAGE)
        else:
            raise _unknown_option(word)
    verb = verb or "train"
    if "--markdown" in options and verb != "conventions":
        raise AmtError(f"--markdown is an option of conventions, not of {verb}", code=USAGE)
    return Line(
        verb=verb,
        words=tuple(words),
        json="--json" in options,
        help=bool(options & {"--help", "-h"}),
        version="--version" in options,
        markdown="--markdown" in options,
        hydra=tuple(hydra),
        config_dir=config_dir,
        bare=not words,
    )


def takes_paths(verb: str) -> bool:
    """Whether the words after a verb are paths, "=" in them included."""
    return verb in PATH_VERBS


def _next(rest: list[str], option: str) -> str:
    if not rest:
        raise AmtError(f"{option} needs a value", code=USAGE)
    return rest.pop(0)


def _unknown_option(word: str) -> AmtError:
    close = nearest(word, [*_OWN, *_HYDRA, *_CONFIG_DIR])
    hints = [f"did you mean {close}?"] if close else []
    flag = word.lstrip("-").partition("=")[0]
    hints.append(f"flags of train.py are given as settings, or as extra.flags.{flag.replace('-', '_')}=…")
    return AmtError(f"{word}: there is no such option", fix=hints, code=USAGE)
