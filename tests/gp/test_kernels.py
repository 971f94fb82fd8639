"""Kernels are the textbook's, with the right derivatives even where two points coincide, and the right spectrum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest

from sgpd.gp import Matern52, SquaredExponential
from tests.gp.oracles import KERNELS, derivative, kernel_matrix, scores

LENGTHSCALE = np.array([0.7, 1.9, 0.4])
VARIANCE = 2.3

each_kernel = pytest.mark.parametrize("kind", KERNELS)


def matrix(kind, xs, ys):
    return np.asarray(jax.jit(lambda xs, ys: kind(LENGTHSCALE, VARIANCE).matrix(xs, ys))(xs, ys))


def textbook(kind, y):
    """k(x, y) as a function of x."""
    return lambda x: kernel_matrix(kind, LENGTHSCALE, VARIANCE, x[None], np.asarray(y)[None])[0, 0]


@each_kernel
def test_values_are_the_textbook_formula_with_a_lengthscale_for_each_dimension(kind):
    rng = np.random.default_rng(0)
    xs, ys = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    ys[0] = xs[0]
    found = matrix(kind, xs, ys)
    np.testing.assert_allclose(found, kernel_matrix(kind, LENGTHSCALE, VARIANCE, xs, ys), rtol=1e-13)


@each_kernel
def test_parameters_come_back_as_they_were_given(kind):
    kernel = kind(LENGTHSCALE, VARIANCE)
    np.testing.assert_allclose(kernel.lengthscale, LENGTHSCALE, rtol=1e-15)
    np.testing.assert_allclose(kernel.variance, VARIANCE, rtol=1e-15)
    assert kind(0.5).lengthscale.shape == (1,)


@each_kernel
def test_covariance_matrices_are_symmetric_and_positive_definite(kind):
    xs = np.random.default_rng(1).uniform(-2, 2, size=(30, 3))
    found = matrix(kind, xs, xs)
    np.testing.assert_array_equal(found, found.T)
    assert np.linalg.eigvalsh(found).min() > 0


@each_kernel
def test_the_written_gradient_is_that_of_automatic_differentiation_and_of_finite_differences(kind):
    kernel = kind(LENGTHSCALE, VARIANCE)
    x, y = jnp.asarray(np.random.default_rng(2).normal(size=(2, 3)))
    written, automatic, second = jax.jit(lambda x: (slope(kernel, x, y), *jax.grad(kernel, (0, 1))(x, y)))(x)
    np.testing.assert_allclose(written, automatic, rtol=1e-13)
    np.testing.assert_allclose(second, -automatic, rtol=1e-13)
    np.testing.assert_allclose(written, derivative(textbook(kind, y), np.asarray(x)), rtol=0, atol=1e-9)


@each_kernel
def test_hessians_are_those_of_finite_differences(kind):
    kernel = kind(LENGTHSCALE, VARIANCE)
    x, y = jnp.asarray(np.random.default_rng(3).normal(size=(2, 3)))
    written = lambda x: kernel.sums(x, y[None, :], jnp.ones(1), (2,))[0]
    automatic = lambda x: (jax.hessian(kernel)(x, y), jax.jacfwd(lambda x: slope(kernel, x, y))(x))
    hessian, *again = jax.jit(lambda x: (written(x), *automatic(x)))(x)
    for other in again:
        np.testing.assert_allclose(hessian, other, rtol=1e-12, atol=1e-14)
    stencil = derivative(lambda x: derivative(textbook(kind, y), x), np.asarray(x))
    np.testing.assert_allclose(hessian, stencil, rtol=0, atol=1e-8)


# φ'(0) of σ² φ(s), from the Taylor series of each kernel: the Hessian in x at y = x is 2 σ² φ'(0) / l².
SLOPE_AT_ZERO = dict(zip(KERNELS, [-1 / 2, -5 / 6, -3 / 2], strict=True))


@each_kernel
def test_where_points_coincide_gradients_vanish_and_hessians_are_the_curvature(kind):
    kernel = kind(LENGTHSCALE, VARIANCE)
    x = jnp.array([0.3, -1.2, 0.8])
    curvature = np.diag(2 * VARIANCE * SLOPE_AT_ZERO[kind] / LENGTHSCALE**2)

    @jax.jit
    def at_coincidence(x):
        mixed = jax.jacfwd(jax.grad(kernel), argnums=1)(x, x)
        return jax.grad(kernel)(x, x), slope(kernel, x, x), jax.hessian(kernel)(x, x), mixed

    gradient, written, hessian, mixed = at_coincidence(x)
    np.testing.assert_array_equal(gradient, 0)
    np.testing.assert_array_equal(written, 0)
    np.testing.assert_allclose(hessian, curvature, rtol=1e-13)
    np.testing.assert_allclose(mixed, -curvature, rtol=1e-13)  # the variance of the drawn function's gradient


@each_kernel
def test_where_points_coincide_parameters_have_right_gradients_too(kind):
    """Also through the Hessian, as they are needed in Newton's method on a drawn field."""
    x = jnp.array([0.3, -1.2, 0.8])

    @jax.jit
    def gradients(lengthscale, variance):
        value = lambda *theta: kind(*theta)(x, x)
        hessian = lambda *theta: jnp.diag(jax.jacfwd(lambda z: slope(kind(*theta), z, x))(x))
        return jax.grad(value, (0, 1))(lengthscale, variance), jax.jacrev(hessian, (0, 1))(lengthscale, variance)

    value, (by_lengthscale, by_variance) = gradients(jnp.asarray(LENGTHSCALE), jnp.asarray(VARIANCE))
    np.testing.assert_array_equal(value[0], 0)
    np.testing.assert_allclose(value[1], 1, rtol=1e-13)
    exact = np.diag(-4 * VARIANCE * SLOPE_AT_ZERO[kind] / LENGTHSCALE**3)
    np.testing.assert_allclose(by_lengthscale, exact, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(by_variance, 2 * SLOPE_AT_ZERO[kind] / LENGTHSCALE**2, rtol=1e-13)


def slope(kernel, x, y):
    """∂k(x, y)/∂x, as the kernel has it written out."""
    return kernel.sums(x, y[None], jnp.ones(1), (1,))[0]


@pytest.mark.parametrize("kind", [SquaredExponential, Matern52])
def test_hessians_are_continuous_through_coincidence(kind):
    """Their slope, the third derivative of the kernel, is of size σ²/l³ but never infinite."""
    kernel = kind(LENGTHSCALE, VARIANCE)
    x = jnp.array([0.3, -1.2, 0.8])
    distances = np.array([0.0, 1e-15, 1e-12, 1e-9, 1e-6])
    away = jnp.asarray(distances[:, None] * np.ones((1, 3)))
    hessians = np.asarray(jax.jit(jax.vmap(lambda d: jax.hessian(kernel)(x + d, x)))(away))
    jumps = np.abs(hessians - hessians[0]).max(axis=(1, 2))
    assert np.all(jumps <= 30 * VARIANCE / LENGTHSCALE.min() ** 3 * distances + 1e-12)


@each_kernel
def test_the_average_cosine_of_its_frequencies_is_the_kernel(kind):
    """Bochner's theorem, with 200,000 independent frequencies."""
    rng = np.random.default_rng(4)
    kernel = kind(LENGTHSCALE, VARIANCE)
    differences = rng.normal(size=(25, 3))  # in lengthscales
    frequencies = np.asarray(kernel.frequencies(jnp.asarray(rng.normal(size=(200_000, 3 + kernel.tail_normals)))))
    exact = kernel_matrix(kind, 1.0, 1.0, differences, np.zeros((1, 3)))[:, 0]
    assert np.abs(scores(np.cos(frequencies @ differences.T), exact)).max() < 4


@pytest.mark.parametrize("kind", KERNELS[1:])
def test_frequencies_of_a_matern_kernel_follow_student_t(kind):
    """The tail that a few cosines cannot see: each coordinate is Student's t with twice the kernel's order."""
    kernel = kind(np.ones(2))
    normals = np.random.default_rng(5).normal(size=(20_000, 2 + kernel.tail_normals))
    for coordinate in np.asarray(kernel.frequencies(jnp.asarray(normals))).T:
        assert kstest(coordinate, "t", args=(2 * kernel.smoothness + 1,)).pvalue > 1e-4
