"""A trend is a Gaussian process too: polynomials of one degree, with the covariance that they should have."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgpd.gp import SquaredExponential, Trend, draw_path

KERNEL = SquaredExponential(jnp.array([0.5, 3.0]), jnp.array(2.0))
CENTRE, LOWER, HIGHER = np.array([0.3, -1.0]), 1.7, 0.6


def trend(degree):
    return Trend(jnp.asarray(CENTRE), jnp.log(jnp.array([LOWER, HIGHER]) ** 2), degree)


def covariance(degree, x, y):
    """Of the terms one by one: 1 and yᵢ/lᵢ, or yᵢ/lᵢ and yᵢyⱼ/(lᵢlⱼ) with i ≥ j."""
    a, b = ((np.asarray(point) - CENTRE) / [0.5, 3.0] for point in (x, y))
    lines = a @ b
    if degree == 1:
        return LOWER**2 + HIGHER**2 * lines
    bends = (a[0] * b[0]) ** 2 + a[0] * a[1] * b[0] * b[1] + (a[1] * b[1]) ** 2
    return LOWER**2 * lines + HIGHER**2 * bends


@pytest.mark.parametrize("degree", [1, 2])
def test_coefficients_are_so_wide_that_values_have_the_covariance_of_the_terms(degree):
    given = trend(degree)
    assert given.size == {1: 3, 2: 5}[degree]
    points = np.random.default_rng(0).normal(size=(4, 2))
    value = lambda u, x: given.polynomial(KERNEL, u)(x)
    design = jax.vmap(jax.grad(value), in_axes=(None, 0))(jnp.zeros(given.size), jnp.asarray(points))  # linear in u
    expected = [[covariance(degree, x, y) for y in points] for x in points]
    np.testing.assert_allclose(design @ design.T, expected, rtol=1e-12)
    assert (jax.vmap(value, in_axes=(None, 0))(jnp.zeros(given.size), jnp.asarray(points)) == 0).all()


@pytest.mark.parametrize("degree", [1, 2])
def test_the_written_gradient_is_that_of_automatic_differentiation(degree):
    polynomial = trend(degree).polynomial(KERNEL, jnp.arange(1.0, trend(degree).size + 1))
    x = jnp.array([0.9, 0.4])
    np.testing.assert_allclose(polynomial.gradient(x), jax.grad(polynomial)(x), rtol=1e-13)
    np.testing.assert_array_equal(polynomial.quadratic, polynomial.quadratic.T)


def test_a_polynomial_does_not_vary_where_the_lengthscale_is_without_bound():
    long = SquaredExponential(jnp.array([0.5, 1e12]), jnp.array(2.0))
    polynomial = trend(2).polynomial(long, jnp.ones(5))
    np.testing.assert_allclose(polynomial(jnp.array([0.9, -5.0])), polynomial(jnp.array([0.9, 7.0])), rtol=1e-10)


def test_a_path_is_its_process_plus_its_trend_also_in_its_derivatives():
    rng = np.random.default_rng(1)
    normal = lambda *shape: jnp.asarray(rng.normal(size=shape))
    process = draw_path(KERNEL, normal(4, 2), normal(4), normal(16, 2), normal(2, 16))
    polynomial = trend(2).polynomial(KERNEL, normal(5))
    both = replace(process, trend=polynomial)
    x = jnp.array([0.2, -0.7])
    np.testing.assert_allclose(both(x), process(x) + polynomial(x), rtol=1e-13)
    np.testing.assert_allclose(both.gradient(x), process.gradient(x) + polynomial.gradient(x), rtol=1e-13)
    np.testing.assert_allclose(both.gradient(x), jax.grad(both)(x), rtol=1e-12)
    hessian = jax.jit(jax.jacfwd(both.gradient))(x)
    np.testing.assert_allclose(hessian, jax.hessian(process)(x) + polynomial.quadratic, rtol=1e-12)
