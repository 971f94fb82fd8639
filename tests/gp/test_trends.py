"""A trend is a Gaussian process too: parabolas with the covariance that they should have."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from sgpd.gp import SquaredExponential, Trend, draw_path

KERNEL = SquaredExponential(jnp.array([0.5, 3.0]), jnp.array(2.0))
CENTRE, SLOPES, BENDS = np.array([0.3, -1.0]), 1.7, 0.6
TREND = Trend(jnp.asarray(CENTRE), jnp.log(jnp.array([SLOPES, BENDS]) ** 2))


def covariance(x, y):
    """σ₁² a·b + σ₂² (a·b)², in lengthscales from the centre."""
    a, b = ((np.asarray(point) - CENTRE) / [0.5, 3.0] for point in (x, y))
    return SLOPES**2 * (a @ b) + BENDS**2 * (a @ b) ** 2


def test_coefficients_are_so_wide_that_values_have_the_covariance_of_lines_and_parabolas():
    points = np.random.default_rng(0).normal(size=(4, 2))
    value = lambda u, x: TREND.parabola(KERNEL, u)(x)
    design = jax.vmap(jax.grad(value), in_axes=(None, 0))(jnp.zeros(TREND.size), jnp.asarray(points))  # linear in u
    expected = [[covariance(x, y) for y in points] for x in points]
    np.testing.assert_allclose(design @ design.T, expected, rtol=1e-12)
    variances = [TREND.variance(KERNEL, jnp.asarray(x)) for x in points]
    np.testing.assert_allclose(variances, np.diag(expected), rtol=1e-12)
    assert (jax.vmap(value, in_axes=(None, 0))(jnp.zeros(TREND.size), jnp.asarray(points)) == 0).all()


def test_the_written_gradient_is_that_of_automatic_differentiation():
    parabola = TREND.parabola(KERNEL, jnp.arange(1.0, TREND.size + 1))
    x = jnp.array([0.9, 0.4])
    np.testing.assert_allclose(parabola.gradient(x), jax.grad(parabola)(x), rtol=1e-13)
    np.testing.assert_array_equal(parabola.bend, parabola.bend.T)


def test_a_parabola_does_not_vary_where_the_lengthscale_is_without_bound():
    long = SquaredExponential(jnp.array([0.5, 1e12]), jnp.array(2.0))
    parabola = TREND.parabola(long, jnp.ones(TREND.size))
    np.testing.assert_allclose(parabola(jnp.array([0.9, -5.0])), parabola(jnp.array([0.9, 7.0])), rtol=1e-10)


def test_a_path_is_its_process_plus_its_trend_also_in_its_derivatives():
    rng = np.random.default_rng(1)
    normal = lambda *shape: jnp.asarray(rng.normal(size=shape))
    process = draw_path(KERNEL, normal(4, 2), normal(4), normal(16, 2), normal(2, 16))
    parabola = TREND.parabola(KERNEL, normal(TREND.size))
    both = replace(process, trend=parabola)
    x = jnp.array([0.2, -0.7])
    np.testing.assert_allclose(both(x), process(x) + parabola(x), rtol=1e-13)
    np.testing.assert_allclose(both.gradient(x), process.gradient(x) + parabola.gradient(x), rtol=1e-13)
    np.testing.assert_allclose(both.gradient(x), jax.grad(both)(x), rtol=1e-12)
    hessian = jax.jit(jax.jacfwd(both.gradient))(x)
    np.testing.assert_allclose(hessian, jax.hessian(process)(x) + parabola.bend, rtol=1e-12)
