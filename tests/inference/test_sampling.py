"""Where everything is linear and Gaussian, randomise-then-optimise draws from the exact posterior."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from sgpd import integrators
from sgpd.inference.joint import Joint, Unknowns
from sgpd.inference.linear import Recording, Shooting, moved, solve
from sgpd.inference.posterior import sample_features
from sgpd.inference.sampling import Fresh, Priors, randomise_then_optimise, relative_rise
from sgpd.inference.shooting import linearise
from tests.inference.cases import NOISE, STEP, one_step_problem

EULER = integrators.get("euler")
DRAWS = 4096
FAR = 5  # standard errors
SEEN = np.array([[0.4, 0.9], [-1.0, -1.2]])  # of two pieces that stand still, both rows
REACH = 0.25  # prior and data say about as much about a start


@pytest.fixture(scope="module")
def case():
    """Four Euler steps from known starts through the inducing points, and two latent starts that are seen twice.

    Random features change nothing at the inducing points, so the exact posterior is that of two small regressions.
    """
    observations, parameters, root, change = one_step_problem()
    recording = Recording(
        states=jnp.concatenate([observations.states, jnp.asarray(SEEN)[:, :, None]]),
        observed=jnp.concatenate([observations.observed, jnp.ones((2, 2, 1), bool)]),
        steps=jnp.concatenate([observations.steps, jnp.zeros((2, 1))])[:, :, None],
        pinned=jnp.arange(6) < 4,
        centre=jnp.zeros((6, 1)),
        reach=jnp.array([REACH]),
    )
    design = STEP * root
    precisions = np.eye(4) + design.T @ design / NOISE**2, (1 / REACH**2 + 2 / NOISE**2) * np.eye(2)
    rights = design.T @ change / NOISE**2, SEEN.sum(axis=1) / NOISE**2
    covariance = np.zeros((6, 6))
    covariance[:4, :4], covariance[4:, 4:] = (np.linalg.inv(precision) for precision in precisions)
    return parameters.field, recording, covariance @ np.concatenate(rights), covariance


def optimum(posterior, recording):
    """By one step of Newton's method from anywhere, since the problem is linear."""
    noise, restart = jnp.array([NOISE]), jnp.broadcast_to(jnp.arange(2) == 0, (6, 2))
    at = Shooting(jnp.zeros(4), recording.states, restart)
    equations = linearise(posterior, EULER, recording, at, noise).equations
    solution = eqx.filter_jit(solve)(equations, (noise / recording.reach) ** 2, at.u)
    at = eqx.filter_jit(moved)(recording, at, solution, noise)
    return noise, at, linearise(posterior, EULER, recording, at, noise).equations, solution


def test_draws_have_the_mean_and_covariance_of_the_exact_posterior(case):
    posterior, recording, mean, covariance = case
    noise, at, _, _ = optimum(posterior, recording)
    np.testing.assert_allclose(at.u, mean[:4], rtol=1e-6)  # inducing values have a nugget of 1e-8
    np.testing.assert_allclose(at.starts[4:, 0, 0], mean[4:], rtol=1e-6)

    features = sample_features(np.random.default_rng(1), posterior, 4, "quasi", DRAWS)
    fresh = Fresh.of(np.random.default_rng(2), DRAWS, recording, at)
    same = Priors(jnp.broadcast_to(jnp.eye(4), (DRAWS, 4, 4)), jnp.broadcast_to(noise, (DRAWS, 1)))
    draws, usable = randomise_then_optimise(posterior, EULER, recording, at, same, features, fresh)
    assert usable.all()
    np.testing.assert_array_equal(draws.starts[:, :4], np.broadcast_to(recording.states[:4, 0], (DRAWS, 4, 1)))

    assert_drawn_from(draws, mean, covariance)


def assert_drawn_from(draws, mean, covariance):
    unknowns = np.concatenate([draws.u, draws.starts[:, 4:, 0]], axis=1)
    normal = np.linalg.solve(np.linalg.cholesky(covariance), (unknowns - mean).T)
    assert np.abs(normal.mean(axis=1)).max() < FAR / np.sqrt(len(unknowns))
    errors = np.where(np.eye(6), np.sqrt(2 / len(unknowns)), np.sqrt(1 / len(unknowns)))
    assert np.abs((np.cov(normal) - np.eye(6)) / errors).max() < FAR


def test_draws_with_kernels_and_noise_of_their_own_are_from_the_posteriors_that_these_have(case):
    """Half of the draws with one prior u = B w and one noise, half with others: two closed formulas."""
    posterior, recording, _, _ = case
    _, at, _, _ = optimum(posterior, recording)
    _, _, root, change = one_step_problem()
    bases = [np.tril(np.random.default_rng(k).normal(size=(4, 4))) + 2 * np.eye(4) for k in range(2)]
    noises = [0.5 * NOISE, 2 * NOISE]
    half = lambda pair: jnp.asarray(np.repeat(np.stack(pair), DRAWS // 2, axis=0))
    fresh = Fresh.of(np.random.default_rng(2), DRAWS, recording, at)
    priors = Priors(half(bases), half(noises)[:, None])
    features = sample_features(np.random.default_rng(1), posterior, 4, "quasi", DRAWS)
    draws, usable = randomise_then_optimise(posterior, EULER, recording, at, priors, features, fresh)
    assert usable.all()
    for k, (basis, noise) in enumerate(zip(bases, noises, strict=True)):
        covariance, right = np.zeros((6, 6)), np.zeros(6)
        precision = np.linalg.inv(basis @ basis.T) + STEP**2 * root.T @ root / noise**2
        covariance[:4, :4], right[:4] = np.linalg.inv(precision), STEP * root.T @ change / noise**2
        covariance[4:, 4:] = np.eye(2) / (1 / REACH**2 + 2 / noise**2)
        right[4:] = SEEN.sum(axis=1) / noise**2
        these = slice(k * DRAWS // 2, (k + 1) * DRAWS // 2)
        assert_drawn_from(Unknowns(draws.u[these], draws.starts[these]), covariance @ right, covariance)


def test_gaussian_draws_cost_more_than_the_optimum_by_a_chi_squared_variable(case):
    """With six unknowns: mean 1 and variance 2/6 in units of their number; half as wide, a quarter."""
    posterior, recording, _, _ = case
    noise, at, equations, solution = optimum(posterior, recording)
    joint = eqx.filter_jit(Joint.laplace)(recording, at, equations, solution, noise)
    narrow = eqx.tree_at(lambda j: (j.root, j.start_root), joint, (joint.root / 2, joint.start_root / 2))
    for gaussian, factor in ((joint, 1.0), (narrow, 0.25)):
        drawn = gaussian.draw(7, DRAWS, posterior, 4, "quasi")
        lowest = linearise(posterior, EULER, recording, at, noise).cost
        rise = np.asarray(relative_rise(posterior, EULER, recording, at, noise, joint, drawn, lowest)) / factor
        assert rise.min() > 0
        assert abs(rise.mean() - 1) < 4 * np.sqrt(2 / 6 / DRAWS)
        # a chi-squared variable with k degrees of freedom has an excess kurtosis of 12/k
        assert abs(rise.var() - 2 / 6) < 4 * 2 / 6 * np.sqrt((2 + 12 / 6) / DRAWS)
