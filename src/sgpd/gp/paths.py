"""Functions drawn from a sparse Gaussian process, by Matheron's rule: a draw of the prior plus a correction.

    f(x) = Σᵢ wᵢ φᵢ(x) + Σⱼ vⱼ k(x, ξⱼ)    with    v = k(ξ, ξ)⁻¹ (z - Φ w)

The first sum is a prior draw in random features; the second pulls it through the drawn inducing values z. A path is an
object to call: the same function however often it is called, differentiable in x and in every parameter.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from sgpd.arrays import Scalar
from sgpd.gp.inducing import JITTER, prior_root
from sgpd.gp.kernels import Kernel, Point
from sgpd.gp.trig import sincos


class Path(eqx.Module):
    """One scalar function. Stacked along a leading axis, several: call those under `jax.vmap`."""

    kernel: Kernel
    inducing: Float[Array, "m k"]
    frequencies: Float[Array, "s k"]  # for lengthscale 1
    cosine_weights: Float[Array, " s"]
    sine_weights: Float[Array, " s"]
    update: Float[Array, " m"]  # v

    def __call__(self, x: Point) -> Scalar:
        s, c = sincos(self._phases(x))
        prior = self.cosine_weights @ c + self.sine_weights @ s
        return prior + self.update @ self.kernel.row(x, self.inducing)

    def gradient(self, x: Point) -> Point:
        """∇f(x), from one sine and cosine of each feature."""
        s, c = sincos(self._phases(x))
        slopes = self.sine_weights * c - self.cosine_weights * s
        prior = jnp.stack([slopes @ column for column in self.frequencies.T]) / self.kernel.lengthscale
        return prior + self.kernel.gradient(x, self.inducing, self.update)

    # Sums over the few coordinates are written out, column by column: as matrix products they are loops of their own.

    def _phases(self, x: Point) -> Float[Array, " s"]:
        """ωᵢᵀ (x / l)."""
        scaled = x / self.kernel.lengthscale
        return sum((column * y for column, y in zip(self.frequencies.T, scaled, strict=True)), start=jnp.zeros(()))


def draw_path(
    kernel: Kernel,
    inducing: Float[Array, "m k"],
    whitened: Float[Array, " m"],
    frequencies: Float[Array, "s k"],
    weights: Float[Array, "2 s"],
    jitter: float = JITTER,
) -> Path:
    """The path with inducing values z = L u that belongs to standard normal feature weights."""
    amplitude = jnp.sqrt(kernel.variance / max(frequencies.shape[0], 1))
    prior = Path(kernel, inducing, frequencies, *(amplitude * weights), update=jnp.zeros(inducing.shape[0]))
    root = prior_root(kernel, inducing, jitter)
    # v = K⁻¹ (z - f(ξ)) = L⁻ᵀ (u - L⁻¹ f(ξ))
    pulled = whitened - solve_triangular(root, jax.vmap(prior)(inducing), lower=True)
    return eqx.tree_at(lambda path: path.update, prior, solve_triangular(root.T, pulled, lower=False))


def mean_path(
    kernel: Kernel, inducing: Float[Array, "m k"], whitened: Float[Array, " m"], jitter: float = JITTER
) -> Path:
    """The mean function for inducing values z = L u: no prior features, only the correction."""
    dimension = inducing.shape[1]
    return draw_path(kernel, inducing, whitened, jnp.zeros((0, dimension)), jnp.zeros((2, 0)), jitter)
