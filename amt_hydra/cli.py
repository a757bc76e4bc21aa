"""The command line: one way in, one handler for every end."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from amt_hydra import __version__
from amt_hydra.errors import BUG, INTERRUPTED, REFUSED, USAGE, AmtError, of_a_stream
from amt_hydra.line import Line, parse, takes_paths

if TYPE_CHECKING:
    from amt_hydra.preflight import Preflight

_BROKEN_PIPE = 141  # 128 + SIGPIPE: what a shell shows for a program whose reader went away


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code. Every refusal is one message, every bug of ours a log file."""
    words = list(sys.argv[1:] if argv is None else argv)
    _make_streams_safe()
    try:
        code = _guarded(words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _without_streams(_BROKEN_PIPE)
    except OSError as error:
        with contextlib.suppress(OSError):  # stderr may lead to the same disk
            _refuse(AmtError(f"the output cannot be written: {error.strerror}"), json=False)
            sys.stderr.flush()
        return _without_streams(REFUSED)


def _without_streams(code: int) -> int:
    """Give up what is still to be written, or the interpreter complains at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    return code


def _make_streams_safe() -> None:
    """A stream that was closed (>&-) swallows; a terminal that cannot show a letter still shows the rest."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 # open as long as the process is
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _guarded(words: list[str]) -> int:
    try:
        return _run(words)
    except AmtError as error:
        return _refuse(error, json="--json" in words)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:  # the one place where a bug of ours becomes a message
        if of_a_stream(error):
            raise
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
    if line.multirun or line.verb in ("status", "cancel", "retry"):
        from amt_hydra.sweep import command

        return command.run(line, dict(os.environ), _cwd())
    return _plan_or_train(line)


def _with_paths(line: Line) -> int:
    from amt_hydra.looks import checkpoint, inspect

    if not all(Path(word).is_absolute() for word in line.words):
        _cwd()  # must be there
    if line.verb == "checkpoint":
        return checkpoint(line.words, json=line.json)
    return inspect(line.words, os.environ, json=line.json, emit=line.emit)


def _plan_or_train(line: Line) -> int:
    from amt_hydra.commands import Typed
    from amt_hydra.preflight import preflight
    from amt_hydra.report import console

    typed = Typed(line.verb, line.words, line.config_dir)
    try:
        pre = preflight(typed, os.environ, _cwd())
    except AmtError as error:
        error.fix += typed.mended(error.new, error.drop)
        raise
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
        text = f"nothing was started: {pre.located.root} was merely found. Give one setting to train, e.g. exp_id=base"
        print(text, file=sys.stderr)  # stdout is the plan's: with --json one document
        return USAGE  # a job must not end well having trained nothing
    return 0 if line.verb == "plan" else _train(line, pre)


def _train(line: Line, pre: "Preflight") -> int:
    from amt_hydra.report import console
    from amt_hydra.report.data import plain
    from amt_hydra.train import launch

    out = console.console(stderr=line.json)
    console.show_start(pre, out)
    with _stdout_kept() if line.json else contextlib.nullcontext():
        outcome, folder = launch(pre, os.environ)
    try:
        if line.json:
            import json

            print(json.dumps({**plain(outcome), "record": str(folder)}))
        console.show_outcome(outcome, folder, pre, out)
        sys.stdout.flush()
    except OSError as error:
        if not of_a_stream(error):
            raise
        return _without_streams(outcome.code)  # nobody to tell; the training ended as it did
    return outcome.code


@contextlib.contextmanager
def _stdout_kept() -> Iterator[None]:
    """Let what train.py prints go to stderr: with --json, stdout is one document."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _print_plan_json(pre: "Preflight") -> None:
    import json

    from amt_hydra.report.data import preflight_data

    print(json.dumps(preflight_data(pre), indent=2))


def _hydra(line: Line) -> int:
    from amt_hydra.conf_path import search_dirs
    from amt_hydra.hydra_app import show

    return show(line.hydra, line.words, search_dirs(line.config_dir, os.environ, _cwd()))


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
    message = f"bug in amt_hydra: {type(error).__name__}: {error}"
    return _refuse(AmtError(message, fix=[f"please report it with {_log(error, words)}"], code=BUG), "--json" in words)


def _log(error: Exception, words: list[str]) -> str:
    import tempfile
    import traceback

    from amt_hydra.overrides import carries_secret
    from amt_hydra.record import redact, secrets_of

    pairs = [word.partition("=") for word in words]
    shown = [f"{key}=…" if carries_secret(key, value) else key + equals + value for key, equals, value in pairs]
    head = f"amt_hydra {__version__}, Python {sys.version}\n{shown}\n\n"
    text = redact(head + "".join(traceback.format_exception(error)), secrets_of(os.environ))
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="amt_hydra-bug-", suffix=".log", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as log:
            log.write(text)
    except OSError:  # no folder for temporary files, or a full one
        return f"this:\n{text}"
    return log.name
