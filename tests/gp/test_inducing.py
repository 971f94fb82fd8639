"""Gaussians over whitened inducing values: their law, their root and their divergence from the prior."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sgpd.gp import JITTER, WhitenedGaussian, prior_root
from tests.gp.oracles import KERNELS, gaussian_kl, kernel_matrix, moment_scores, scores

M = 4
each_shape = pytest.mark.parametrize("diagonal", [False, True])


def gaussians(diagonal, latents=(3,)):
    """A stack of Gaussians with arbitrary numbers in all of the raw root."""
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(*latents, M) if diagonal else (*latents, M, M)) / 2
    return WhitenedGaussian(jnp.asarray(rng.normal(size=(*latents, M))), jnp.asarray(raw))


@each_shape
def test_the_root_is_lower_triangular_with_a_positive_diagonal(diagonal):
    q = gaussians(diagonal)
    root = np.asarray(q.root)
    assert q.diagonal is diagonal
    np.testing.assert_array_equal(root, np.tril(root))
    assert np.diagonal(root, axis1=1, axis2=2).min() > 0
    if diagonal:
        np.testing.assert_array_equal(root, np.triu(root))
    else:
        assert np.all(root[:, np.tri(M, k=-1, dtype=bool)] != 0)


@each_shape
def test_the_divergence_is_the_formula_for_two_normals_summed_over_latents(diagonal):
    q = gaussians(diagonal)
    each = [gaussian_kl(m, r @ r.T) for m, r in zip(np.asarray(q.mean), np.asarray(q.root), strict=True)]
    np.testing.assert_allclose(q.kl(), sum(each), rtol=1e-13)
    one = jax.tree.map(lambda leaf: leaf[1], q)
    np.testing.assert_allclose(one.kl(), each[1], rtol=1e-13)


@each_shape
def test_the_divergence_is_the_mean_log_ratio_of_densities(diagonal):
    q = gaussians(diagonal, latents=())
    root = np.asarray(q.root)
    density = multivariate_normal(np.asarray(q.mean), root @ root.T)
    u = density.rvs(50_000, random_state=0)
    ratios = density.logpdf(u) - multivariate_normal(np.zeros(M), np.eye(M)).logpdf(u)
    assert abs(scores(ratios, q.kl())) < 4


@each_shape
def test_the_prior_is_at_divergence_zero_and_everything_else_above(diagonal):
    assert WhitenedGaussian.isotropic(jnp.zeros((3, M)), 1.0, diagonal).kl() == 0
    assert WhitenedGaussian.isotropic(jnp.zeros((3, M)), 0.99, diagonal).kl() > 0
    assert WhitenedGaussian.isotropic(jnp.full((3, M), 0.01), 1.0, diagonal).kl() > 0


@each_shape
def test_an_isotropic_gaussian_has_that_standard_deviation_in_every_direction(diagonal):
    q = WhitenedGaussian.isotropic(jnp.ones((2, M)), 0.3, diagonal)
    assert q.diagonal is diagonal
    np.testing.assert_allclose(q.root, np.broadcast_to(0.3 * np.eye(M), (2, M, M)), rtol=1e-15)


@each_shape
def test_values_have_the_stated_mean_and_covariance(diagonal, getkey):
    q = gaussians(diagonal, latents=(2,))
    draws = np.asarray(jax.jit(jax.vmap(q.value))(jr.normal(getkey(), (20_000, 2, M))))
    for k in range(2):
        root = np.asarray(q.root[k])
        first, second = moment_scores(draws[:, k], np.asarray(q.mean[k]), root @ root.T)
        assert np.abs(first).max() < 4
        assert np.abs(second).max() < 4
    # independent from latent to latent
    rest = draws - np.asarray(q.mean)
    assert np.abs(scores(rest[:, 0, :, None] * rest[:, 1, None, :], np.zeros((M, M)))).max() < 4


@each_shape
def test_the_divergence_has_the_gradient_that_pulls_to_the_prior(diagonal):
    """∂KL/∂mean = mean, and ∂KL/∂(log of a diagonal entry r) = r² - 1."""
    q = gaussians(diagonal)
    gradient = jax.jit(jax.grad(lambda q: q.kl()))(q)
    np.testing.assert_allclose(gradient.mean, q.mean, rtol=1e-14)
    entries = np.asarray(gradient.raw_root)
    entries = entries if diagonal else np.diagonal(entries, axis1=1, axis2=2)
    np.testing.assert_allclose(entries, np.diagonal(q.root, axis1=1, axis2=2) ** 2 - 1, rtol=1e-12)


@pytest.mark.parametrize("kind", KERNELS)
def test_the_prior_root_is_a_root_of_the_covariance_and_its_jitter(kind):
    xs = np.random.default_rng(1).uniform(-2, 2, (8, 2))
    root = np.asarray(prior_root(kind(np.array([1.0, 0.5]), 3.0), jnp.asarray(xs)))
    exact = kernel_matrix(kind, np.array([1.0, 0.5]), 3.0, xs, xs)
    np.testing.assert_allclose(root @ root.T, exact + 3.0 * JITTER * np.eye(8), rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(root, np.tril(root))
