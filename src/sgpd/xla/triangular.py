"""Cholesky factors and their inverses. Small ones are plain loops.

A call of LAPACK inside a loop (a training goes through one at every step) keeps XLA from compiling that loop into one
kernel, and at a dozen equations the call itself costs more than its arithmetic.
"""

import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from sgpd.xla.tuning import pool_is_narrow

PLAIN = 24  # equations, at most, for which loops are used

Square = Float[Array, "n n"]


@jax.custom_jvp
@jax.jit  # traced once for each size
def inverse_root(matrix: Square) -> Square:
    """L⁻¹, where L Lᵀ = `matrix` and L is lower triangular; nan where `matrix` is not positive definite."""
    size = matrix.shape[0]
    if not 1 <= size <= PLAIN:
        return (sequential_vmap(_by_lapack) if pool_is_narrow() else _by_lapack)(matrix)
    root = _cholesky(matrix)
    row = lambda i, inverse: inverse.at[i].set(((jnp.arange(size) == i) - root[i] @ inverse) / root[i, i])
    return jax.lax.fori_loop(0, size, row, jnp.zeros_like(root))


def _by_lapack(matrix: Square) -> Square:
    return solve_triangular(jnp.linalg.cholesky(matrix), jnp.eye(matrix.shape[0]), lower=True)


@inverse_root.defjvp
def _inverse_root_jvp(primals, tangents):
    """dL = L Φ(L⁻¹ dA L⁻ᵀ), where Φ takes the lower triangle and half of the diagonal; so dL⁻¹ = -Φ(...) L⁻¹."""
    (matrix,), (change,) = primals, tangents
    inverse = inverse_root(matrix)
    half = jnp.tril(jnp.ones_like(matrix)) - jnp.eye(matrix.shape[0]) / 2
    return inverse, -(half * (inverse @ change @ inverse.T)) @ inverse


def _cholesky(matrix: Square) -> Square:
    rows = jnp.arange(matrix.shape[0])

    def add_column(j, root):
        column = matrix[:, j] - root @ root[j]
        return root.at[:, j].set(jnp.where(rows >= j, column / jnp.sqrt(column[j]), 0.0))

    return jax.lax.fori_loop(0, matrix.shape[0], add_column, jnp.zeros_like(matrix))


def on_diagonal(matrix: Float[Array, "*batch n n"]) -> Float[Array, "*batch n"]:
    """The diagonal, as a sum: the gradient of `jnp.diagonal` is a scatter, which is no part of any kernel either."""
    return jnp.where(jnp.eye(matrix.shape[-1], dtype=bool), matrix, 0.0).sum(axis=-1)
