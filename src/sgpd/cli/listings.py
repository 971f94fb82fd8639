"""What there is to choose from, as tables."""

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
    from sgpd import structures

    table = Table(box=None)
    table.add_column("structure")
    table.add_column("promise")
    for name in structures.names():
        table.add_row(name, structures.get(name).promise)
    Console().print(table)


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
