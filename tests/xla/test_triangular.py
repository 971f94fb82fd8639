"""Inverse Cholesky factors by plain loops, against LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgpd.xla.triangular import PLAIN, inverse_root, on_diagonal


def positive_definite(size: int, condition: float, seed: int = 0) -> np.ndarray:
    vectors, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))
    values = np.geomspace(1, 1 / condition, size) if size > 1 else np.ones(1)
    return (vectors * values) @ vectors.T


@pytest.mark.parametrize("condition", [1e1, 1e8])
@pytest.mark.parametrize("size", [1, 2, 9, PLAIN, PLAIN + 1])
def test_the_inverse_root_is_that_of_lapack(size, condition):
    matrices = np.stack([positive_definite(size, condition, seed) for seed in range(20)])
    found = np.asarray(jax.jit(jax.vmap(inverse_root))(matrices))
    assert np.array_equal(found, np.tril(found))
    rounding = np.finfo(float).eps * size
    for matrix, inverse in zip(matrices, found, strict=True):
        # Two roots of a matrix, each exact for one that differs by rounding: L⁻¹(L + δL) - I is at most L⁻¹ δA L⁻ᵀ,
        # which is rounding times the condition of the matrix, not of the root.
        root = np.linalg.cholesky(matrix)
        np.testing.assert_allclose(inverse @ root, np.eye(size), atol=rounding * condition)
        # What it is the inverse root of is the matrix, to rounding: 4 times it where the condition is 1e8.
        own = np.linalg.inv(inverse)
        np.testing.assert_allclose(own @ own.T, matrix, atol=50 * rounding)


@pytest.mark.parametrize("size", [5, PLAIN + 1])
def test_its_derivatives_are_central_differences(size):
    rng, step = np.random.default_rng(0), 1e-6
    matrix, move, weight = positive_definite(size, 10.0), rng.normal(size=(size, size)), rng.normal(size=(size, size))
    move, at = move + move.T, lambda a: np.asarray(inverse_root(jnp.asarray(a)))
    expected = (at(matrix + step * move) - at(matrix - step * move)) / (2 * step)
    _, forward = jax.jvp(inverse_root, (jnp.asarray(matrix),), (jnp.asarray(move),))
    np.testing.assert_allclose(forward, expected, rtol=1e-6, atol=1e-7)
    backward = jax.grad(lambda a: jnp.sum(weight * inverse_root(a)))(jnp.asarray(matrix))
    np.testing.assert_allclose(np.sum(backward * move), np.sum(weight * expected), rtol=1e-6)


@pytest.mark.parametrize("size", [3, PLAIN + 1])
def test_what_is_not_positive_definite_is_nan(size):
    matrix = np.eye(size)
    matrix[1, 1] = -1.0
    assert np.isnan(inverse_root(jnp.asarray(matrix))).any()


def test_the_diagonal_and_its_gradient():
    matrices = np.random.default_rng(0).normal(size=(3, 4, 4))
    np.testing.assert_array_equal(on_diagonal(jnp.asarray(matrices)), np.diagonal(matrices, axis1=1, axis2=2))
    gradient = jax.grad(lambda a: on_diagonal(a).sum())(jnp.asarray(matrices))
    np.testing.assert_array_equal(gradient, np.broadcast_to(np.eye(4), (3, 4, 4)))
