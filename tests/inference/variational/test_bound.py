"""The bound lies below the evidence, touches it at the optimum, and has the gradient that it should have."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sgpd import integrators
from sgpd.gp import FramedGaussian, WhitenedGaussian
from sgpd.inference.posterior.field import sample_frequencies, sample_normals
from sgpd.inference.variational.bound import Noise, Observations, Parameters, bound, log_density
from tests.inference.cases import NOISE, STEP, one_step_problem, starts_at

EULER = integrators.get("euler")


def noise_for(key, parameters, windows, paths, features=8):
    k_frequencies, k_paths, k_starts = jr.split(key, 3)
    values, weights = sample_normals(k_paths, parameters.field, features, (windows, paths))
    frequencies = sample_frequencies(k_frequencies, parameters.field, features, "quasi")
    return Noise(frequencies, weights, values, jr.normal(k_starts, (windows, paths, parameters.field.dimension)))


@eqx.filter_jit
def estimates(parameters, observations, key, repeats, paths):
    """Independent estimates of the bound."""
    windows = observations.states.shape[0]

    def one(key):
        noise = noise_for(key, parameters, windows, paths)
        return bound(parameters, observations, jnp.arange(windows), noise, EULER).weighted()

    return jax.lax.map(one, jr.split(key, repeats))


def with_q(parameters, mean, covariance):
    q = WhitenedGaussian.from_covariance(jnp.asarray(mean)[None], jnp.asarray(covariance)[None])
    return eqx.tree_at(lambda p: p.field.values, parameters, (q,))


def exact_posterior(root, change):
    """Of u, where change = h L u + noise."""
    design = STEP * root
    covariance = np.linalg.inv(np.eye(4) + design.T @ design / NOISE**2)
    return covariance @ design.T @ change / NOISE**2, covariance


def test_the_bound_never_exceeds_the_evidence_and_is_tight_at_the_exact_posterior(getkey):
    observations, parameters, root, change = one_step_problem()
    evidence = multivariate_normal(np.zeros(4), STEP**2 * root @ root.T + NOISE**2 * np.eye(4)).logpdf(change)
    mean, covariance = exact_posterior(root, change)

    rng = np.random.default_rng(3)
    others = [(mean + 0.3 * rng.normal(size=4), covariance * scale) for scale in (0.3, 1.0, 2.0)]
    others += [(np.zeros(4), np.eye(4)), (mean, np.diag(np.diag(covariance)))]
    for q in others:
        found = np.asarray(estimates(with_q(parameters, *q), observations, getkey(), 64, 64))
        assert found.mean() < evidence + 4 * found.std() / np.sqrt(64)
        assert found.mean() < evidence - 1e-3

    found = np.asarray(estimates(with_q(parameters, mean, covariance), observations, getkey(), 64, 256))
    assert abs(found.mean() - evidence) < 4 * found.std() / np.sqrt(64)
    assert found.std() / np.sqrt(64) < 0.02


def test_with_latent_starts_the_bound_is_tight_at_the_exact_posterior_of_the_start(getkey):
    """A field that vanishes: both rows observe x₀ ~ N(0, 2²), so the evidence is a bivariate normal density."""
    _, parameters, _, _ = one_step_problem(variance=1e-16)
    first, second = np.array([0.4, -1.0, 0.3]), np.array([0.9, -1.2, 0.5])
    observations = Observations(
        jnp.asarray(np.stack([first, second], axis=1))[:, :, None],
        jnp.ones((3, 2, 1), bool),
        jnp.full((3, 1), STEP),
        1,
    )
    joint = multivariate_normal(np.zeros(2), 4 * np.ones((2, 2)) + NOISE**2 * np.eye(2))
    evidence = joint.logpdf(np.stack([first, second], axis=1)).sum()

    variance = 1 / (1 / 4 + 2 / NOISE**2)
    starts = starts_at(variance * (first + second) / NOISE**2, free=True)
    starts = eqx.tree_at(lambda s: s.log_std, starts, jnp.full((3, 1), np.log(variance) / 2))
    optimal = Parameters(parameters.field, starts, parameters.log_noise)
    found = np.asarray(estimates(optimal, observations, getkey(), 64, 256))
    assert abs(found.mean() - evidence) < 4 * found.std() / np.sqrt(64)

    wider = eqx.tree_at(lambda p: p.starts.log_std, optimal, optimal.starts.log_std + 0.5)
    assert np.asarray(estimates(wider, observations, getkey(), 64, 256)).mean() < evidence - 0.1


def test_a_batch_of_windows_estimates_the_bound_of_all_without_bias():
    observations, parameters, _, _ = one_step_problem()
    noise = noise_for(jr.key(0), parameters, 4, 8)
    part = lambda b: jax.tree.map(lambda leaf: leaf[b : b + 1], (noise.weights, noise.values, noise.starts))
    whole = bound(parameters, observations, jnp.arange(4), noise, EULER)
    singles = [
        bound(parameters, observations, jnp.array([b]), Noise(noise.frequencies, *part(b)), EULER) for b in range(4)
    ]
    mean = np.mean([one.expected_log_density for one in singles])
    np.testing.assert_allclose(mean, whole.expected_log_density, rtol=1e-12)
    np.testing.assert_allclose(whole.weighted(3.0, 0.5), 3 * whole.expected_log_density - whole.kl / 2)


def test_missing_values_do_not_enter_the_density():
    predicted, log_noise = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.log(jnp.array([0.5, 2.0]))
    states = jnp.array([[1.5, jnp.nan], [0.0, 4.5]])
    observed = jnp.array([[True, False], [False, True]])
    expected = multivariate_normal([1.0, 4.0], np.diag([0.25, 4.0])).logpdf([1.5, 4.5])
    np.testing.assert_allclose(log_density(states, observed, predicted, log_noise), expected)


def test_the_gradient_of_the_bound_equals_finite_differences_in_every_parameter():
    observations, parameters, root, change = one_step_problem()
    parameters = with_q(parameters, *exact_posterior(root, change))
    parameters = eqx.tree_at(lambda p: p.starts.free, parameters, jnp.full(4, True))
    noise = noise_for(jr.key(1), parameters, 4, 3)
    arrays, rest = eqx.partition(parameters, lambda leaf: leaf.dtype == float)
    flat, unravel = jax.flatten_util.ravel_pytree(arrays)

    @jax.jit
    def value(flat):
        return bound(eqx.combine(unravel(flat), rest), observations, jnp.arange(4), noise, EULER).weighted()

    steps = 1e-5 * jnp.eye(flat.size)
    differences = (jax.vmap(lambda e: value(flat + e))(steps) - jax.vmap(lambda e: value(flat - e))(steps)) / 2e-5
    np.testing.assert_allclose(jax.grad(value)(flat), differences, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_framed_gaussian_is_the_same_law_as_the_plain_one(getkey, diagonal):
    root = jnp.tril(jr.normal(getkey(), (2, 3, 3))) * (jnp.eye(3) if diagonal else jnp.ones((3, 3)))[None]
    covariance = root @ jnp.swapaxes(root, 1, 2) + 0.1 * jnp.eye(3)[None]
    guess = WhitenedGaussian.from_covariance(jr.normal(getkey(), (2, 3)), covariance, diagonal)
    framed = FramedGaussian.around(guess)
    np.testing.assert_allclose(framed.mean, guess.mean)
    np.testing.assert_allclose(framed.root, guess.root, atol=1e-14)

    moved = WhitenedGaussian(0.3 * jr.normal(getkey(), (2, 3)), framed.relative.raw_root + 0.2)
    framed = eqx.tree_at(lambda f: f.relative, framed, moved)
    normals = jr.normal(getkey(), (2, 3))
    np.testing.assert_allclose(framed.value(normals), framed.plain().value(normals), rtol=1e-12)
    np.testing.assert_allclose(framed.kl(), framed.plain().kl(), rtol=1e-12)
    centre = jnp.einsum("lij,lj->li", guess.root, moved.mean) + guess.mean
    np.testing.assert_allclose(framed.mean, centre, rtol=1e-12)
