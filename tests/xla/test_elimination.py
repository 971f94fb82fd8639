"""Elimination written out, against LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgpd.xla.elimination import WRITTEN_OUT, solve


@pytest.mark.parametrize("n", range(1, WRITTEN_OUT + 2))
def test_solutions_are_those_of_lapack(n):
    rng = np.random.default_rng(n)
    matrices, rights = rng.normal(size=(200, n, n)), rng.normal(size=(200, n))
    found = jax.jit(jax.vmap(solve))(matrices, rights)
    residual = np.einsum("bij,bj->bi", matrices, found) - rights
    scale = np.abs(matrices).sum(axis=2).max(axis=1) * np.abs(found).max(axis=1)
    assert (np.abs(residual).max(axis=1) < 1e-14 * scale).all()  # backward stable, whatever the condition
    expected = np.linalg.solve(matrices, rights[..., None])[..., 0]
    easy = np.linalg.cond(matrices) < 100
    np.testing.assert_allclose(np.asarray(found)[easy], expected[easy], rtol=1e-11, atol=1e-12)


def test_a_zero_or_tiny_pivot_is_passed_by():
    for pivot in (0.0, 1e-20):
        matrix = jnp.array([[pivot, 1.0], [1.0, 1.0]])
        np.testing.assert_allclose(solve(matrix, jnp.array([1.0, 2.0])), [1.0, 1.0], rtol=1e-15)


def test_derivatives_are_those_of_the_inverse():
    rng = np.random.default_rng(0)
    matrix, right = rng.normal(size=(3, 3)), rng.normal(size=3)
    inverse = np.linalg.inv(matrix)
    by_right = jax.jacrev(solve, argnums=1)(jnp.asarray(matrix), jnp.asarray(right))
    by_matrix = jax.jacfwd(solve)(jnp.asarray(matrix), jnp.asarray(right))
    np.testing.assert_allclose(by_right, inverse, rtol=1e-12)
    np.testing.assert_allclose(by_matrix, -np.einsum("ij,k->ijk", inverse, inverse @ right), rtol=1e-11)
