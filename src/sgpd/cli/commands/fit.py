"""`sgpd fit`: its options."""

from pathlib import Path
from typing import Annotated

import typer

from sgpd.cli.completing import (
    complete_column,
    complete_columns,
    complete_engines,
    complete_integrators,
    complete_structures,
)
from sgpd.cli.options import FILE, MODEL, RUN, AsJson, Quiet


def fit(
    data: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="DATA",
            help="CSV, TSV, Parquet, Feather, NPZ or whitespace text; several files are several runs.",
            show_default=False,
        ),
    ] = None,
    # your file
    columns: Annotated[
        str | None, typer.Option(metavar="C,C,..", help="Names of all columns, in file order.", rich_help_panel=FILE)
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="C", help="The column of times.", autocompletion=complete_column, rich_help_panel=FILE),
    ] = None,
    momentum: Annotated[
        str | None,
        typer.Option(
            metavar="C,C", help="Momenta (or velocities).", autocompletion=complete_columns, rich_help_panel=FILE
        ),
    ] = None,
    position: Annotated[
        str | None,
        typer.Option(
            metavar="C,C", help="Positions, in the same order.", autocompletion=complete_columns, rich_help_panel=FILE
        ),
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="C,C",
            help="The state, where it is not (p, q).",
            autocompletion=complete_columns,
            rich_help_panel=FILE,
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="C", help="The column that tells runs apart.", autocompletion=complete_column, rich_help_panel=FILE
        ),
    ] = None,
    unit: Annotated[
        list[str] | None, typer.Option(metavar="C=U", help="A unit, as q=rad; may be repeated.", rich_help_panel=FILE)
    ] = None,
    decimal: Annotated[
        str | None, typer.Option(metavar=",", help="The decimal mark, if no point.", rich_help_panel=FILE)
    ] = None,
    # the model
    structure: Annotated[
        str | None,
        typer.Option(
            "--structure",
            "-s",
            metavar="S",
            help="What is known of the physics; `sgpd structures` lists.",
            rich_help_panel=MODEL,
            autocompletion=complete_structures,
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=V", help="Of the structure, as form=lie-poisson.", rich_help_panel=MODEL),
    ] = None,
    depends_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="V='q1 - q2'", help="What a latent depends on alone; may be repeated.", rich_help_panel=MODEL
        ),
    ] = None,
    integrator: Annotated[
        str | None,
        typer.Option(
            metavar="I",
            help="`sgpd integrators` lists; default: auto, one that keeps the structure.",
            rich_help_panel=MODEL,
            autocompletion=complete_integrators,
        ),
    ] = None,
    inference: Annotated[
        str | None,
        typer.Option(
            metavar="E",
            help="laplace (default) or variational.",
            autocompletion=complete_engines,
            rich_help_panel=MODEL,
        ),
    ] = None,
    inducing: Annotated[
        int | None,
        typer.Option(metavar="N", help="Inducing points of a latent; default: by dimension.", rich_help_panel=MODEL),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option(metavar="N", help="Rows to fit, in stretches spread evenly; default: all.", rich_help_panel=MODEL),
    ] = None,
    x0_known: Annotated[
        bool, typer.Option("--x0-known", help="The first row of each run is exact.", rich_help_panel=MODEL)
    ] = False,
    # the run folder
    out: Annotated[Path | None, typer.Option(metavar="RUN", help="The run folder.", rich_help_panel=RUN)] = None,
    holdout: Annotated[
        str | None,
        typer.Option(metavar="20%", help="Kept out of the fit, to judge the bands.", rich_help_panel=RUN),
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Default: 0.", rich_help_panel=RUN)] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted fit.", rich_help_panel=RUN)
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a run folder that is there.", rich_help_panel=RUN)
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read, guess, print; write nothing.", rich_help_panel=RUN)
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
):
    """Learn a system from recordings, into a run folder.

    sgpd fit mine.csv --dry-run

    sgpd fit mine.csv --structure separable --holdout 20% --out mine
    """
    from sgpd.cli.commands.fitting import Where, run_fit, tell_next
    from sgpd.cli.settings import given_settings
    from sgpd.cli.talk import Talk

    given = given_settings(
        columns=columns,
        time=time,
        momentum=momentum,
        position=position,
        state=state,
        run=run,
        units=unit,
        decimal=decimal,
        structure=structure,
        options=option,
        depends_on=depends_on,
        integrator=integrator,
        inference=inference,
        inducing=inducing,
        rows=rows,
        x0="known" if x0_known else None,
        holdout=holdout,
        seed=seed,
    )
    where = Where(out, resume=resume, force=force, dry_run=dry_run)
    talk = Talk(quiet, as_json)
    fitted = run_fit([str(path) for path in data or []], given, where, talk)
    if fitted is not None and out is not None:
        tell_next(fitted.assessment, out, talk)
