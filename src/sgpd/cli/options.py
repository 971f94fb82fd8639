"""Options that several commands share, and what the shell may complete."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

FILE, MODEL, RUN = "Your file", "The model", "The run"

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `sgpd fit --out` wrote.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Results as JSON on standard output; errors too.", rich_help_panel=RUN)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Results and errors only.", rich_help_panel=RUN)]


def _completion(names: Callable[[], list[str]]) -> Callable[[str], list[str]]:
    """Only when a shell asks are the names looked up."""
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


def _systems() -> list[str]:
    from sgpd import systems

    return systems.names()


def _structures() -> list[str]:
    from sgpd import structures

    return structures.names()


def _integrators() -> list[str]:
    from sgpd import integrators

    return ["auto", *integrators.names()]


complete_systems = _completion(_systems)
complete_structures = _completion(_structures)
complete_integrators = _completion(_integrators)
