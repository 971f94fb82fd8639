"""A polynomial beside a Gaussian process: what is simplest in a function, so that the process is left with the rest.

A stationary process can be nearly a parabola only if its lengthscales are very long, and then it expects its slope to
be far larger than its bend. With a polynomial of its own, whose coefficients are Gaussian too, a function that is one
needs nothing of the process.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import Scalar
from sgpd.gp.kernels import Kernel, Point


class Polynomial(NamedTuple):
    """a + b·y + y·Cy/2 with y = x - centre."""

    centre: Point
    constant: Scalar
    linear: Point
    quadratic: Float[Array, "k k"]  # symmetric

    def __call__(self, x: Point) -> Scalar:
        y = x - self.centre
        return self.constant + (self.linear + self.quadratic @ y / 2) @ y

    def gradient(self, x: Point) -> Point:
        """b + Cy."""
        return self.linear + self.quadratic @ (x - self.centre)


class Trend(eqx.Module):
    """Independent Gaussian coefficients of the polynomials of one degree, in units of a kernel's lengthscales.

    Degree 1: a constant and lines. Degree 2: lines and parabolas, for functions of which only the gradient matters.
    Where a lengthscale is so long that the process does not vary, the polynomial does not either.
    """

    centre: Float[Array, "*latents k"]
    log_variances: Float[Array, "*latents 2"]  # of the terms of lower and of higher degree
    degree: int = eqx.field(static=True)

    @property
    def size(self) -> int:
        """How many coefficients."""
        k = self.centre.shape[-1]
        return 1 + k if self.degree == 1 else k + k * (k + 1) // 2

    def spreads(self, kernel: Kernel) -> Float[Array, " b"]:
        """The standard deviations of the coefficients."""
        lower, higher = jnp.exp(self.log_variances / 2)
        lines = jnp.exp(-kernel.log_lengthscale)
        if self.degree == 1:
            return jnp.concatenate([lower[None], higher * lines])
        i, j = np.tril_indices(len(lines))
        return jnp.concatenate([lower * lines, higher * lines[i] * lines[j]])

    def polynomial(self, kernel: Kernel, whitened: Float[Array, " b"]) -> Polynomial:
        """The one whose coefficients are so many standard deviations from 0."""
        k, coefficients = len(self.centre), self.spreads(kernel) * whitened
        if self.degree == 1:
            return Polynomial(self.centre, coefficients[0], coefficients[1:], jnp.zeros((k, k)))
        lower = jnp.zeros((k, k)).at[np.tril_indices(k)].set(coefficients[k:])
        return Polynomial(self.centre, jnp.zeros(()), coefficients[:k], lower + lower.T)
