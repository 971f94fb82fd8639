"""What a structure and an integrator preserve together. Neither can say it alone."""

from typing import Literal

import numpy as np

from sgpd.errors import BadInput
from sgpd.fields import Traits
from sgpd.integrators import Integrator, PartitionedRungeKutta, RungeKutta, SplitStep

Claim = Literal["volume", "symplectic form", "quadratic invariant"]


def preserved(traits: Traits, integrator: Integrator) -> frozenset[Claim]:
    """What every step keeps, to rounding, for every field with these traits.

    - Symplectic methods keep the symplectic form, and so volume, of Hamiltonian fields.
    - A split field that is no gradient (independent components, two or more degrees of freedom) keeps volume only:
      under kicks and drifts, which are shears; under symplectic Runge-Kutta methods of one or two stages, because its
      Jacobian is similar to minus itself (Bader, McLaren, Quispel, Webb 2016), and under symplectic pairs with at most
      one implicit stage in one half, as the Lobatto pair has; not under gauss-6, as one method or as a pair.
    - Symplectic Runge-Kutta methods keep quadratic invariants. Partitioned pairs do not, and no method here keeps the
      volume or the energy of a `lie-poisson` field.
    """
    claims: set[Claim] = set()
    if traits.hamiltonian and integrator.symplectic:
        claims |= {"volume", "symplectic form"}
    if traits.split and _keeps_split_volume(integrator):
        claims.add("volume")
    if traits.invariant is not None and isinstance(integrator, RungeKutta) and integrator.symplectic:
        claims.add("quadratic invariant")
    return frozenset(claims)


def _keeps_split_volume(integrator: Integrator) -> bool:
    match integrator:
        case SplitStep():
            return True
        case RungeKutta():
            return integrator.symplectic and integrator.tableau.stages <= 2
        case PartitionedRungeKutta():
            p, q = integrator.tableau.p.a, integrator.tableau.q.a
            return integrator.symplectic and min(_coupled_stages(p, q), _coupled_stages(q, p)) <= 1
    return False


def _coupled_stages(a: np.ndarray, other: np.ndarray) -> int:
    """How many stages of one half both enter the stages of the other half and depend on them."""
    return int((a.any(axis=0) & other.any(axis=1)).sum())


def require_compatible(traits: Traits, integrator: Integrator, structure: str):
    """Refuse a split method for a field that does not split."""
    if isinstance(integrator, SplitStep) and not traits.split:
        raise BadInput(
            f"{integrator.name} steps momenta and positions in turn, which needs the structure 'separable', not "
            f"{structure!r}",
            "use 'implicit-midpoint', 'gauss-4' or 'lobatto-iiia-iiib-4', or change the structure",
        )
