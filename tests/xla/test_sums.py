"""Several sums in one pass are the sums one by one, with the same derivatives in either mode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgpd.xla.sums import below_diagonal, derivatives, sums

X = np.random.default_rng(0).normal(size=(3, 200))


def test_they_are_those_of_numpy_also_of_nothing_and_of_a_batch():
    np.testing.assert_allclose(jax.jit(sums)(*X), X.sum(axis=1), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(sums(jnp.zeros(0), jnp.zeros(0)), [0.0, 0.0])
    batch = np.random.default_rng(1).normal(size=(5, 3, 200))
    together = jax.jit(jax.vmap(lambda terms: jnp.stack(sums(*terms))))(batch)
    np.testing.assert_allclose(together, batch.sum(axis=2), rtol=0, atol=1e-13)


def test_what_is_shared_by_the_sums_has_the_right_derivative_in_both_modes():
    """(Σ sin x, Σ x sin x) of z x: by hand (Σ x cos zx, Σ x² cos zx)."""
    x, z = X[0], 0.7
    f = jax.jit(lambda z: jnp.stack(sums(jnp.sin(z * x), x * jnp.sin(z * x))))
    exact = [(x * np.cos(z * x)).sum(), (x**2 * np.cos(z * x)).sum()]
    for mode in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(mode(f)(z), exact, rtol=1e-12)
    second = [-(x**2 * np.sin(z * x)).sum(), -(x**3 * np.sin(z * x)).sum()]
    np.testing.assert_allclose(jax.jacfwd(jax.jacrev(f))(z), second, rtol=1e-12)


@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_derivatives_have_their_entries_in_their_places(dimension):
    """Of a quadratic form Σⱼ (aⱼ·x)²/2: its value, Ax and A = Σⱼ aⱼ aⱼᵀ."""
    a, x = np.random.default_rng(2).normal(size=(50, dimension)), np.arange(1.0, dimension + 1)
    along = jnp.asarray(a @ x)
    columns = [jnp.asarray(column) for column in a.T]
    terms = {
        0: [along**2 / 2],
        1: [along * column for column in columns],
        2: [columns[i] * columns[j] for i, j in below_diagonal(dimension)],
    }
    value, gradient, hessian = derivatives(terms.__getitem__, (0, 1, 2), dimension)
    np.testing.assert_allclose(value, (a @ x) @ (a @ x) / 2, rtol=1e-13)
    np.testing.assert_allclose(gradient, a.T @ a @ x, rtol=1e-12)
    np.testing.assert_allclose(hessian, a.T @ a, rtol=1e-12, atol=1e-13)
