"""Systems of a few linear equations, by Gaussian elimination written out.

A library call inside a loop keeps XLA from compiling that loop into one kernel; a few dozen products and sums do not.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

WRITTEN_OUT = 4  # equations, at most: the program grows with their cube, and the time to compile it


def solve(matrix: Float[Array, "n n"], right: Float[Array, " n"]) -> Float[Array, " n"]:
    """x with `matrix` x = `right`, by elimination with partial pivoting."""
    n = right.shape[0]
    if n > WRITTEN_OUT:
        return jnp.linalg.solve(matrix, right)
    rows = [[*(matrix[i, j] for j in range(n)), right[i]] for i in range(n)]
    for k in range(n):
        for i in range(k + 1, n):  # the largest entry of the column comes up
            larger = jnp.abs(rows[i][k]) > jnp.abs(rows[k][k])
            upper, lower = rows[k], rows[i]
            rows[k] = [jnp.where(larger, b, a) for a, b in zip(upper, lower, strict=True)]
            rows[i] = [jnp.where(larger, a, b) for a, b in zip(upper, lower, strict=True)]
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    x = [jnp.zeros(())] * n
    for k in reversed(range(n)):
        x[k] = (rows[k][n] - sum(rows[k][j] * x[j] for j in range(k + 1, n))) / rows[k][k]
    return jnp.stack(x)
