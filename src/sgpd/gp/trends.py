"""A parabola beside a Gaussian process: what is simplest in a potential, so that the process is left with the rest.

A stationary process can be nearly a parabola only if its lengthscales are very long, and then it expects slopes that
are far larger than bends. With coefficients of their own, Gaussian too, a kinetic energy p²/2m or the bottom of a
potential well needs nothing of the process.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import Scalar
from sgpd.gp.kernels import Kernel, Point


class Parabola(NamedTuple):
    """b·y + y·Cy/2 with y = x - centre. A constant would change no gradient."""

    centre: Point
    slope: Point  # b
    bend: Float[Array, "k k"]  # C, symmetric

    def __call__(self, x: Point) -> Scalar:
        y = x - self.centre
        return (self.slope + self.bend @ y / 2) @ y

    def gradient(self, x: Point) -> Point:
        """b + Cy."""
        return self.slope + self.bend @ (x - self.centre)


class Trend(eqx.Module):
    """The prior of a parabola: independent Gaussian coefficients of yᵢ and yᵢyⱼ, in units of a kernel's lengthscales.

    With y in these units the covariance of two values is σ₁² y·y' + σ₂² (y·y')². Where a lengthscale is so long that
    the process does not vary, the parabola does not either. Nor do lengthscales shrink for the sake of a tiny rest: in
    units that do not shrink with them, evidences of two bodies were 7 nats higher, but in some fits the process of T
    had lengthscales of a twentieth of the motion, and no draw of it fitted the recording.
    """

    centre: Float[Array, "*latents k"]
    log_variances: Float[Array, "*latents 2"]  # of slopes, of bends

    @property
    def size(self) -> int:
        """How many coefficients."""
        k = self.centre.shape[-1]
        return k + k * (k + 1) // 2

    def stds(self, kernel: Kernel) -> Float[Array, " b"]:
        """The standard deviations of the coefficients."""
        (slopes, bends), unit = jnp.exp(self.log_variances / 2), jnp.exp(-kernel.log_lengthscale)
        i, j = np.tril_indices(len(unit))
        # Twice the variance off the diagonal: then the covariance is (y·y')², whatever the directions of the axes.
        return jnp.concatenate([slopes * unit, bends * np.where(i == j, 1.0, 2**0.5) * unit[i] * unit[j]])

    def variance(self, kernel: Kernel, x: Point) -> Scalar:
        """Of the value at x."""
        slopes, bends = jnp.exp(self.log_variances)
        square = jnp.sum(((x - self.centre) / kernel.lengthscale) ** 2)
        return slopes * square + bends * square**2

    def parabola(self, kernel: Kernel, whitened: Float[Array, " b"]) -> Parabola:
        """The one whose coefficients are so many standard deviations from 0."""
        k, coefficients = len(self.centre), self.stds(kernel) * whitened
        lower = jnp.zeros((k, k)).at[np.tril_indices(k)].set(coefficients[k:])
        return Parabola(self.centre, coefficients[:k], lower + lower.T)
