"""What inducing points leave open of the prior: the Nyström residual, where a recording goes."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.gp import Kernel, stacked_basis
from sgpd.inference.posterior.field import FieldPosterior, LatentGroup
from sgpd.inference.posterior.kernels import Kernels
from sgpd.xla.batches import in_rows

SPARSE = 1e-3  # share of the prior variance, from which more points may help


def unexplained(posterior: FieldPosterior, states: Float[np.ndarray, "n d"]) -> list[float]:
    """The largest share of the prior variance of each group that stays unexplained at these states."""
    specs, whitenings = posterior.structure.groups(posterior.dimension), Kernels.of(posterior).whitenings
    seen = [group.along_axes(spec.inputs(states)) for group, spec in zip(posterior.groups, specs, strict=True)]
    each = zip(posterior.groups, map(np.asarray, whitenings), seen, strict=True)
    return [float(nystroem_residual(*one).max()) for one in each]


def nystroem_residual(
    group: LatentGroup, whitenings: Float[np.ndarray, "count m m"], inputs: Float[np.ndarray, "count n k"]
) -> Float[np.ndarray, "n count"]:
    """(σ² - |L⁻¹ k(ξ, x)|²) / (σ² + the usual variance of the trend, all explained)."""
    across = in_rows(lambda x: _covariances(group.kernel, group.inducing, x), np.swapaxes(inputs, 0, 1))
    explained = (np.einsum("cij,ncj->nci", whitenings, across, optimize=True) ** 2).sum(axis=2)
    variance, of_trend = np.asarray(group.kernel.variance), 0.0
    if group.trend is not None:
        away = (inputs - np.asarray(group.trend.centre)[:, None]) / np.asarray(group.kernel.lengthscale)[:, None]
        squares, (slopes, bends) = (away**2).sum(axis=2), np.exp(np.asarray(group.trend.log_variances)).T
        of_trend = (slopes[:, None] * squares + bends[:, None] * squares**2).mean(axis=1)
    return (variance - explained) / (variance + of_trend)


@jax.jit
def _covariances(kernel: Kernel, inducing: Float[Array, "count m k"], x: Float[Array, "n count k"]):
    """k(x, ξ), (n, count, m)."""
    values = stacked_basis(kernel, inducing, None, jnp.swapaxes(x, 0, 1), ("value",))
    return jnp.swapaxes(values[:, :, 0], 0, 1)
