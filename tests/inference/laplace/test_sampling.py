"""Draws of the posterior: exact where everything is linear and Gaussian, weighed or fitted one by one elsewhere."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from sgpd import integrators
from sgpd.inference.laplace.descent import Until, descend
from sgpd.inference.laplace.linear_model import LinearModel, ShootingState
from sgpd.inference.laplace.recording import Recording
from sgpd.inference.laplace.sampling import (
    extra_costs,
    importance_sample_size,
    randomise_then_optimise,
    resampled,
    weights_of,
)
from sgpd.inference.posterior.field import sample_features
from sgpd.inference.posterior.joint import Drawn, Joint, Unknowns
from tests.inference.cases import NOISE, STEP, one_step_problem

EULER = integrators.get("euler")
DRAWS = 4096
FAR = 5  # standard errors
SEEN = np.array([[0.4, 0.9], [-1.0, -1.2]])  # of two pieces that stand still, both rows
START_STD = 0.25  # prior and data say about as much about a start


def in_line(rows, observed, steps, pinned):
    """Pieces of rows (r, n, 1) whose steps may be 0."""
    r, n, _ = rows.shape
    line = lambda values: np.asarray(values).reshape(r * n, *np.shape(values)[2:])
    return Recording(
        states=line(rows),
        observed=line(observed),
        steps=line(np.concatenate([np.zeros((r, 1)), steps], axis=1)),
        place=np.arange(r * n).reshape(r, n),
        real=np.ones((r, n), bool),
        pinned=pinned,
        center=np.zeros(1),
        start_std=np.array([START_STD]),
    )


@pytest.fixture(scope="module")
def case():
    """Four Euler steps from known starts through the inducing points, and two latent starts that are seen twice.

    Random features change nothing at the inducing points, so the exact posterior is that of two small regressions.
    """
    observations, parameters, root, change = one_step_problem()
    recording = in_line(
        np.concatenate([observations.states, SEEN[:, :, None]]),
        np.concatenate([observations.observed, np.ones((2, 2, 1), bool)]),
        np.concatenate([observations.steps, np.zeros((2, 1))]),
        np.arange(6) < 4,
    )
    design = STEP * root
    precisions = np.eye(4) + design.T @ design / NOISE**2, (1 / START_STD**2 + 2 / NOISE**2) * np.eye(2)
    rights = design.T @ change / NOISE**2, SEEN.sum(axis=1) / NOISE**2
    covariance = np.zeros((6, 6))
    covariance[:4, :4], covariance[4:, 4:] = (np.linalg.inv(precision) for precision in precisions)
    return parameters.field, recording, covariance @ np.concatenate(rights), covariance


def problem(posterior, recording, rows):
    """Rollouts that begin every so many rows, from the data."""
    model = LinearModel.of(posterior, EULER, recording, np.array([NOISE]))
    rollouts = recording.rollouts(rows)
    return model, ShootingState(np.zeros(4), recording.states[rollouts.first], rollouts)


def optimum(posterior, recording):
    """By one step of Newton's method from anywhere, since the problem is linear."""
    model, at = problem(posterior, recording, 2)
    at = model.improved(at, model.linearise(at).equations)
    return model, at, model.linearise(at).equations


def gaussian_around(model, at, equations):
    best = Unknowns(at.u, at.starts)
    return Joint.laplace(best, equations, equations.solve(at.u), model.recording.pinned, model.noise)


def test_draws_have_the_mean_and_covariance_of_the_exact_posterior(case):
    posterior, recording, mean, covariance = case
    model, at, _ = optimum(posterior, recording)
    np.testing.assert_allclose(at.u, mean[:4], rtol=1e-6)  # inducing values have a nugget of 1e-8
    np.testing.assert_allclose(at.starts[4:, 0], mean[4:], rtol=1e-6)

    features = sample_features(np.random.default_rng(1), posterior, (4,), "quasi", DRAWS)
    draws, usable = randomise_then_optimise(model, at, features, np.random.default_rng(2))
    assert usable.all()
    known = recording.in_pieces(recording.states)[:4, 0]
    np.testing.assert_array_equal(draws.starts[:, :4], np.broadcast_to(known, (DRAWS, 4, 1)))

    assert_drawn_from(draws, mean, covariance)


def assert_drawn_from(draws, mean, covariance):
    unknowns = np.concatenate([draws.u, draws.starts[:, 4:, 0]], axis=1)
    normal = np.linalg.solve(np.linalg.cholesky(covariance), (unknowns - mean).T)
    assert np.abs(normal.mean(axis=1)).max() < FAR / np.sqrt(len(unknowns))
    errors = np.where(np.eye(6), np.sqrt(2 / len(unknowns)), np.sqrt(1 / len(unknowns)))
    assert np.abs((np.cov(normal) - np.eye(6)) / errors).max() < FAR


def test_a_linear_model_tells_the_cost_of_every_draw(case):
    """Also of draws far out, and of starts: the cost is that of two regressions, a quadratic."""
    posterior, recording, _, _ = case
    model, at, equations = optimum(posterior, recording)
    joint = gaussian_around(model, at, equations)
    wide = eqx.tree_at(lambda j: (j.root, j.start_root), joint, (5 * joint.root, 5 * joint.start_root))
    for gaussian in (joint, wide):
        drawn = silenced(gaussian.draw(7, 100, posterior, (4,), "quasi"))
        extra = extra_costs(model, at, equations, drawn)
        assert np.abs(extra).max() < 1e-10  # of costs up to some hundred
        assert importance_sample_size(weights_of(extra)) == pytest.approx(100, rel=1e-10)


def test_weights_make_draws_of_the_gaussian_those_of_the_posterior():
    """Three Euler steps are not linear in the field: against importance sampling from the prior, by NumPy alone."""
    _, parameters, _, _ = one_step_problem()
    posterior = parameters.field
    rows = np.array([-0.9, -0.1, 0.5, 0.4])
    seen = np.array([[[False], [True], [True], [True]]])
    recording = in_line(rows[None, :, None], seen, np.full((1, 3), STEP), np.array([True]))
    model, at = problem(posterior, recording, 4)
    at, found, _ = descend(model, at, Until(1e-9))
    joint = gaussian_around(model, at, found.equations)
    drawn = silenced(joint.draw(3, 2**14, posterior, (4,), "quasi"))
    weights = weights_of(extra_costs(model, at, found.equations, drawn))
    worth, u = importance_sample_size(weights), np.asarray(drawn.unknowns.u)
    assert 0.2 * len(u) < worth < 0.9 * len(u)  # so there is something to be mended

    prior = np.random.default_rng(5).normal(size=(2**18, 4))
    density = np.exp(-misfits(prior, rows) / 2)
    density /= density.sum()
    mean = density @ prior
    std = np.sqrt(density @ (prior - mean) ** 2)
    error = std * np.sqrt(1 / worth + (density**2).sum())
    assert np.abs((weights @ u - mean) / error).max() < 4
    assert np.abs((u.mean(axis=0) - mean) / (std / np.sqrt(len(u)))).max() > 10  # the Gaussian's own draws do not
    # of a variance, as for a normal variable
    spread = np.sqrt(weights @ (u - weights @ u) ** 2)
    assert np.abs((spread / std - 1) / (error / std / np.sqrt(2))).max() < 4


def silenced(drawn):
    """The same draws without random features."""
    return Drawn(drawn.unknowns, drawn.features._replace(weights=tuple(map(jnp.zeros_like, drawn.features.weights))))


def misfits(u, rows):
    """Squares of residuals in units of the noise, of rollouts from the first row."""
    inducing, scale, variance = np.array([-1.0, -0.2, 0.7, 1.6]), 0.8, 1.5
    kernel = lambda x, y: variance * np.exp(-(((x[..., None] - y) / scale) ** 2) / 2)
    matrix = kernel(inducing, inducing) + 1e-8 * variance * np.eye(4)
    update = np.linalg.solve(np.linalg.cholesky(matrix).T, u.T).T  # v = L⁻ᵀ u
    x, total = np.full(len(u), rows[0]), np.zeros(len(u))
    for row in rows[1:]:
        x = x + STEP * (kernel(x, inducing) * update).sum(axis=1)
        total += ((x - row) / NOISE) ** 2
    return total


def test_weights_leave_out_what_is_not_finite_and_cut_the_heaviest():
    weights = weights_of(np.array([0.0, 0.0, 0.0, 2.0, np.inf, np.nan]))
    np.testing.assert_allclose(weights[:4] / weights[0], [1, 1, 1, np.exp(-1)])
    assert not weights[4:].any()
    heavy = weights_of(np.append(-2 * np.log(50), np.zeros(99)))  # 50 against 99 ones: cut to 10 times the mean, 14.9
    assert heavy[0] == pytest.approx(14.9 / (14.9 + 99))
    assert importance_sample_size(np.zeros(5)) == 0 == weights_of(np.full(5, np.nan)).sum()


def test_draws_are_kept_as_often_as_their_weights_say_to_within_one():
    weights = np.array([0.0, 0.45, 0.3, 0.1, 0.1, 0.05, 0.0])
    kept = np.array([np.bincount(resampled(np.random.default_rng(k), weights, 8), minlength=7) for k in range(4000)])
    assert (kept.sum(axis=1) == 8).all()
    assert (np.abs(kept - 8 * weights) < 1).all()
    below = 8 * weights % 1
    error = np.sqrt(below * (1 - below) / len(kept))
    assert (np.abs(kept.mean(axis=0) - 8 * weights) <= 4 * error + 1e-12).all()


def test_kept_draws_are_those_of_the_posterior():
    """A Gaussian in six dimensions that is 1.7 times too wide: draws of it are worth a fifth of their number."""
    rng = np.random.default_rng(8)
    draws = rng.normal(size=(512, 6))
    weights = weights_of((draws**2).sum(axis=1) * (1 / 0.6**2 - 1))
    assert 80 < importance_sample_size(weights) < 130
    variances = [(draws[resampled(rng, weights, 128)] ** 2).mean() for _ in range(200)]
    weighed = (weights @ draws**2).mean()
    assert abs(np.mean(variances) - weighed) < 4 * np.std(variances) / np.sqrt(200)
