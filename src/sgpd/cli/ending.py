"""How a command ends: every failure is one sentence and one hint, and has its exit code."""

import errno
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import typer

DONE, FAILED, BAD_INPUT, NUMERICAL, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130
FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Ending:
    """What is told when a command does not end well."""

    code: int
    message: str
    hint: str = ""
    file: str | None = None
    line: int | None = None
    column: str | None = None

    def tell(self, as_json: bool):
        """To standard error, or as JSON to standard output."""
        if as_json:
            print(json.dumps({"error": asdict(self)}, ensure_ascii=False))
        else:
            hint = f"\n\nhint: {self.hint}" if self.hint else ""
            print(f"error: {self.message}{hint}", file=sys.stderr)


def exit_code_of(command: Callable[[], object]) -> int:
    """Run a command of typer's (not standalone) and tell how it ended."""
    try:
        code = command()
        code = code if isinstance(code, int) else DONE
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BaseException as problem:
        code = _code(problem)
    return _flushed(code)


def _flushed(code: int) -> int:
    """The code after the last words are out. A reader who has left (`sgpd check RUN | head`) does not change it."""
    try:
        sys.stdout.flush()
    except OSError as problem:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or _code(problem)
    return code


def _code(problem: BaseException) -> int:
    if isinstance(problem, BrokenPipeError) or isinstance(problem.__context__, BrokenPipeError):
        return DONE  # also where typer has turned it into an exit of its own
    if isinstance(problem, SystemExit):
        return problem.code if isinstance(problem.code, int) else FAILED
    ending = ending_of(problem)
    ending.tell(as_json="--json" in sys.argv)
    return ending.code


def ending_of(problem: BaseException) -> Ending:
    """The exit code and the words for an exception; notes on it (what was kept) end the hint."""
    ending = _plain_ending(problem)
    notes = getattr(problem, "__notes__", [])
    return replace(ending, hint=" ".join([f"{ending.hint.rstrip('.')}.", *notes])) if notes else ending


def _plain_ending(problem: BaseException) -> Ending:
    from sgpd.errors import BadInput, NumericalFailure

    match problem:
        case BadInput():
            hint = problem.hint[:1].lower() + problem.hint[1:]
            return Ending(BAD_INPUT, problem.message, hint, problem.file, problem.line, problem.column)
        case NumericalFailure():
            return Ending(NUMERICAL, problem.message, problem.hint)
        case typer.Abort():
            return Ending(BAD_INPUT, "the input ended too early", "give the file by its name")
        case ValueError():  # of a library below, about what it was given
            return Ending(BAD_INPUT, str(problem), "`sgpd --help` and `sgpd COMMAND --help` show what can be given")
        case OSError():
            return _of_the_system(problem)
    usage = getattr(problem, "format_message", None)
    if usage is not None:  # of typer's own parser
        return Ending(BAD_INPUT, *_usage(usage(), getattr(problem, "ctx", None)))
    return _bug(problem)


def _of_the_system(problem: OSError) -> Ending:
    file = None if problem.filename is None else str(problem.filename)
    if problem.errno not in FULL:
        what = problem.strerror or str(problem)
        return Ending(BAD_INPUT, f"{file}: {what}" if file else what, "check the path and its permissions", file)
    hint = "make room there" if file is None else "make room there; a file of that name that was there is unchanged"
    return Ending(BAD_INPUT, f"{file or 'standard output'}: there is no space left on the disk", hint, file)


def _bug(problem: BaseException) -> Ending:
    what = f"this is a bug in sgpd ({type(problem).__name__})"
    try:
        with tempfile.NamedTemporaryFile("w", prefix="sgpd-", suffix=".txt", delete=False) as file:
            traceback.print_exception(problem, file=file)
    except OSError:
        traceback.print_exception(problem)
        return Ending(BUG, f"{what}; the details could not be saved and stand above", "please report it with them")
    return Ending(BUG, f"{what}; the details are in {file.name}", "please report it with that file")


def _usage(message: str, context) -> tuple[str, str]:
    command = "sgpd" if context is None else context.command_path
    what, mark, meant = message.partition(" (Possible options: ")
    guess = f". Did you mean {meant.removesuffix(')')}?" if mark else ""
    return what + guess, f"`{command} --help` shows what can be given"
