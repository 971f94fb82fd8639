"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

FILE, MODEL, RUN = "Your file", "The model", "The run folder"

RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `sgpd fit --out` wrote.")]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="MODULE:CLASS", help="A structure of your own that the model may import."),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Results as JSON on standard output; errors too.", rich_help_panel=RUN)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Results and errors only.", rich_help_panel=RUN)]
