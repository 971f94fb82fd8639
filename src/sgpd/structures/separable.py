"""H(p, q) = T(p) + V(q): the forces depend on positions alone, the velocities on momenta alone."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import equinox as eqx
from jaxtyping import Array, Float

from sgpd.arrays import Scalar, State
from sgpd.errors import unknown_name
from sgpd.fields import SplitField, Traits, halves
from sgpd.structures.contract import Latents, LatentSpec, Structure, half, momenta, positions

Form = Literal["potential", "components"]
Half = Float[Array, " n"]


class Gradient(eqx.Module):
    """± the gradient of one scalar latent."""

    potential: Latents
    sign: float = eqx.field(static=True)

    def __call__(self, y: Half) -> Half:
        return self.sign * self.potential.gradients(y)[0]


class Components(eqx.Module):
    """± independent latents, one a component."""

    components: Latents
    sign: float = eqx.field(static=True)

    def __call__(self, y: Half) -> Half:
        return self.sign * self.components.values(y)


class SeparableEnergy(eqx.Module):
    """H(p, q) = T(p) + V(q)."""

    potential: Latents
    kinetic: Latents

    def __call__(self, x: State) -> Scalar:
        p, q = halves(x)
        return self.kinetic.values(p)[0] + self.potential.values(q)[0]


@dataclass(frozen=True, eq=False)
class Separable(Structure):
    """p' = -V'(q), q' = T'(p). Latents: V, seen by maps of q, and T, seen by maps of p.

    `potential`: V and T are scalar functions, so the field is Hamiltonian in any dimension. `components`: every
    component of V' and T' is a latent of its own, as in the paper; with two or more degrees of freedom such a field
    is no gradient, and volume is all that a split method can keep.
    """

    form: Form = "potential"

    name: ClassVar[str] = "separable"
    promise: ClassVar[str] = "H = T(p) + V(q); forces from positions alone, velocities from momenta alone."
    words: ClassVar[str] = "a separable Hamiltonian H = T(p) + V(q) with Gaussian-process priors on its parts"
    integrators: ClassVar[tuple[str, str]] = ("stormer-verlet", "yoshida-4")
    roles: ClassVar[Literal["any", "pq"]] = "pq"
    swaps_silently: ClassVar[bool] = True

    def __post_init__(self):
        if self.form not in get_args(Form):
            raise unknown_name("form of 'separable'", self.form, get_args(Form))
        self.check_names("V", "T")

    def groups(self, dimension: int) -> tuple[LatentSpec, ...]:
        """V on positions, T on momenta."""
        scalar = self.form == "potential"
        count = 1 if scalar else half(dimension)
        return (
            self.spec("V", count, positions(dimension), differentiated=scalar),
            self.spec("T", count, momenta(dimension), differentiated=scalar),
        )

    def assemble(self, *latents: Latents) -> SplitField:
        """(-V'(q), T'(p)), with the energy where there is one."""
        n = latents[0].depends_on.shape[2] // 2
        potential, kinetic = latents[0].on(slice(n, None)), latents[1].on(slice(n))
        if self.form == "components":
            return SplitField(Components(potential, -1.0), Components(kinetic, 1.0))
        energy = SeparableEnergy(potential, kinetic)
        return SplitField(Gradient(potential, -1.0), Gradient(kinetic, 1.0), energy)

    def traits(self, dimension: int) -> Traits:
        """Split; Hamiltonian unless the components are independent in two or more degrees of freedom."""
        return Traits(hamiltonian=self.form == "potential" or half(dimension) == 1, split=True)
