"""What a shell offers at the tab key. It waits for the answer, so nothing heavy is loaded; it shows no errors."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import typer

# The library's own lists need JAX; a test holds these equal to them.
STRUCTURES = ("free", "separable", "hamiltonian", "quadratic-invariant")
SYSTEMS = ("pendulum", "two-body", "non-separable", "rigid-body")
INTEGRATORS = (
    *("euler", "midpoint", "heun", "ralston", "rk3", "rk4", "dopri5"),
    *("implicit-euler", "implicit-midpoint", "trapezoidal", "radau-ia-3", "radau-iia-3", "radau-iia-5"),
    *("gauss-4", "gauss-6", "lobatto-iiic-4", "lobatto-iiia-iiib-4"),
    *("symplectic-euler", "symplectic-euler-q", "stormer-verlet", "ruth-3", "yoshida-4", "yoshida-6"),
)
ENGINES = ("laplace", "variational")


def _completion(names: Sequence[str]) -> Callable[[str], list[str]]:
    return lambda incomplete: _beginning(names, incomplete)


complete_structures = _completion(STRUCTURES)
complete_systems = _completion(SYSTEMS)
complete_integrators = _completion(("auto", *INTEGRATORS))
complete_engines = _completion(ENGINES)


def complete_column(context: typer.Context, incomplete: str) -> list[str]:
    """A column of the recording that was typed before."""
    return _beginning(_columns(context), incomplete)


def complete_columns(context: typer.Context, incomplete: str) -> list[str]:
    """One more column in a list between commas."""
    before, comma, last = incomplete.rpartition(",")
    taken = before.split(",")
    return [f"{before}{comma}{name}" for name in _beginning(_columns(context), last) if name not in taken]


def complete_fitted_run(context: typer.Context, incomplete: str) -> list[str]:
    """A run of the recording behind a run folder."""
    import numpy as np

    with suppress(Exception), np.load(_typed(context)[0] / "recording.npz", allow_pickle=False) as archive:
        return _beginning([str(name) for name in archive["fitted.run_names"]], incomplete)
    return []


def _typed(context: typer.Context) -> list[Path]:
    """The files and folders typed so far. Before an option that waits for its value, no argument has found its name."""
    given = context.params.get("data") or context.args
    return [Path(text) for text in given]


def _columns(context: typer.Context) -> list[str]:
    given = context.params
    if given.get("columns"):
        return [name.strip() for name in given["columns"].split(",")]
    with suppress(Exception):  # whatever is wrong with the file, `sgpd fit` will say it
        from sgpd.data.reading.peeking import peek_names

        return peek_names(_typed(context)[0], given.get("decimal") or ".")
    return []


def _beginning(names: Sequence[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
