"""Values and slopes of what a latent function is made of: bumps k(x, ξⱼ) and the terms of a trend, at many points.

    f(x) = Σⱼ vⱼ k(x, ξⱼ) + Σₗ cₗ tₗ(x)

Readings of f are linear in v and c; these are their coefficients. Only they change with a kernel's parameters, by which
they can be differentiated.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.gp.kernels import Kernel, radial
from sgpd.gp.trends import Trend

Reads = tuple[Literal["value", "slope"], ...]  # of a latent at a point: its value, its gradient, or one after the other


def readings(reads: Reads, k: int) -> int:
    """How many numbers that is, for a latent of k inputs."""
    return sum({"value": 1, "slope": k}[each] for each in reads)


def of_bumps(
    kernel: Kernel, inducing: Float[Array, "m k"], x: Float[Array, "n k"], reads: Reads
) -> Float[Array, "n q m"]:
    """k(x, ξⱼ) and its gradient by x."""
    units = kernel.lengthscale
    away = [(x[:, i, None] - inducing[None, :, i]) / units[i] for i in range(len(units))]
    squares = sum((each**2 for each in away), start=jnp.zeros(()))
    rows = []
    # With a = (x - ξⱼ) / l and s = |a|²:  σ² φ(s)  and  2 σ² φ'(s) aᵢ / lᵢ
    if "value" in reads:
        rows.append(radial(type(kernel), squares))
    if "slope" in reads:
        slope = 2 * kernel.slope(squares)
        rows += [slope * each / unit for each, unit in zip(away, units, strict=True)]
    return kernel.variance * jnp.stack(rows, axis=1)


def of_trend(trend: Trend, kernel: Kernel, x: Float[Array, "n k"], reads: Reads) -> Float[Array, "n q b"]:
    """yᵢ and yᵢyⱼ with y = x - centre, times the standard deviations of their coefficients; and their gradients."""
    y, k = x - trend.centre[None, :], x.shape[1]
    i, j = np.tril_indices(k)
    rows = []
    if "value" in reads:
        rows.append(jnp.concatenate([y, y[:, i] * y[:, j]], axis=1)[:, None, :])
    if "slope" in reads:
        # ∂yᵢyⱼ/∂yₗ = δᵢₗ yⱼ + δⱼₗ yᵢ
        eye = np.eye(k)
        bends = eye[:, i][None] * y[:, None, j] + eye[:, j][None] * y[:, None, i]
        rows.append(jnp.concatenate([jnp.broadcast_to(jnp.asarray(eye)[None], (len(x), k, k)), bends], axis=2))
    return jnp.concatenate(rows, axis=1) * trend.stds(kernel)[None, None, :]


def basis(
    kernel: Kernel, inducing: Float[Array, "m k"], trend: Trend | None, x: Float[Array, "n k"], reads: Reads
) -> Float[Array, "n q m_plus_b"]:
    """Of one latent: bumps, then the terms of its trend, which stand for standard normal coefficients."""
    bumps = of_bumps(kernel, inducing, x, reads)
    return bumps if trend is None else jnp.concatenate([bumps, of_trend(trend, kernel, x, reads)], axis=2)


def stacked_basis(
    kernel: Kernel,
    inducing: Float[Array, "count m k"],
    trend: Trend | None,
    x: Float[Array, "count n k"],
    reads: Reads,
) -> Float[Array, "count n q m_plus_b"]:
    """The same of several latents."""
    one = lambda kernel, inducing, trend, x: basis(kernel, inducing, trend, x, reads)
    return jax.vmap(one)(kernel, inducing, trend, x)
