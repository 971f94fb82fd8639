"""What inducing points leave open of the prior: the Nyström residual, where a recording goes."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import on_device
from sgpd.inference.posterior.field import FieldPosterior
from sgpd.xla.batches import in_rows

SPARSE = 1e-3  # share of the prior variance, from which more points may help


def unexplained(posterior: FieldPosterior, states: Float[np.ndarray, "n d"]) -> list[float]:
    """The largest share of the prior variance of each group that stays unexplained at these states."""
    specs = posterior.structure.groups(posterior.dimension)
    pairs = zip(posterior.groups, specs, strict=True)
    seen = [(group, np.swapaxes(group.along_axes(spec.inputs(states)), 0, 1)) for group, spec in pairs]
    return [float(in_rows(lambda x, group=group: nystroem_residual(group, on_device(x)), x).max()) for group, x in seen]


@jax.jit
def nystroem_residual(group, inputs: Float[Array, "n count k"]) -> Float[Array, "n count"]:
    """(σ² - k(x, ξ) k(ξ, ξ)⁻¹ k(ξ, x)) / (σ² + the usual variance of the trend, all explained)."""

    def one(kernel, inducing, trend, x):
        nugget = group.jitter * kernel.variance * jnp.eye(inducing.shape[0])
        across = kernel.matrix(inducing, x)
        solved = jnp.linalg.solve(kernel.matrix(inducing, inducing) + nugget, across)
        of_trend = 0.0 if trend is None else jax.vmap(lambda at: trend.variance(kernel, at))(x).mean()
        return (kernel.variance - (across * solved).sum(axis=0)) / (kernel.variance + of_trend)

    return jax.vmap(one, in_axes=(0, 0, 0, 1), out_axes=1)(group.kernel, group.inducing, group.trend, inputs)
