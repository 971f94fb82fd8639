"""Functions drawn from a sparse Gaussian process, by Matheron's rule: a draw of the prior plus a correction.

    f(x) = Σᵢ wᵢ φᵢ(x) + Σⱼ vⱼ k(x, ξⱼ)    with    v = k(ξ, ξ)⁻¹ (z - Φ w)

The first sum is a prior draw in random features; the second pulls it through the drawn inducing values z. A parabola
may be added (`trends.py`). A path is an object to call: the same function however often it is called, differentiable in
x and in every parameter.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, Float

from sgpd.arrays import KEPT, Scalar
from sgpd.gp.inducing import whitening
from sgpd.gp.kernels import Kernel, Point
from sgpd.gp.trends import Parabola
from sgpd.xla.sincos import sincos
from sgpd.xla.sums import Terms, below_diagonal, derivatives


class Path(eqx.Module):
    """One scalar function. Stacked along a leading axis, several: call those under `jax.vmap`."""

    kernel: Kernel
    inducing: Float[Array, "m k"] = eqx.field(converter=jnp.asarray)
    frequencies: Float[Array, "s k"] = eqx.field(converter=jnp.asarray)  # for lengthscale 1
    cosine_weights: Float[Array, " s"]  # for variance 1
    sine_weights: Float[Array, " s"]
    update: Float[Array, " m"]  # v
    trend: Parabola | None = None

    def __call__(self, x: Point) -> Scalar:
        (waves, bumps), x = self._parts(), 1.0 * x  # a rule under jit and vmap refuses NumPy arrays
        prior = jnp.sqrt(self.kernel.variance) * _height(waves, x / self.kernel.lengthscale)
        process = prior + _pull(bumps, x)
        return process if self.trend is None else process + self.trend(x)

    def gradient(self, x: Point) -> Point:
        """∇f(x)."""
        (waves, bumps), x = self._parts(), 1.0 * x
        units = self.kernel.lengthscale
        prior = jnp.sqrt(self.kernel.variance) / units * _slope(waves, x / units)
        process = prior + _pull_slope(bumps, x)
        return process if self.trend is None else process + self.trend.gradient(x)

    def _parts(self) -> "tuple[_Waves, _Bumps]":
        waves = _Waves(self.frequencies, self.cosine_weights, self.sine_weights)
        return waves, _Bumps(self.kernel, self.inducing, self.update)


# Derivatives by x are written out: they come from the sines, cosines and exponentials of the value itself, where
# automatic differentiation would go through all features again for every direction. Waves are functions of x / l, so
# that what moves x and what moves l share a derivative.


class _Waves(NamedTuple):
    """The draw of the prior, for lengthscale 1 and variance 1: it depends on no parameter."""

    frequencies: Float[Array, "s k"]
    cosine_weights: Float[Array, " s"]
    sine_weights: Float[Array, " s"]


class _Bumps(NamedTuple):
    """The correction."""

    kernel: Kernel
    inducing: Float[Array, "m k"]
    update: Float[Array, " m"]


def _wave_derivatives(waves: _Waves, y: Point, orders: tuple[int, ...]) -> tuple[Array, ...]:
    columns = list(waves.frequencies.T)
    s, c = sincos(sum((column * part for column, part in zip(columns, y, strict=True)), start=jnp.zeros(())))
    heights = waves.cosine_weights * c + waves.sine_weights * s
    slopes = waves.sine_weights * c - waves.cosine_weights * s

    def terms(order: int) -> Terms:
        match order:
            case 0:
                return [heights]
            case 1:
                return [slopes * column for column in columns]
        return [-heights * columns[i] * columns[j] for i, j in below_diagonal(len(columns))]

    return derivatives(terms, orders, y.shape[0])


def _bump_derivatives(bumps: _Bumps, x: Point, orders: tuple[int, ...]) -> tuple[Array, ...]:
    return bumps.kernel.sums(x, bumps.inducing, bumps.update, orders)


def _by_rule(derivatives: Callable[[Any, Point, tuple[int, ...]], tuple[Array, ...]], order: int):
    """The derivative of that order by x. Its own derivative by x comes from the same pass, others are automatic."""
    only = lambda part, x: derivatives(part, x, (order,))[0]
    by_rule = eqx.filter_custom_jvp(only)

    @by_rule.def_jvp
    def rule(primals, tangents):  # a tangent is None where nothing moves
        (part, x), (part_moves, x_moves) = primals, tangents
        value, slope = (only(part, x), None) if x_moves is None else derivatives(part, x, (order, order + 1))
        value, slope = checkpoint_name((value, slope), KEPT)
        change = jnp.zeros_like(value) if slope is None else slope @ x_moves
        if jax.tree.leaves(part_moves):
            change += eqx.filter_jvp(only, (part, x), (part_moves, None))[1]
        return value, change

    return by_rule


_height, _slope = _by_rule(_wave_derivatives, 0), _by_rule(_wave_derivatives, 1)
_pull, _pull_slope = _by_rule(_bump_derivatives, 0), _by_rule(_bump_derivatives, 1)


def draw_path(
    kernel: Kernel,
    inducing: Float[Array, "m k"],
    whitened: Float[Array, " m"],
    frequencies: Float[Array, "s k"],
    weights: Float[Array, "2 s"],
    whiten: Float[Array, "m m"] | None = None,
) -> Path:
    """The path with inducing values z = L u that belongs to standard normal feature weights; L⁻¹ may be given."""
    waves = _Waves(frequencies, *(weights / max(frequencies.shape[0], 1) ** 0.5))
    prior = jnp.sqrt(kernel.variance) * jax.vmap(lambda x: _height(waves, x / kernel.lengthscale))(inducing)
    whiten = whitening(kernel, inducing) if whiten is None else whiten
    # v = K⁻¹ (z - f(ξ)) = L⁻ᵀ (u - L⁻¹ f(ξ))
    update = whiten.T @ (whitened - whiten @ prior)
    return Path(kernel, inducing, *waves, update)


def mean_path(
    kernel: Kernel,
    inducing: Float[Array, "m k"],
    whitened: Float[Array, " m"],
    whiten: Float[Array, "m m"] | None = None,
) -> Path:
    """The mean function for inducing values z = L u: no prior features, only the correction."""
    whiten = whitening(kernel, inducing) if whiten is None else whiten
    return bump_path(kernel, inducing, whiten.T @ whitened)


def bump_path(kernel: Kernel, inducing: Float[Array, "m k"], heights: Float[Array, " m"]) -> Path:
    """Σⱼ vⱼ k(x, ξⱼ)."""
    none = jnp.zeros(0)
    return Path(kernel, inducing, jnp.zeros((0, inducing.shape[1])), none, none, heights)
