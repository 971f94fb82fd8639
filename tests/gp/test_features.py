"""Normals for random features: standard normal whatever the sampling, and evenly spread ones worth many more."""

from functools import cache
from typing import get_args

import jax
import jax.random as jr
import jaxtyping
import numpy as np
import pytest
from scipy.stats import kstest

from sgpd.gp import SquaredExponential, feature_normals, host_normals
from sgpd.gp.features import Sampling
from tests.gp.oracles import KERNELS, kernel_matrix, scores

KEYS, COUNT, DIMENSION = 4000, 7, 3  # no power of two, no multiple of the dimension


@cache
def compiled(count, dimension, sampling):
    return jax.jit(jax.vmap(lambda key: feature_normals(key, count, dimension, sampling)))


def many(seed, keys, count, dimension, sampling):
    """Normals for many keys (keys, count, dimension)."""
    return np.asarray(compiled(count, dimension, sampling)(jr.split(jr.key(seed), keys)))


@pytest.fixture(scope="module")
def drawn():
    """Normals of every sampling, for many keys, and by NumPy."""
    by_numpy = {
        f"{sampling} by NumPy": np.stack(
            [host_normals(np.random.default_rng([12, k]), COUNT, DIMENSION, sampling) for k in range(KEYS)]
        )
        for sampling in ("quasi", "independent")
    }
    return {sampling: many(11, KEYS, COUNT, DIMENSION, sampling) for sampling in get_args(Sampling)} | by_numpy


each_sampling = pytest.mark.parametrize("sampling", get_args(Sampling))
each_way = pytest.mark.parametrize("sampling", [*get_args(Sampling), "quasi by NumPy", "independent by NumPy"])


@each_way
def test_every_single_vector_has_the_moments_of_a_standard_normal_over_keys(drawn, sampling):
    z = drawn[sampling]
    for power, moment in [(1, 0), (2, 1), (3, 0), (4, 3)]:
        assert np.abs(scores(z**power, moment)).max() < 4
    products = z[:, :, :, None] * z[:, :, None, :]
    assert np.abs(scores(products, np.eye(DIMENSION))[:, ~np.eye(DIMENSION, dtype=bool)]).max() < 4


@each_way
def test_every_coordinate_has_the_normal_distribution_over_keys(drawn, sampling):
    z = drawn[sampling].reshape(KEYS, -1)
    assert min(kstest(column, "norm").pvalue for column in z.T) > 1e-4


@each_way
def test_all_normals_are_finite_different_and_in_double_precision(drawn, sampling):
    z = drawn[sampling]
    assert z.dtype == np.float64
    assert np.isfinite(z).all()
    assert len(np.unique(z)) > 0.99 * z.size  # different keys, different normals


def test_numpy_spreads_evenly_too_and_leaves_orthogonal_ones_to_jax():
    quasi = np.sort(host_normals(np.random.default_rng(0), 64, 1, "quasi")[:, 0])
    assert kstest(quasi, "norm").statistic < 2 / 64  # one point in every 64th
    z = host_normals(np.random.default_rng(0), 6, 3, "orthogonal")
    np.testing.assert_allclose(z[:3] @ z[:3].T, np.diag(np.diag(z[:3] @ z[:3].T)), atol=1e-12)
    with pytest.raises((ValueError, jaxtyping.TypeCheckError)):
        host_normals(np.random.default_rng(0), 6, 3, "quasy")


@each_sampling
def test_the_same_key_gives_the_same_normals(drawn, sampling):
    np.testing.assert_array_equal(many(11, KEYS, COUNT, DIMENSION, sampling), drawn[sampling])


def test_orthogonal_vectors_are_orthogonal_within_a_block_and_no_further(drawn):
    z = drawn["orthogonal"]
    gram = z @ z.transpose(0, 2, 1)
    same_block = np.arange(COUNT)[:, None] // DIMENSION == np.arange(COUNT)[None, :] // DIMENSION
    assert np.abs(gram[:, same_block & ~np.eye(COUNT, dtype=bool)]).max() < 1e-12
    assert np.std(gram[:, ~same_block]) > 1


def covariance_errors(kind, normals, differences):
    """Root mean square over keys of the error in the features' covariance, at each difference (in lengthscales)."""
    kernel = kind(np.ones(differences.shape[1]))
    frequencies = np.asarray(jax.jit(jax.vmap(kernel.frequencies))(normals))
    error = np.cos(frequencies @ differences.T).mean(axis=1) - correlation(kind, differences)
    return np.sqrt((error**2).mean(axis=0))


def independent_errors(kind, differences, count):
    """The same for independent features, exactly: the variance of cos ω·d is (1 + k(2d))/2 - k(d)²."""
    variance = (1 + correlation(kind, 2 * differences)) / 2 - correlation(kind, differences) ** 2
    return np.sqrt(variance / count)


def correlation(kind, differences):
    return kernel_matrix(kind, 1.0, 1.0, differences, np.zeros_like(differences[:1]))[:, 0]


def within(radius, dimension, count=60):
    """Differences of evenly spread length, in all directions."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=(count, dimension))
    return np.linspace(0, radius, count)[:, None] * direction / np.linalg.norm(direction, axis=1)[:, None]


def rms(errors):
    return np.sqrt((errors**2).mean())


@pytest.mark.parametrize(("dimension", "count"), [(1, 64), (2, 256)])
def test_a_few_quasi_features_are_worth_ten_thousand_independent_ones(dimension, count):
    """For inputs within two lengthscales of one another, on average and at worst."""
    differences = within(2.0, dimension)
    quasi = covariance_errors(SquaredExponential, many(0, 128_000 // count, count, dimension, "quasi"), differences)
    independent = independent_errors(SquaredExponential, differences, 10_000)
    assert rms(quasi) < rms(independent)
    assert quasi.max() < independent.max()


@pytest.mark.parametrize("kind", KERNELS[1:])
def test_quasi_features_of_a_heavy_tailed_kernel_are_worth_four_times_as_many_independent_ones(kind):
    differences = within(2.0, 2)
    quasi = covariance_errors(kind, many(0, 100, 256, 2 + kind.tail_normals, "quasi"), differences)
    assert rms(quasi) < rms(independent_errors(kind, differences, 4 * 256))


def test_orthogonal_features_are_better_than_as_many_independent_ones(drawn):
    differences = within(2.0, DIMENSION, count=20)[1:]
    independent = independent_errors(SquaredExponential, differences, COUNT)
    assert rms(covariance_errors(SquaredExponential, drawn["orthogonal"], differences)) < 0.9 * rms(independent)
    # and the formula is right: 4000 keys know a standard deviation to about 2 %
    measured = covariance_errors(SquaredExponential, drawn["independent"], differences)
    np.testing.assert_allclose(measured, independent, rtol=0.08)


def test_an_unknown_spread_is_refused_with_a_guess(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # as users run it
    with pytest.raises(ValueError, match=r"'quasy'\. Did you mean 'quasi'\? Known: quasi, orthogonal, independent"):
        feature_normals(jr.key(0), 4, 2, "quasy")
