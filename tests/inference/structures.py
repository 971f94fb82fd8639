"""Structures that are not linear in their latents, with a part that is known."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from sgpd.fields import Traits
from sgpd.structures import Latents, Structure

P, Q = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])


class DampedField(eqx.Module):
    potential: Latents
    friction: Latents

    def __call__(self, x):
        force = -self.potential.gradients(x)[0, 1]
        return jnp.stack([force - jnp.exp(self.friction.values(x)[0]) * x[0], x[0]])


class ProductField(eqx.Module):
    one: Latents
    other: Latents

    def __call__(self, x):
        return jnp.stack([-x[1] - self.one.values(x)[0] * self.other.values(x)[0], x[0]])


@dataclass(frozen=True, eq=False)
class Damped(Structure):
    """p' = -V'(q) - exp(D(q)) p, q' = p."""

    name: ClassVar[str] = "damped"
    promise: ClassVar[str] = "The second equation is known; friction has one sign."

    def groups(self, dimension):
        return (
            self.spec("V", 1, Q, differentiated=True),
            self.spec("D", 1, Q, differentiated=False, std=1.5),
        )

    def assemble(self, *latents):
        return DampedField(*latents)

    def traits(self, dimension):
        return Traits()


@dataclass(frozen=True, eq=False)
class Product(Structure):
    """p' = -q - A(q) B(p), q' = p: where both latents are 0, neither has any effect."""

    name: ClassVar[str] = "product"
    promise: ClassVar[str] = "Friction is a function of q times one of p."

    def groups(self, dimension):
        return (
            self.spec("A", 1, Q, differentiated=False, std=1.0),
            self.spec("B", 1, P, differentiated=False, std=1.0),
        )

    def assemble(self, *latents):
        return ProductField(*latents)

    def traits(self, dimension):
        return Traits()
