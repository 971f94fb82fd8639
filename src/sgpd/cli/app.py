"""The commands: read, call the library, write. Results go to standard output, talk to standard error."""

import sys
import tempfile
import traceback
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="sgpd",
    help="Learn a dynamical system from noisy recordings, and forecast it without breaking its physics.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root():
    """Learn a dynamical system from noisy recordings, and forecast it without breaking its physics."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to write the figure and the model.")] = Path("sgpd-demo"),
    seed: Annotated[int, typer.Option(help="Of the noise and of the fit.")] = 0,
):
    """Simulate a noisy pendulum, fit it, forecast four times past the recording, check it, draw it."""
    from sgpd.cli.demo import run_demo

    run_demo(out, seed)


@app.command()
def paper(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TASK]...", help="pendulum, two-body, non-separable, rigid-body, heun; default: all."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to write everything; what is finished there is kept.")] = Path(
        "sgpd-paper"
    ),
    method: Annotated[list[str] | None, typer.Option(help="sgpd, euler or hnn; may be repeated; default: all.")] = None,
    truth: Annotated[str, typer.Option(help="exact, or published: the authors' own drifting reference.")] = "exact",
    seeds: Annotated[int, typer.Option(help="How many seeds of noise and start: 0, 1, ...")] = 5,
    quick: Annotated[bool, typer.Option("--quick", help="Two seeds, shorter training: to see that all works.")] = False,
):
    """Reproduce the paper: every experiment, table and figure, into one folder.

    sgpd paper --out results

    sgpd paper pendulum heun --method sgpd --seeds 3 --out some
    """
    from sgpd.cli.paper import run_paper

    run_paper(out, tasks or [], method or [], truth, 2 if quick else seeds, quick)


@app.command()
def integrators():
    """List the integrators: order, implicit or not, symplectic or not."""
    from sgpd.cli.listings import list_integrators

    list_integrators()


@app.command()
def structures():
    """List the structures: what each promises, and what it keeps with which integrator."""
    from sgpd.cli.listings import list_structures

    list_structures()


@app.command()
def systems():
    """List the systems that can be simulated."""
    from sgpd.cli.listings import list_systems

    list_systems()


def main():
    """Run the command line: 0 done, 1 a check failed, 2 bad input, 3 numerical failure, 70 a bug, 130 interrupted."""
    try:
        status = app(standalone_mode=False)
    except KeyboardInterrupt:
        status = _say("Stopped.", 130)
    except BaseException as problem:
        status = _status(problem)
    sys.exit(status if isinstance(status, int) else 0)


def _status(problem: BaseException) -> int:
    from sgpd.outcome import NumericalFailure

    match problem:
        case SystemExit():
            return problem.code if isinstance(problem.code, int) else 1
        case typer.Exit():
            return problem.exit_code
        case typer.Abort():
            return _say("Stopped.", 130)
        case BrokenPipeError():
            return 0
        case NumericalFailure():
            return _say(f"error: {problem}", 3)
        case ValueError() | OSError():
            return _say(f"error: {problem}", 2)
    usage = getattr(problem, "format_message", None)
    if usage is not None:  # a usage error of typer's parser
        return _say(f"error: {usage()}\n\nhint: `sgpd --help` lists the commands and options.", 2)
    with tempfile.NamedTemporaryFile("w", prefix="sgpd-", suffix=".txt", delete=False) as file:
        traceback.print_exception(problem, file=file)
    return _say(f"error: this is a bug in sgpd ({type(problem).__name__}); the details are in {file.name}", 70)


def _say(message: str, code: int) -> int:
    print(message, file=sys.stderr)
    return code
