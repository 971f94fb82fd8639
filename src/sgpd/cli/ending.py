"""How a command ends: every failure is one sentence and one hint, and has its exit code."""

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass

import typer

DONE, FAILED, BAD_INPUT, NUMERICAL, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130


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
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has what it wanted (`sgpd check RUN | head`), and the code stays what it is
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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
    """The exit code and the words for an exception."""
    from sgpd.outcome import BadInput, NumericalFailure

    match problem:
        case BadInput():
            place = (problem.file, problem.line, problem.column)
            return Ending(BAD_INPUT, problem.message, problem.hint, *place)
        case NumericalFailure():
            remedy = problem.outcome.remedy
            return Ending(NUMERICAL, str(problem).removesuffix(remedy).strip(), remedy)
        case typer.Abort():
            return Ending(BAD_INPUT, "the input ended too early", "give the file by its name")
        case ValueError():
            return Ending(BAD_INPUT, *_split(str(problem)))
        case OSError():
            what = problem.strerror or str(problem)
            file = None if problem.filename is None else str(problem.filename)
            message = f"{file}: {what}" if file else what
            return Ending(BAD_INPUT, message, "check the path, its permissions and the space on the disk", file)
    usage = getattr(problem, "format_message", None)
    if usage is not None:  # of typer's own parser
        return Ending(BAD_INPUT, *_usage(usage(), getattr(problem, "ctx", None)))
    with tempfile.NamedTemporaryFile("w", prefix="sgpd-", suffix=".txt", delete=False) as file:
        traceback.print_exception(problem, file=file)
    message = f"this is a bug in sgpd ({type(problem).__name__}); the details are in {file.name}"
    return Ending(BUG, message, "please report it with that file")


def _split(message: str) -> tuple[str, str]:
    """Plain errors of the library read "what is wrong; what to do", or "What is wrong. What to do"."""
    what, mark, remedy = message.rpartition("; ")
    if not mark:
        what, mark, remedy = message.partition(". ")
    if not mark:
        return message, "`sgpd --help` and `sgpd COMMAND --help` show what can be given"
    return what, remedy[:1].lower() + remedy[1:]


def _usage(message: str, context) -> tuple[str, str]:
    command = "sgpd" if context is None else context.command_path
    what, mark, meant = message.partition(" (Possible options: ")
    guess = f". Did you mean {meant.removesuffix(')')}?" if mark else ""
    return what + guess, f"`{command} --help` shows what can be given"
