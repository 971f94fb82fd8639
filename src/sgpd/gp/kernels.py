"""Stationary kernels with one lengthscale a dimension: a value at two points, and the law of their frequencies.

Each kernel is σ² φ(s) with s = Σᵢ (xᵢ - yᵢ)² / lᵢ². A kernel says φ, its slope φ' (written out, so that gradients are
finite where two points coincide), and how standard normals become random frequencies.
"""

from abc import abstractmethod
from functools import partial
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgpd.arrays import Scalar
from sgpd.xla.sums import Terms, below_diagonal, derivatives

Point = Float[Array, " k"]
Squares = Float[Array, "*pairs"]  # of distances


class Kernel(eqx.Module):
    """A stationary kernel. Parameters are stored as logarithms, so that an optimiser may move them freely."""

    log_lengthscale: Point
    log_variance: Scalar

    # How often a drawn function can be differentiated.
    smoothness: ClassVar[float]
    # How many extra standard normals a random frequency takes (degrees of freedom of its heavy tail).
    tail_normals: ClassVar[int]

    def __init__(self, lengthscale, variance=1.0):
        lengthscale, variance = jnp.atleast_1d(jnp.asarray(lengthscale, float)), jnp.asarray(variance, float)
        self.log_lengthscale = jnp.log(lengthscale)
        self.log_variance = jnp.log(variance)

    @classmethod
    def from_logs(cls, log_lengthscale, log_variance) -> "Kernel":
        """The kernel, or a stack of them, with these logarithms as they are."""
        kernel = cls(jnp.ones(1))
        return eqx.tree_at(lambda k: (k.log_lengthscale, k.log_variance), kernel, (log_lengthscale, log_variance))

    @staticmethod
    @abstractmethod
    def profile(s: Squares) -> Squares:
        """φ(s)."""

    @staticmethod
    @abstractmethod
    def slope(s: Squares) -> Squares:
        """φ'(s)."""

    @property
    def lengthscale(self) -> Float[Array, "*batch k"]:
        """l, one a dimension."""
        return jnp.exp(self.log_lengthscale)

    @property
    def variance(self) -> Float[Array, "*batch"]:
        """σ²."""
        return jnp.exp(self.log_variance)

    def __call__(self, x: Point, y: Point) -> Scalar:
        return self.variance * radial(type(self), self._distance(x, y))

    def sums(
        self, x: Point, ys: Float[Array, "m k"], weights: Float[Array, " m"], orders: tuple[int, ...]
    ) -> tuple[Array, ...]:
        """Σⱼ wⱼ k(x, yⱼ), or its derivatives by x, of those orders: 0, 1 or 2."""
        away = list(((x[None, :] - ys) / self.lengthscale[None, :]).T)
        squares = sum((column**2 for column in away), start=jnp.zeros(()))

        # With a = (x - yⱼ) / l:  wⱼ φ,  wⱼ 2 φ' aᵢ,  wⱼ (4 φ'' aᵢ aₖ + 2 φ' δᵢₖ)
        def terms(order: int) -> Terms:
            if order == 0:
                return [weights * radial(type(self), squares)]
            slope, bend = jax.jvp(self.slope, (squares,), (jnp.ones_like(squares),))
            if order == 1:
                return [2 * weights * slope * column for column in away]
            entry = lambda i, j: 4 * bend * away[i] * away[j] + 2 * (i == j) * slope
            return [weights * entry(i, j) for i, j in below_diagonal(len(away))]

        units = {0: 1.0, 1: self.lengthscale, 2: jnp.outer(self.lengthscale, self.lengthscale)}
        found = derivatives(terms, orders, x.shape[0])
        return tuple(self.variance * each / units[order] for each, order in zip(found, orders, strict=True))

    def matrix(self, xs: Float[Array, "n k"], ys: Float[Array, "m k"]) -> Float[Array, "n m"]:
        """k at all pairs."""
        return jax.vmap(lambda x: jax.vmap(lambda y: self(x, y))(ys))(xs)

    def frequencies(self, normals: Float[Array, "s k_plus_tail"]) -> Float[Array, "s k"]:
        """Random frequencies, for lengthscale 1, made of standard normals: z / √(χ²/ν), or z alone for ν = ∞."""
        dimension = normals.shape[1] - self.tail_normals
        z, tail = normals[:, :dimension], normals[:, dimension:]
        if self.tail_normals == 0:
            return z
        return z * jnp.sqrt(self.tail_normals / (tail**2).sum(axis=1, keepdims=True))

    def _distance(self, x: Point, y: Point) -> Scalar:
        return jnp.sum(((x - y) / self.lengthscale) ** 2)


class SquaredExponential(Kernel):
    """σ² exp(-s/2): smooth functions of any order. The paper's ARD kernel."""

    smoothness: ClassVar[float] = float("inf")
    tail_normals: ClassVar[int] = 0

    @staticmethod
    def profile(s: Squares) -> Squares:
        """φ(s)."""
        return jnp.exp(-s / 2)

    @staticmethod
    def slope(s: Squares) -> Squares:
        """φ'(s)."""
        return -jnp.exp(-s / 2) / 2


class Matern52(Kernel):
    """σ² (1 + r + r²/3) exp(-r) with r = √(5s): functions that are twice differentiable."""

    smoothness: ClassVar[float] = 2
    tail_normals: ClassVar[int] = 5

    @staticmethod
    def profile(s: Squares) -> Squares:
        """φ(s)."""
        r = _root(5 * s)
        return (1 + r + r**2 / 3) * jnp.exp(-r)

    @staticmethod
    def slope(s: Squares) -> Squares:
        """φ'(s)."""
        r = _root(5 * s)
        return -5 / 6 * (1 + r) * jnp.exp(-r)


class Matern32(Kernel):
    """σ² (1 + r) exp(-r) with r = √(3s): functions that are differentiable once."""

    smoothness: ClassVar[float] = 1
    tail_normals: ClassVar[int] = 3

    @staticmethod
    def profile(s: Squares) -> Squares:
        """φ(s)."""
        r = _root(3 * s)
        return (1 + r) * jnp.exp(-r)

    @staticmethod
    def slope(s: Squares) -> Squares:
        """φ'(s)."""
        return -3 / 2 * jnp.exp(-_root(3 * s))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def radial(kernel: type[Kernel], s: Squares) -> Squares:
    """φ(s), whose derivative is the slope as it is written out."""
    return kernel.profile(s)


@radial.defjvp
def _radial_jvp(kernel, primals, tangents):
    (s,), (ds,) = primals, tangents
    return kernel.profile(s), kernel.slope(s) * ds


def _root(s: Squares) -> Squares:
    """√s with derivative 0 at s = 0, where the true one is infinite but always multiplies a zero."""
    positive = s > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, s, 1.0)), 0.0)
