"""Several sums over one set of features or points, in one pass.

XLA makes a loop of its own of every sum, and computes in each what the sums have in common: sines, cosines and
exponentials, which are nearly all of the work. A reduction of several arrays at once is one loop.
"""

from collections.abc import Callable
from operator import add

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgpd.arrays import Scalar

Terms = list[Float[Array, " n"]]


@jax.custom_jvp
@jax.jit
def sums(*terms: Float[Array, " n"]) -> tuple[Scalar, ...]:
    """Σⱼ of each."""
    zeros = tuple(jnp.zeros((), each.dtype) for each in terms)
    return tuple(jax.lax.reduce(terms, zeros, _added, (0,)))


def _added(some: tuple[Scalar, ...], more: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    return tuple(map(add, some, more))


@sums.defjvp
def _sums_jvp(primals, tangents):
    # A reduction of several arrays has no transpose, so that its tangents are sums one by one.
    return sums(*primals), tuple(map(jnp.sum, tangents))


def derivatives(terms: Callable[[int], Terms], orders: tuple[int, ...], dimension: int) -> tuple[Array, ...]:
    """Derivatives of those orders, in one pass: values (order 0), gradients (k,) and Hessians (k, k).

    `terms(order)` are the terms of a derivative's entries; of a Hessian's, those on and below its diagonal.
    """
    of_each = [terms(order) for order in orders]
    found = iter(sums(*(entry for entries in of_each for entry in entries)))
    entries = [[next(found) for _ in each] for each in of_each]
    return tuple(_shaped(own, order, dimension) for own, order in zip(entries, orders, strict=True))


def _shaped(entries: list[Scalar], order: int, dimension: int) -> Array:
    match order:
        case 0:
            return entries[0]
        case 1:
            return jnp.stack(entries)
    place = {pair: index for index, pair in enumerate(below_diagonal(dimension))}
    rows = [[entries[place[max(i, j), min(i, j)]] for j in range(dimension)] for i in range(dimension)]
    return jnp.stack([jnp.stack(row) for row in rows])


def below_diagonal(dimension: int) -> list[tuple[int, int]]:
    """The places on and below the diagonal, row by row."""
    return [(i, j) for i in range(dimension) for j in range(i + 1)]
