"""Gaussians over whitened inducing values: their law, their root and their divergence from the prior."""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sgpd.gp import JITTER, SquaredExponential, ValueGaussian, WhitenedGaussian, prior_root, whitening
from tests.gp.oracles import KERNELS, gaussian_kl, kernel_matrix, moment_scores, scores

LATENTS, M = 2, 4
each_shape = pytest.mark.parametrize("diagonal", [False, True])


class Facts(NamedTuple):
    """Of a stack of Gaussians with arbitrary numbers in all of the raw root."""

    mean: np.ndarray
    root: np.ndarray
    kl: np.ndarray
    kl_alone: np.ndarray  # of each latent
    gradient: WhitenedGaussian  # of the divergence
    draws: np.ndarray


@cache
def facts(diagonal):
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(LATENTS, M) if diagonal else (LATENTS, M, M)) / 2
    mean, normals = rng.normal(size=(LATENTS, M)), rng.normal(size=(20_000, LATENTS, M))

    @jax.jit
    def compute(mean, raw, normals):
        q = WhitenedGaussian(mean, raw)
        assert q.diagonal is diagonal
        kl, gradient = jax.value_and_grad(lambda q: q.kl())(q)
        alone = jax.vmap(lambda q: q.kl())(q)
        return Facts(mean, q.root, kl, alone, gradient, jax.vmap(q.value)(normals))

    return jax.tree.map(np.asarray, compute(mean, raw, normals))


@each_shape
def test_the_root_is_lower_triangular_with_a_positive_diagonal(diagonal):
    root = facts(diagonal).root
    np.testing.assert_array_equal(root, np.tril(root))
    assert np.diagonal(root, axis1=1, axis2=2).min() > 0
    below = root[:, np.tri(M, k=-1, dtype=bool)]
    assert np.all(below == 0) if diagonal else np.all(below != 0)


@each_shape
def test_the_divergence_is_the_formula_for_two_normals_summed_over_latents(diagonal):
    known = facts(diagonal)
    each = [gaussian_kl(m, r @ r.T) for m, r in zip(known.mean, known.root, strict=True)]
    np.testing.assert_allclose(known.kl, sum(each), rtol=1e-13)
    np.testing.assert_allclose(known.kl_alone, each, rtol=1e-13)


@each_shape
def test_the_divergence_is_the_mean_log_ratio_of_densities(diagonal):
    known = facts(diagonal)
    for mean, root, kl, u in zip(known.mean, known.root, known.kl_alone, known.draws.swapaxes(0, 1), strict=True):
        ratios = multivariate_normal(mean, root @ root.T).logpdf(u) - multivariate_normal(np.zeros(M)).logpdf(u)
        assert abs(scores(ratios, kl)) < 4


@each_shape
def test_values_have_the_stated_mean_and_covariance_and_are_independent_from_latent_to_latent(diagonal):
    known = facts(diagonal)
    covariance = np.zeros((LATENTS, M, LATENTS, M))
    for k, root in enumerate(known.root):
        covariance[k, :, k] = root @ root.T
    size = LATENTS * M
    for score in moment_scores(known.draws.reshape(-1, size), known.mean.reshape(size), covariance.reshape(size, size)):
        assert np.abs(score).max() < 4


@each_shape
def test_the_divergence_has_the_gradient_that_pulls_to_the_prior(diagonal):
    """∂KL/∂mean = mean, ∂KL/∂(log of a diagonal entry r) = r² - 1, and below the diagonal the entry itself."""
    known = facts(diagonal)
    np.testing.assert_allclose(known.gradient.mean, known.mean, rtol=1e-14)
    log_diagonal = np.diagonal(known.root, axis1=1, axis2=2) ** 2 - 1
    expected = log_diagonal if diagonal else np.tril(known.root, -1) + log_diagonal[:, :, None] * np.eye(M)
    np.testing.assert_allclose(known.gradient.raw_root, expected, rtol=1e-12, atol=1e-14)


@each_shape
def test_the_prior_is_at_divergence_zero_and_everything_else_above(diagonal):
    laws = [(0.0, 1.0), (0.0, 0.99), (0.0, 1.01), (0.01, 1.0)]

    @jax.jit
    def divergences():
        isotropic = lambda mean, std: WhitenedGaussian.isotropic(jnp.full((LATENTS, M), mean), std, diagonal)
        return [isotropic(*law).kl() for law in laws]

    at_prior, *elsewhere = divergences()
    assert at_prior == 0
    assert min(elsewhere) > 1e-5


@each_shape
def test_an_isotropic_gaussian_has_that_standard_deviation_in_every_direction(diagonal):
    q = WhitenedGaussian.isotropic(jnp.ones((LATENTS, M)), 0.3, diagonal)
    assert q.diagonal is diagonal
    np.testing.assert_allclose(jax.jit(lambda q: q.root)(q), np.stack([0.3 * np.eye(M)] * LATENTS), rtol=1e-15)


def test_the_prior_root_is_a_root_of_the_covariance_and_its_jitter():
    xs = np.random.default_rng(1).uniform(-2, 2, (8, 2))
    lengthscale = np.array([1.0, 0.5])
    roots = jax.jit(lambda xs: [prior_root(kind(lengthscale, 3.0), xs) for kind in KERNELS])(xs)
    for kind, root in zip(KERNELS, map(np.asarray, roots), strict=True):
        exact = kernel_matrix(kind, lengthscale, 3.0, xs, xs) + 3.0 * JITTER * np.eye(8)
        np.testing.assert_allclose(root @ root.T, exact, rtol=1e-13, atol=1e-14)
        np.testing.assert_array_equal(root, np.tril(root))


def test_coinciding_inducing_points_are_seen_as_nan_or_carried_by_the_jitter():
    """Never a wrong finite answer: the root still squares to the jittered matrix, or says nan."""
    xs = np.zeros((6, 2))
    root = np.asarray(jax.jit(lambda xs: prior_root(KERNELS[0](np.ones(2)), xs))(xs))
    assert np.isnan(root).any() or np.allclose(root @ root.T, 1 + JITTER * np.eye(6), rtol=0, atol=1e-12)


@pytest.mark.parametrize("jitter", [JITTER, 1e-2])
def test_a_gaussian_over_the_values_is_the_same_one_in_whitened_coordinates(jitter):
    rng = np.random.default_rng(1)
    kernel, inducing = SquaredExponential([0.8, 1.3], 0.5), rng.normal(size=(M, 2))
    mean, std = rng.normal(size=M), np.exp(rng.normal(size=M) / 2)
    whiten = whitening(kernel, jnp.asarray(inducing), jitter)
    q = ValueGaussian(jnp.asarray(mean), jnp.log(jnp.asarray(std))).whitened(whiten)
    root = np.asarray(prior_root(kernel, jnp.asarray(inducing), jitter))
    prior = root @ root.T
    np.testing.assert_allclose(np.diag(prior), 0.5 * (1 + jitter), rtol=1e-12)
    np.testing.assert_allclose(root @ q.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(root @ q.root @ q.root.T @ root.T, np.diag(std**2), atol=1e-10)
    # KL(N(μ, S) ‖ N(0, K)) = ½ (tr K⁻¹S + μᵀK⁻¹μ - m + log det K - log det S)
    inverse = np.linalg.inv(prior)
    trace, square = np.trace(inverse @ np.diag(std**2)), mean @ inverse @ mean
    expected = (trace + square - M + np.linalg.slogdet(prior)[1] - 2 * np.log(std).sum()) / 2
    np.testing.assert_allclose(q.kl(), expected, rtol=1e-9)
