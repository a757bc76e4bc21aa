"""Hydra's own application, for the options that only show something: --cfg, --info, --hydra-help, completion."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from amt_hydra.compose import compose, explained, register
from amt_hydra.conf_path import groups, shipped
from amt_hydra.errors import USAGE
from amt_hydra.overrides import prepare

_NAME = "amt-hydra"  # the command that completion can be installed for


def show(options: Sequence[str], words: Sequence[str], dirs: list[Path]) -> int:
    """Have Hydra answer `options`; returns the exit code. Raises AmtError on a fault in words or configs."""
    import hydra

    if "--resolve" in options:
        compose(words, dirs)  # names the key and the file of what cannot be resolved
    register(dirs)
    completing = "--shell-completion" in options
    given = list(words) if completing else prepare(words, groups(dirs))  # query=bash, install=bash: no settings

    @hydra.main(config_path=str(shipped()), config_name="config", version_base="1.3")
    def app(_: object) -> None:
        """Never called: the command line was found to hold one of the options that only show something."""

    with explained(words, dirs), _process_as_hydra_wants_it([_NAME, *given, *options]):
        try:
            app()
        except SystemExit as end:
            return USAGE if end.code else 0
    return 0


@contextmanager
def _process_as_hydra_wants_it(argv: list[str]) -> Iterator[None]:
    """Hydra takes its arguments from the process, and raises errors instead of printing them only if told so."""
    before = sys.argv, dict(os.environ)
    sys.argv = argv
    os.environ["HYDRA_FULL_ERROR"] = "1"
    # Of a line to complete, the last word is all that matters; what stands before it need not be Hydra's to parse.
    os.environ["COMP_LINE"] = f"{_NAME} {os.environ.get('COMP_LINE', '').rpartition(' ')[2]}"
    try:
        yield
    finally:
        sys.argv, environ = before
        os.environ.clear()
        os.environ.update(environ)
