"""Functions drawn from a sparse Gaussian process, by Matheron's rule: a draw of the prior plus a correction.

    f(x) = Σᵢ wᵢ φᵢ(x) + Σⱼ vⱼ k(x, ξⱼ)    with    v = k(ξ, ξ)⁻¹ (z - Φ w)

The first sum is a prior draw in random features; the second pulls it through the drawn inducing values z. A path is an
object to call: the same function however often it is called, differentiable in x and in every parameter.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgpd.arrays import Scalar
from sgpd.gp.inducing import whitening
from sgpd.gp.kernels import Kernel, Point, symmetric
from sgpd.gp.trig import sincos


class Path(eqx.Module):
    """One scalar function. Stacked along a leading axis, several: call those under `jax.vmap`."""

    kernel: Kernel
    inducing: Float[Array, "m k"] = eqx.field(converter=jnp.asarray)
    frequencies: Float[Array, "s k"] = eqx.field(converter=jnp.asarray)  # for lengthscale 1
    cosine_weights: Float[Array, " s"]
    sine_weights: Float[Array, " s"]
    update: Float[Array, " m"]  # v

    def __call__(self, x: Point) -> Scalar:
        (waves, bumps), x = self._parts(), 1.0 * x  # a rule under jit and vmap refuses NumPy arrays
        return _height_by_rule(waves, x / self.kernel.lengthscale) + _pull_by_rule(bumps, x)

    def gradient(self, x: Point) -> Point:
        """∇f(x)."""
        (waves, bumps), x = self._parts(), 1.0 * x
        written_out = x.shape[0] <= WRITTEN_OUT
        slope, pull_slope = (_slope_by_rule, _pull_slope_by_rule) if written_out else (_slope, _pull_slope)
        units = self.kernel.lengthscale
        return slope(waves, x / units) / units + pull_slope(bumps, x)

    def _parts(self) -> "tuple[_Waves, _Bumps]":
        waves = _Waves(self.frequencies, self.cosine_weights, self.sine_weights)
        return waves, _Bumps(self.kernel, self.inducing, self.update)


# Derivatives by x are written out: they come from the sines, cosines and exponentials of the value itself, where
# automatic differentiation would go through all features again for every direction. Waves are functions of x / l, so
# that what moves x and what moves l share a derivative.

WRITTEN_OUT = 3  # coordinates, at most, for which second derivatives are


class _Waves(NamedTuple):
    """The draw of the prior, for lengthscale 1."""

    frequencies: Float[Array, "s k"]
    cosine_weights: Float[Array, " s"]
    sine_weights: Float[Array, " s"]


class _Bumps(NamedTuple):
    """The correction."""

    kernel: Kernel
    inducing: Float[Array, "m k"]
    update: Float[Array, " m"]


def _height(waves: _Waves, y: Point) -> Scalar:
    s, c = sincos(waves.frequencies @ y)
    return waves.cosine_weights @ c + waves.sine_weights @ s


def _slope(waves: _Waves, y: Point) -> Point:
    s, c = sincos(waves.frequencies @ y)
    slopes = waves.sine_weights * c - waves.cosine_weights * s
    return jnp.stack([slopes @ column for column in waves.frequencies.T])


def _bend(waves: _Waves, y: Point) -> Float[Array, "k k"]:
    s, c = sincos(waves.frequencies @ y)
    bends = -waves.sine_weights * s - waves.cosine_weights * c
    columns = waves.frequencies.T
    return symmetric(lambda i, j: bends @ (columns[i] * columns[j]), y.shape[0])


def _pull(bumps: _Bumps, x: Point) -> Scalar:
    return bumps.update @ bumps.kernel.row(x, bumps.inducing)


def _pull_slope(bumps: _Bumps, x: Point) -> Point:
    return bumps.kernel.gradient(x, bumps.inducing, bumps.update)


def _pull_bend(bumps: _Bumps, x: Point) -> Float[Array, "k k"]:
    return bumps.kernel.hessian(x, bumps.inducing, bumps.update)


def _with_derivative(function: Callable[[Any, Point], Array], derivative: Callable[[Any, Point], Array]):
    """The function, with that derivative by x; its derivatives by its other argument are automatic."""
    by_rule = eqx.filter_custom_jvp(function)

    @by_rule.def_jvp
    def rule(primals, tangents):  # a tangent is None where nothing moves
        (part, x), (part_moves, x_moves) = primals, tangents
        still, moving = eqx.partition(part, jax.tree.map(lambda move: move is None, part_moves, is_leaf=_is_none))
        value, change = jax.jvp(lambda moving: function(eqx.combine(moving, still), x), (moving,), (part_moves,))
        return value, change if x_moves is None else change + derivative(part, x) @ x_moves

    return by_rule


def _is_none(leaf) -> bool:
    return leaf is None


_slope_by_rule = _with_derivative(_slope, _bend)
_height_by_rule = _with_derivative(_height, _slope_by_rule)
_pull_slope_by_rule = _with_derivative(_pull_slope, _pull_bend)
_pull_by_rule = _with_derivative(_pull, _pull_slope_by_rule)


def draw_path(
    kernel: Kernel,
    inducing: Float[Array, "m k"],
    whitened: Float[Array, " m"],
    frequencies: Float[Array, "s k"],
    weights: Float[Array, "2 s"],
    whiten: Float[Array, "m m"] | None = None,
) -> Path:
    """The path with inducing values z = L u that belongs to standard normal feature weights; L⁻¹ may be given."""
    amplitude = jnp.sqrt(kernel.variance / max(frequencies.shape[0], 1))
    waves = _Waves(frequencies, *(amplitude * weights))
    prior = jax.vmap(lambda x: _height_by_rule(waves, x / kernel.lengthscale))(inducing)
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
    dimension = inducing.shape[1]
    return draw_path(kernel, inducing, whitened, jnp.zeros((0, dimension)), jnp.zeros((2, 0)), whiten)
