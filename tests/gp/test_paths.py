"""Drawn functions have the law of the sparse Gaussian process, and are functions: callable, differentiable, fixed."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from sgpd.gp import JITTER, Matern52, SquaredExponential, WhitenedGaussian, draw_path, feature_normals, mean_path, paths
from tests.gp.oracles import KERNELS, derivative, kernel_matrix, moment_scores, path_value, sparse_posterior

LENGTHSCALE, VARIANCE = np.array([0.8, 1.3]), 1.7
INDUCING = np.array([[0.0, 0.0], [1.0, 0.2], [-0.7, 1.1], [0.3, -1.4], [-1.2, -0.8]])
POINTS = np.array([[0.1, -0.1], [0.6, 0.9], [-1.0, 0.2], [2.5, -2.0], [1.0, 0.2]])  # the last: an inducing point
PLACES = np.concatenate([POINTS, INDUCING])
MEAN = np.random.default_rng(0).normal(size=5)
RAW_ROOT = np.random.default_rng(1).normal(size=(5, 5)) / 3 - 0.7 * np.eye(5)
ROOT = np.tril(RAW_ROOT, -1) + np.diag(np.exp(np.diag(RAW_ROOT)))

each_kernel = pytest.mark.parametrize("kind", KERNELS)


class Normals(NamedTuple):
    """What makes a draw, all of it standard normal; the kernels take as many columns for a frequency as they need."""

    values: np.ndarray
    frequencies: np.ndarray
    weights: np.ndarray


def normals(seed, *batch, features=16):
    rng = np.random.default_rng(seed)
    return Normals(*(rng.normal(size=(*batch, *shape)) for shape in [(5,), (features, 7), (2, features)]))


def draw(kind, whitened, given, inducing=INDUCING):
    kernel = kind(LENGTHSCALE, VARIANCE)
    frequencies = kernel.frequencies(given.frequencies[:, : 2 + kind.tail_normals])
    return draw_path(kernel, jnp.asarray(inducing), whitened, frequencies, given.weights)


def posterior_value(given):
    return WhitenedGaussian(jnp.asarray(MEAN), jnp.asarray(RAW_ROOT)).value(given.values)


def covariance(kind):
    return lambda xs, ys: kernel_matrix(kind, LENGTHSCALE, VARIANCE, xs, ys)


# -- the law


@pytest.fixture(scope="module")
def many_normals():
    """20,000 draws of 8 features each: second moments are exact with any number, if frequencies are drawn anew."""
    quasi = jax.jit(jax.vmap(lambda key: feature_normals(key, 8, 7, "quasi")))
    return normals(2, 20_000, features=8)._replace(frequencies=quasi(jr.split(jr.key(2), 20_000)))


@each_kernel
def test_draws_have_the_exact_moments_of_prior_and_posterior_within_four_standard_errors(kind, many_normals):
    def values(given):
        alone = draw(kind, jnp.zeros(0), given, inducing=jnp.zeros((0, 2)))
        whitened = jnp.stack([given.values, posterior_value(given)])
        return jax.vmap(alone)(POINTS), jax.vmap(lambda u: jax.vmap(draw(kind, u, given))(POINTS))(whitened)

    alone, through = map(np.asarray, jax.jit(jax.vmap(values))(many_normals))
    prior, posterior = through[:, 0], through[:, 1]
    k = covariance(kind)(POINTS, POINTS)
    exact = sparse_posterior(covariance(kind), POINTS, INDUCING, MEAN, ROOT)
    for draws, moments in [(alone, (np.zeros(5), k)), (prior, (np.zeros(5), k)), (posterior, exact)]:
        for score in moment_scores(draws, *moments):
            assert np.abs(score).max() < 4


def test_the_test_of_moments_can_tell_a_wrong_posterior():
    """Ten per cent on a standard deviation, or a mean off by a twentieth of it, is far outside at 20,000 draws."""
    draws = np.random.default_rng(3).normal(size=(20_000, 4))
    assert np.abs(moment_scores(1.1 * draws, np.zeros(4), np.eye(4))[1]).max() > 8
    assert np.abs(moment_scores(0.05 + draws, np.zeros(4), np.eye(4))[0]).max() > 5


# -- the function


def three_draws():
    """Whitened values and normals of one draw, of its opposite, and of one with the values MEAN for sure."""
    given = normals(4)
    weights = np.stack([given.weights, -given.weights, given.weights])
    whitened = MEAN + np.array([[1.0], [-1.0], [0.0]]) * (ROOT @ given.values)
    repeated = lambda array: np.stack([array] * 3)
    return whitened, Normals(repeated(given.values), repeated(given.frequencies), weights)


class Facts(NamedTuple):
    """What can be said of the three."""

    update: np.ndarray
    values: np.ndarray
    automatic: np.ndarray  # jax.grad
    written: np.ndarray  # Path.gradient
    hessian: np.ndarray
    mean: np.ndarray  # of the mean path


@pytest.fixture(scope="module")
def facts():
    """By kernel."""

    def of_path(kind, whitened, given):
        path = draw(kind, whitened, given)
        value, automatic = jax.vmap(jax.value_and_grad(path))(PLACES)
        hessian, written = jax.vmap(jax.jacfwd(lambda x: (path.gradient(x),) * 2, has_aux=True))(PLACES)
        return path.update, value, automatic, written, hessian

    def compute(kind, whitened, given):
        mean = mean_path(kind(LENGTHSCALE, VARIANCE), jnp.asarray(INDUCING), jnp.asarray(MEAN))
        return Facts(*jax.vmap(lambda u, g: of_path(kind, u, g))(whitened, given), jax.vmap(mean)(PLACES))

    compiled = jax.jit(lambda *three: [compute(kind, *three) for kind in KERNELS])
    return dict(zip(KERNELS, jax.tree.map(np.asarray, compiled(*three_draws())), strict=True))


@each_kernel
def test_a_draw_with_certain_inducing_values_goes_through_them(facts, kind):
    """Up to the jitter: f(ξ) - z = -jitter σ² v, and a little for the root of the jittered matrix."""
    root = np.linalg.cholesky(covariance(kind)(INDUCING, INDUCING) + JITTER * VARIANCE * np.eye(5))
    gap = facts[kind].values[2, -5:] - root @ MEAN
    np.testing.assert_allclose(gap, -JITTER * VARIANCE * facts[kind].update[2], rtol=0, atol=1e-13)
    assert np.abs(gap).max() < 1e-6


@each_kernel
def test_the_mean_path_is_the_closed_form(facts, kind):
    root = np.linalg.cholesky(covariance(kind)(INDUCING, INDUCING) + JITTER * VARIANCE * np.eye(5))
    exact = covariance(kind)(PLACES, INDUCING) @ np.linalg.solve(root @ root.T, root @ MEAN)
    np.testing.assert_allclose(facts[kind].mean, exact, rtol=0, atol=1e-13)
    without_jitter, _ = sparse_posterior(covariance(kind), PLACES, INDUCING, MEAN, np.eye(5))
    np.testing.assert_allclose(facts[kind].mean, without_jitter, rtol=0, atol=1e-6)


@each_kernel
def test_the_mean_path_is_the_average_of_opposite_draws(facts, kind):
    """Exactly, since a path is linear in the normals of its values and weights."""
    one, opposite, _ = facts[kind].values
    np.testing.assert_allclose((one + opposite) / 2, facts[kind].mean, rtol=0, atol=1e-12)


@each_kernel
def test_the_written_gradient_is_that_of_automatic_differentiation_also_at_an_inducing_point(facts, kind):
    np.testing.assert_allclose(facts[kind].written, facts[kind].automatic, rtol=0, atol=1e-12)


@each_kernel
def test_hessians_are_finite_and_symmetric_also_at_an_inducing_point(facts, kind):
    hessian = facts[kind].hessian
    assert np.isfinite(hessian).all()
    np.testing.assert_allclose(hessian, hessian.transpose(0, 1, 3, 2), rtol=0, atol=1e-12)


@each_kernel
def test_the_written_hessian_is_that_of_automatic_differentiation(facts, kind, monkeypatch):
    for name, derivatives in (("_slope", paths._wave_derivatives), ("_pull_slope", paths._bump_derivatives)):
        monkeypatch.setattr(paths, name, lambda part, x, derivatives=derivatives: derivatives(part, x, (1,))[0])
    path = draw(kind, *jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), three_draws()))
    automatic = jax.jit(jax.vmap(jax.jacfwd(path.gradient)))(PLACES)
    np.testing.assert_allclose(facts[kind].hessian[0], automatic, rtol=0, atol=1e-12)


@each_kernel
def test_values_and_gradients_have_right_derivatives_in_every_parameter(kind):
    """Lengthscales, variance, inducing locations, whitened values, feature weights and the point itself."""
    given = normals(5, features=4)
    omega = kind(LENGTHSCALE).frequencies(jnp.asarray(given.frequencies[:, : 2 + kind.tail_normals]))
    start = (LENGTHSCALE, np.array(VARIANCE), INDUCING, MEAN, given.weights, POINTS[1])
    theta = np.concatenate([leaf.ravel() for leaf in start])
    ends = np.cumsum([leaf.size for leaf in start])
    along = np.array([0.7, -1.3])

    def parts(theta):
        return [theta[end - leaf.size : end].reshape(leaf.shape) for leaf, end in zip(start, ends, strict=True)]

    def mix(theta):
        lengthscale, variance, inducing, whitened, weights, x = parts(theta)
        path = draw_path(kind(lengthscale, variance), inducing, whitened, omega, weights)
        return path(x) + path.gradient(x) @ along

    def by_hand(theta):
        *four, weights, x = parts(theta)
        value = lambda x: path_value(kind, *four, np.asarray(omega), weights, x)
        return value(x) + derivative(value, x) @ along

    gradient = np.asarray(jax.jit(jax.grad(mix))(theta))
    np.testing.assert_allclose(gradient, derivative(by_hand, theta), rtol=1e-6, atol=1e-7)
    assert np.abs(gradient).min() > 1e-4  # nothing is without influence


def test_draws_under_vmap_are_those_of_a_loop_and_the_same_however_often_they_are_called(facts):
    whitened, given = three_draws()
    draw_one = jax.jit(lambda u, given: draw(Matern52, u, given))
    evaluate = jax.jit(lambda path, xs: jax.vmap(path)(xs))
    for i in range(3):
        path = draw_one(whitened[i], jax.tree.map(lambda leaf, i=i: leaf[i], given))
        first, again = evaluate(path, PLACES), evaluate(path, PLACES)
        np.testing.assert_array_equal(first, again)
        np.testing.assert_allclose(first, facts[Matern52].values[i], rtol=0, atol=1e-12)


def test_a_draw_is_matherons_rule_written_out(facts):
    whitened, given = three_draws()
    for kind in KERNELS:
        omega = np.asarray(kind(LENGTHSCALE).frequencies(jnp.asarray(given.frequencies[0, :, : 2 + kind.tail_normals])))
        for i in range(3):
            by_hand = lambda x, k=kind, w=omega, i=i: path_value(
                k, LENGTHSCALE, VARIANCE, INDUCING, whitened[i], w, given.weights[i], x
            )
            exact = [by_hand(x) for x in PLACES]
            np.testing.assert_allclose(facts[kind].values[i], exact, rtol=0, atol=1e-11)


def test_kernels_may_be_stacked_too():
    """As the latents of a group are: every path with its own kernel, inducing points and values."""
    rng = np.random.default_rng(7)
    lengthscales, variances = rng.uniform(0.5, 1, (3, 2)), rng.uniform(0.5, 2, 3)
    inducing, values = INDUCING + rng.normal(size=(3, 1, 2)), rng.normal(size=(3, 5))
    kernels = jax.vmap(SquaredExponential)(jnp.asarray(lengthscales), jnp.asarray(variances))
    paths = jax.jit(jax.vmap(mean_path))(kernels, inducing, values)
    found = jax.jit(jax.vmap(lambda path: jax.vmap(path)(POINTS)))(paths)
    assert kernels.lengthscale.shape == (3, 2)
    assert kernels.variance.shape == (3,)
    for k in range(3):
        k_of = lambda xs, ys, k=k: kernel_matrix(SquaredExponential, lengthscales[k], variances[k], xs, ys)
        exact, _ = sparse_posterior(k_of, POINTS, inducing[k], values[k], np.eye(5))
        np.testing.assert_allclose(found[k], exact, rtol=0, atol=1e-6)
