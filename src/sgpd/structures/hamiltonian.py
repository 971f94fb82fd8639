"""One scalar energy H(p, q), separable or not."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from sgpd.arrays import Scalar, State
from sgpd.fields import Traits, halves
from sgpd.structures.contract import Latents, LatentSpec, Structure, half


class HamiltonianField(eqx.Module):
    """f = J⁻¹ ∇H = (-H_q, H_p), for one drawn H."""

    hamiltonian: Latents

    def energy(self, x: State) -> Scalar:
        """H(x)."""
        return self.hamiltonian.values(x)[0]

    def __call__(self, x: State) -> State:
        dp, dq = halves(self.hamiltonian.gradients(x)[0])
        return jnp.concatenate([-dq, dp])


@dataclass(frozen=True, eq=False)
class Hamiltonian(Structure):
    """p' = -∂H/∂q, q' = ∂H/∂p. Latent: H, on all coordinates."""

    name: ClassVar[str] = "hamiltonian"
    promise: ClassVar[str] = "p' = -∂H/∂q, q' = ∂H/∂p for one energy H(p, q), separable or not."
    words: ClassVar[str] = "a Hamiltonian H(p, q) with a Gaussian-process prior"
    integrators: ClassVar[tuple[str, str]] = ("implicit-midpoint", "gauss-4")
    roles: ClassVar[Literal["any", "pq"]] = "pq"

    def __post_init__(self):
        self.check_names("H")

    def groups(self, dimension: int) -> tuple[LatentSpec, ...]:
        """One scalar on the whole state."""
        half(dimension)
        return (self.spec("H", 1, np.eye(dimension), differentiated=True),)

    def assemble(self, *latents: Latents) -> HamiltonianField:
        """J⁻¹ ∇H."""
        return HamiltonianField(*latents)

    def traits(self, dimension: int) -> Traits:
        """Hamiltonian."""
        return Traits(hamiltonian=True)
