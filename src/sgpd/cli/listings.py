"""What there is to choose from, as tables."""

from textwrap import wrap
from typing import get_args, get_type_hints

from rich.console import Console
from rich.table import Table


def list_integrators():
    """Every method of the catalogue, with properties computed from its coefficients."""
    from sgpd import integrators

    table = Table(box=None)
    for heading in ("integrator", "order", "kind", "symplectic", "fields"):
        table.add_column(heading)
    for name in integrators.names():
        method = integrators.get(name)
        accepts = {integrators.SplitStep: "split", integrators.PartitionedRungeKutta: "(p, q)"}.get(type(method), "any")
        kind = "implicit" if method.implicit else "explicit"
        table.add_row(name, str(method.order), kind, "yes" if method.symplectic else "no", accepts)
    Console().print(table)


def list_structures():
    """Every structure, and the table of what it keeps under which method."""
    from sgpd import checks, structures

    table = Table(box=None)
    table.add_column("structure")
    table.add_column("promise")
    for name in structures.names():
        table.add_row(name, structures.get(name).promise)
    legend = ", ".join(f"{claim[0].upper()} {claim}" for claim in get_args(checks.Claim))
    console = Console(highlight=False)
    console.print(table)
    console.print("\nWhat structure and integrator keep together (d: coordinates of the state):\n")
    console.print(_keeps_table())
    console.print(f"\n{legend}; - nothing; x refused")


def _keeps_table() -> Table:
    """Structures by methods; methods that agree in every row share a column, those that keep nothing the last one."""
    from sgpd import integrators

    methods = [integrators.get(name) for name in integrators.names()]
    rows = _keeps_rows(methods)
    columns: dict[tuple[str, ...], list] = {}
    for method, cells in zip(methods, zip(*(cells for _, cells in rows), strict=True), strict=True):
        columns.setdefault(cells, []).append(method)
    ordered = sorted(columns, key=lambda cells: set(cells) <= {"-", "x"})

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("structure", "form", *(_family(columns[cells], cells) for cells in ordered)):
        table.add_column(heading, vertical="bottom", no_wrap=True)
    for index, (label, _) in enumerate(rows):
        table.add_row(*label, *(cells[index] for cells in ordered))
    return table


def _keeps_rows(methods: list) -> list[tuple[tuple[str, str], tuple[str, ...]]]:
    """((structure, form), a cell for each method); one row a dimension where the dimension matters."""
    from sgpd import structures

    rows = []
    for name in structures.names():
        for form in get_args(get_type_hints(type(structures.get(name))).get("form")) or ("",):
            structure = structures.get(name, **({"form": form} if form else {}))
            found: dict[tuple[str, ...], int] = {}
            for dimension in (2, 3, 4):
                if _accepts(structure, dimension):
                    found.setdefault(tuple(_keeps(structure, dimension, method) for method in methods), dimension)
            for cells, dimension in found.items():
                sign = "≥" if dimension == max(found.values()) else "="
                rows.append(((name, f"{form}, d{sign}{dimension}" if len(found) > 1 else form), cells))
    return rows


def _accepts(structure, dimension: int) -> bool:
    try:
        return bool(structure.groups(dimension))
    except ValueError:
        return False


def _keeps(structure, dimension: int, method) -> str:
    """The initials of what is kept."""
    from sgpd import checks

    traits = structure.traits(dimension)
    try:
        checks.require_compatible(traits, method, structure.name)
    except ValueError:
        return "x"
    kept = checks.preserved(traits, method)
    return " ".join(claim[0].upper() for claim in get_args(checks.Claim) if claim in kept) or "-"


def _family(methods: list, cells: tuple[str, ...]) -> str:
    """The heading of methods that share a column."""
    from sgpd import integrators

    if set(cells) <= {"-", "x"}:
        return "all\nothers"
    if all(isinstance(method, integrators.SplitStep) for method in methods):
        return "split\nmethods"
    return "\n".join(wrap(", ".join(method.name for method in methods), 9, break_long_words=False))


def list_systems():
    """Every system, with the paper's settings."""
    from sgpd import systems

    table = Table(box=None)
    for heading in ("system", "state", "structure", "step", "recorded", "noise variance"):
        table.add_column(heading)
    for name in systems.names():
        system = systems.get(name)
        noise = ", ".join(f"{v:g}" for v in dict.fromkeys(system.noise_variance))
        table.add_row(
            name, " ".join(system.names), system.structure, f"{system.step:g}", f"{system.duration:g} s", noise
        )
    Console().print(table)
