"""The command line: one way in, one handler for every end."""

import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from amt_hydra import __version__
from amt_hydra.errors import BUG, INTERRUPTED, REFUSED, USAGE, AmtError
from amt_hydra.line import Line, parse, takes_paths
from amt_hydra.verbs import VERBS

if TYPE_CHECKING:
    from amt_hydra.preflight import Preflight

_BROKEN_PIPE = 141  # 128 + SIGPIPE: what a shell shows for a program whose reader went away


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code. Every refusal is one message, every bug of ours a log file."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a letter still shows the rest
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except AmtError as error:
        return _refuse(error, json="--json" in words)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains at its end
        return _BROKEN_PIPE
    except Exception as error:  # the one place where a bug of ours becomes a message
        return _bug(error, words)


def _run(words: list[str]) -> int:
    line = parse(words)
    if line.version:
        print(f"amt_hydra {__version__}")
        return 0
    if line.help:
        from amt_hydra.report.help import show_help

        show_help(line.verb if line.verb != "train" or "train" in words else None)
        return 0
    if line.hydra:
        return _hydra(line)
    if takes_paths(line.verb):
        return _with_paths(line)
    if line.verb == "conventions":
        from amt_hydra.conventions import show_conventions

        if line.words:
            raise AmtError(f"conventions takes no {line.words[0]!r}", code=USAGE)
        return show_conventions(json=line.json, markdown=line.markdown)
    return _plan_or_train(line)


def _with_paths(line: Line) -> int:
    from amt_hydra.looks import checkpoint, inspect

    if line.verb == "checkpoint":
        return checkpoint(line.words, json=line.json)
    return inspect(line.words, os.environ, json=line.json)


def _plan_or_train(line: Line) -> int:
    from amt_hydra.commands import Typed
    from amt_hydra.preflight import preflight
    from amt_hydra.report import console

    pre = preflight(Typed(line.verb, line.words), line.config_dir, os.environ, _cwd())
    unasked = line.verb == "train" and line.bare and pre.located.discovered
    if line.json and (line.verb == "plan" or pre.stopped or unasked):
        _print_plan_json(pre)
    elif line.verb == "plan" or unasked:
        console.show_plan(pre, console.console())
    if pre.stopped:
        if line.verb == "train" and not line.json and not unasked:
            console.show_refused(pre, console.console(stderr=True))
        return REFUSED
    if unasked:
        print(f"nothing was started: {pre.located.root} was merely found. Give one setting to train, e.g. exp_id=base")
        return 0
    return 0 if line.verb == "plan" else _train(line, pre)


def _train(line: Line, pre: "Preflight") -> int:
    from amt_hydra.report import console
    from amt_hydra.report.data import plain
    from amt_hydra.train import launch

    out = console.console(stderr=line.json)  # with --json, stdout ends with the outcome as one object
    console.show_start(pre, out)
    outcome, folder = launch(pre, os.environ)
    if line.json:
        import json

        print(json.dumps({**plain(outcome), "record": str(folder)}))
    console.show_outcome(outcome, folder, pre, out)
    return outcome.code


def _print_plan_json(pre: "Preflight") -> None:
    import json

    from amt_hydra.report.data import plain, preflight_data

    print(json.dumps(plain(preflight_data(pre)), indent=2))


def _hydra(line: Line) -> int:
    """Hand an option that only shows something to Hydra's own application."""
    import hydra

    from amt_hydra.compose import register
    from amt_hydra.conf_path import groups, search_dirs, shipped
    from amt_hydra.overrides import prepare

    dirs = search_dirs(line.config_dir, os.environ, _cwd())
    register(dirs)
    if any(option in ("--shell-completion", "-sc") for option in line.hydra):
        _drop_verb_from_completion()
        words = list(line.words)  # query=bash, install=bash: no settings
    else:
        words = prepare(line.words, groups(dirs))
    sys.argv = [sys.argv[0], *line.hydra, *words]

    @hydra.main(config_path=str(shipped()), config_name="config", version_base="1.3")
    def app(_: object) -> None:
        """Never called: every option that comes here only shows something."""

    app()
    return 0


def _drop_verb_from_completion() -> None:
    words = os.environ.get("COMP_LINE", "").split(" ")
    os.environ["COMP_LINE"] = " ".join(w for w in words if w not in VERBS)


def _cwd() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise AmtError("the folder you stand in is gone", fix=["cd to one that is there"], code=USAGE) from error


def _refuse(error: AmtError, json: bool) -> int:
    if json:
        import json as json_module

        print(json_module.dumps({"error": {"message": error.message, "fix": error.fix, "code": error.code}}))
    else:
        from amt_hydra.report.console import console, show_error

        show_error(error, console(stderr=True))
    return error.code


def _bug(error: Exception, words: list[str]) -> int:
    """Keep the traceback in a file: on the terminal it would only frighten."""
    with tempfile.NamedTemporaryFile("w", prefix="amt_hydra-bug-", suffix=".log", delete=False) as log:
        log.write(f"amt_hydra {__version__}, Python {sys.version}\n{words}\n\n")
        traceback.print_exception(error, file=log)
    print(f"bug in amt_hydra: {type(error).__name__}: {error}\nplease report it with {log.name}", file=sys.stderr)
    return BUG
