"""Functions drawn from a sparse Gaussian process, by Matheron's rule: a draw of the prior plus a correction.

    f(x) = Σᵢ wᵢ φᵢ(x) + Σⱼ vⱼ k(x, ξⱼ)    with    v = k(ξ, ξ)⁻¹ (z - Φ w)

The first sum is a prior draw in random features; the second pulls it through the drawn inducing values z. A path is an
object to call: the same function however often it is called, differentiable in x and in every parameter.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from sgpd.arrays import Scalar
from sgpd.gp.inducing import JITTER, prior_root
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
        return _value_by_rule(self, 1.0 * x)  # a rule under jit and vmap refuses NumPy arrays

    def gradient(self, x: Point) -> Point:
        """∇f(x)."""
        return (_gradient_by_rule if x.shape[0] <= WRITTEN_OUT else _gradient)(self, 1.0 * x)


# Derivatives by x are written out: they come from the sines, cosines and exponentials of the value itself, where
# automatic differentiation would go through all features again for every direction.

WRITTEN_OUT = 3  # coordinates, at most, for which second derivatives are


def _value(path: Path, x: Point) -> Scalar:
    s, c = sincos(_phases(path, x))
    return path.cosine_weights @ c + path.sine_weights @ s + path.update @ path.kernel.row(x, path.inducing)


def _gradient(path: Path, x: Point) -> Point:
    s, c = sincos(_phases(path, x))
    slopes = path.sine_weights * c - path.cosine_weights * s
    prior = jnp.stack([slopes @ column for column in path.frequencies.T]) / path.kernel.lengthscale
    return prior + path.kernel.gradient(x, path.inducing, path.update)


def _hessian(path: Path, x: Point) -> Float[Array, "k k"]:
    s, c = sincos(_phases(path, x))
    bends = -path.sine_weights * s - path.cosine_weights * c
    columns, units = path.frequencies.T, path.kernel.lengthscale
    prior = symmetric(lambda i, j: bends @ (columns[i] * columns[j]) / (units[i] * units[j]), x.shape[0])
    return prior + path.kernel.hessian(x, path.inducing, path.update)


def _phases(path: Path, x: Point) -> Float[Array, " s"]:
    """ωᵢᵀ (x / l)."""
    return path.frequencies @ (x / path.kernel.lengthscale)


def _with_derivative(function: Callable[[Path, Point], Array], derivative: Callable[[Path, Point], Array]):
    """The function, with that derivative by x; its derivatives by the path are automatic."""
    by_rule = eqx.filter_custom_jvp(function)

    @by_rule.def_jvp
    def rule(primals, tangents):  # a tangent is None where nothing moves
        (path, x), (path_moves, x_moves) = primals, tangents
        still, moving = eqx.partition(path, jax.tree.map(lambda move: move is None, path_moves, is_leaf=_is_none))
        value, change = jax.jvp(lambda moving: function(eqx.combine(moving, still), x), (moving,), (path_moves,))
        return value, change if x_moves is None else change + derivative(path, x) @ x_moves

    return by_rule


def _is_none(leaf) -> bool:
    return leaf is None


_gradient_by_rule = _with_derivative(_gradient, _hessian)
_value_by_rule = _with_derivative(_value, _gradient_by_rule)


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
