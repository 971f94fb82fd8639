"""The commands and their options. Results go to standard output, talk to standard error; the work is elsewhere."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from sgpd.cli.commands.fit import fit
from sgpd.cli.completing import complete_fitted_run, complete_systems
from sgpd.cli.ending import exit_code_of
from sgpd.cli.options import Allow, AsJson, Quiet, RunPath

app = typer.Typer(
    name="sgpd",
    help="Learn a dynamical system from noisy recordings, and forecast it without breaking its physics.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root():
    """Learn a dynamical system from noisy recordings, and forecast it without breaking its physics.

    sgpd demo

    sgpd fit mine.csv --structure separable --out mine
    """


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to write the recording, the run, the report.")] = Path("sgpd-demo"),
    seed: Annotated[int, typer.Option(help="Of the noise and of the fit.")] = 0,
):
    """Simulate a noisy pendulum, fit it, forecast four times past the recording, check it, write a report."""
    from sgpd.cli.commands.demo import run_demo

    run_demo(out, seed)


@app.command()
def simulate(
    system: Annotated[
        str,
        typer.Argument(metavar="SYSTEM", help="`sgpd systems` lists them.", autocompletion=complete_systems),
    ],
    out: Annotated[Path, typer.Option(help="The file: .csv, .tsv, .parquet or .npz.")],
    seed: Annotated[int, typer.Option(help="Of the noise.")] = 0,
    noise_var: Annotated[float | None, typer.Option(help="Variance of the noise, in every coordinate.")] = None,
    step: Annotated[float | None, typer.Option(help="Time between two rows.")] = None,
    duration: Annotated[float | None, typer.Option(help="Time from the first row to the end.")] = None,
    truth: Annotated[
        Path | None, typer.Option(help="Also the exact solution, on to the horizon of a forecast.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
):
    """Record a system that is known, with noise; the settings are the paper's unless given.

    sgpd simulate pendulum --out pendulum.csv

    sgpd simulate two-body --seed 1 --noise-var 0.001 --out orbit.csv --truth exact.csv
    """
    from sgpd.cli.commands.simulating import Ask, run_simulate
    from sgpd.cli.talk import Talk

    run_simulate(Ask(system, seed, noise_var, step, duration), out, truth, Talk(quiet, as_json))


app.command()(fit)


@app.command()
def predict(
    folder: RunPath,
    duration: Annotated[float, typer.Option(help="How long to forecast.")],
    out: Annotated[Path, typer.Option(help="The file: .csv, .tsv, .parquet or .npz.")],
    x0: Annotated[str | None, typer.Option(metavar="P=..,Q=..", help="Start; default: the last fitted state.")] = None,
    from_run: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Go on from the end of this run; default: the last.",
            autocompletion=complete_fitted_run,
        ),
    ] = None,
    start: Annotated[
        str, typer.Option(metavar="end|first", help="Of the run: go on from its end, or start at its first row.")
    ] = "end",
    step: Annotated[float | None, typer.Option(help="The longest step; default: as fitted.")] = None,
    adaptive: Annotated[bool, typer.Option("--adaptive", help="Steps by error control, not as fitted.")] = False,
    paths: Annotated[int, typer.Option(help="How many fields are drawn.")] = 64,
    level: Annotated[str, typer.Option(metavar="50,95", help="Bands, in percent.")] = "95",
    seed: Annotated[int, typer.Option(help="Of the draws.")] = 0,
    paths_out: Annotated[Path | None, typer.Option(help="Also every path, in the shape of a recording.")] = None,
    allow: Allow = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
):
    """Forecast from a run folder, with bands.

    sgpd predict air --duration 60 --out forecast.csv

    sgpd predict air --duration 60 --x0 v=0,x=80 --level 50,95 --out forecast.parquet
    """
    from sgpd.cli.commands.predicting import Ask, Targets, run_predict
    from sgpd.cli.talk import Talk

    ask = Ask(duration, x0, from_run, start, step, adaptive, paths, level, seed, tuple(allow or ()))
    run_predict(folder, ask, Targets(out, paths_out), Talk(quiet, as_json))


@app.command()
def check(
    folder: RunPath,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 for ATTENTION too.")] = False,
    allow: Allow = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
):
    """Measure every claim of a fit; exit code 1 where one does not hold.

    sgpd check air

    sgpd check air --strict --json
    """
    from sgpd.cli.commands.checking import run_check
    from sgpd.cli.talk import Talk

    raise typer.Exit(run_check(folder, strict, Talk(quiet, as_json), allow or ()))


@app.command()
def report(folder: RunPath, allow: Allow = None, as_json: AsJson = False, quiet: Quiet = False):
    """Write RUN/report.html: one page that opens anywhere, offline.

    sgpd report air

    sgpd report sgpd-demo/run
    """
    from sgpd.cli.commands.reporting import run_report
    from sgpd.cli.talk import Talk

    run_report(folder, Talk(quiet, as_json), allow=allow or ())


@app.command()
def paper(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TASK]...", help="pendulum, two-body, non-separable, rigid-body, heun; default: all."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where to write everything; what is finished there is kept.")] = Path(
        "sgpd-paper"
    ),
    method: Annotated[
        list[str] | None, typer.Option(help="sgpd, default, euler, hnn; may be repeated; else all.")
    ] = None,
    truth: Annotated[str, typer.Option(help="exact, or published: the authors' own drifting reference.")] = "exact",
    settings: Annotated[
        str, typer.Option(help="program: as the authors' program has them, or printed: as the paper prints them.")
    ] = "program",
    jitter: Annotated[str, typer.Option(help="ours, or program: for the record; no single one serves all.")] = "ours",
    recordings: Annotated[int, typer.Option(help="How many draws of the noise: 0, 1, ...")] = 5,
    trainings: Annotated[int, typer.Option(help="How many trainings on each recording: 0, 1, ...")] = 2,
    seeds: Annotated[int | None, typer.Option(hidden=True)] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="2 recordings, 1 short training on each: to see that all works.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Experiments at a time, about 1 GB each; default: one a core, at most 4.")
    ] = None,
):
    """Reproduce the paper: every experiment, table and figure, into one folder.

    sgpd paper --out results

    sgpd paper pendulum heun --method sgpd --recordings 3 --out some
    """
    from sgpd.cli.commands.paper import run_paper
    from sgpd.paper.reproduce import Ask
    from sgpd.paper.settings import Reading

    if seeds is not None:
        typer.echo("note: --seeds is now --recordings (and --trainings); it will go.", err=True)
        recordings, trainings = seeds, 1
    ask = Ask(
        tasks=tasks or [],
        methods=method or [],
        truth=truth,
        reading=Reading(settings, jitter),
        recordings=2 if quick else recordings,
        trainings=1 if quick else trainings,
        quick=quick,
    )
    run_paper(out, ask, min(os.cpu_count() or 1, 4) if jobs is None else jobs)


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
    sys.exit(exit_code_of(lambda: app(prog_name="sgpd", standalone_mode=False)))
