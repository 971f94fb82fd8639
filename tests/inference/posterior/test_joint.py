"""The joint Gaussian is the inverse of the full Hessian, and draws and conditioning are those of that Gaussian."""

import dataclasses
import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import sgpd
from sgpd.inference.posterior.joint import Joint, Stored, Unknowns
from tests.inference.dense import NOISE, dense, problem

DRAWS = 20_000
FAR = 5  # standard errors; hundreds of numbers are compared, with a fixed key


@pytest.fixture(scope="module", params=[(False, False), (True, False)], ids=["both latent", "first pinned"])
def case(request):
    """A joint Gaussian, and mean and covariance of (u, starts that are not known) by the full Hessian."""
    given = model, at = problem("stormer-verlet", pinned=request.param)
    equations = model.linearise(at).equations
    joint = Joint.laplace(Unknowns(at.u, at.starts), equations, equations.solve(at.u), np.array(request.param), NOISE)
    written_out = dense(given)
    return joint, written_out.here, written_out.solution()[1], ~np.array(request.param)


def stacked(unknowns, free):
    """(draws, p + free starts)."""
    starts = np.asarray(unknowns.starts)[..., free, :]
    return np.concatenate([unknowns.u, starts.reshape(*starts.shape[:-2], -1)], axis=-1)


def assert_drawn_from(draws, mean, covariance):
    """Seen from the Gaussian, draws are standard normal: mean 0 and covariance 1, within standard errors."""
    normal = np.linalg.solve(np.linalg.cholesky(covariance), (np.asarray(draws) - mean).T)
    count, unknowns = len(draws), len(mean)
    assert np.abs(normal.mean(axis=1)).max() < FAR / np.sqrt(count)
    errors = np.where(np.eye(unknowns), np.sqrt(2 / count), np.sqrt(1 / count))
    assert np.abs((np.cov(normal) - np.eye(unknowns)) / errors).max() < FAR


def test_the_covariance_is_the_inverse_of_the_full_hessian(case):
    joint, _, expected, free = case
    gain, own = joint.gain[free], joint.start_root[free]
    values = joint.root @ joint.root.T
    d = gain.shape[1]
    gain = gain.reshape(-1, joint.mean.size)
    found = np.block([[values, values @ gain.T], [gain @ values, gain @ values @ gain.T]])
    for index in range(len(own)):
        place = slice(joint.mean.size + d * index, joint.mean.size + d * (index + 1))
        found[place, place] += own[index] @ own[index].T
        piece = int(np.flatnonzero(free)[index])
        np.testing.assert_allclose(joint.start_covariance(piece), expected[place, place], rtol=1e-6)
    # Seen from the expected covariance, so that directions which the data determine sharply count as much as others.
    root = np.linalg.cholesky(expected)
    np.testing.assert_allclose(np.linalg.solve(root, np.linalg.solve(root, found).T), np.eye(len(found)), atol=1e-6)
    np.testing.assert_array_equal(np.triu(joint.root, 1), 0)


def test_draws_have_that_mean_and_covariance_and_a_pinned_start_has_no_spread(case):
    joint, mean, covariance, free = case
    np.testing.assert_array_equal(stacked(joint.best, free), mean)
    draws = joint.gaussian(7, DRAWS)
    assert_drawn_from(stacked(draws, free), mean, covariance)
    pinned = joint.starts[~free]
    np.testing.assert_array_equal(draws.starts[:, ~free], np.broadcast_to(pinned, (DRAWS, *pinned.shape)))


def test_a_start_that_becomes_known_moves_values_and_draws_as_conditioning_does(case):
    joint, mean, covariance, _ = case
    p, piece = joint.mean.size, 1  # latent in both cases, and the last of the unknowns
    x0 = joint.starts[piece] + jnp.array([0.08, -0.05])
    onto = np.linalg.solve(covariance[-2:, -2:], covariance[-2:, :p]).T
    expected = mean[:p] + onto @ np.asarray(x0 - joint.starts[piece])
    np.testing.assert_allclose(joint.given(piece, x0, joint.best).u, expected, rtol=1e-6, atol=1e-8)
    assert np.abs(expected - mean[:p]).max() > 1e-2

    draws = joint.given(piece, x0, joint.gaussian(7, DRAWS))
    assert_drawn_from(draws.u, expected, covariance[:p, :p] - onto @ covariance[-2:, :p])


def test_a_start_is_expected_where_it_is_probable_and_never_where_it_is_pinned(case):
    joint, _, covariance, free = case
    std = np.sqrt(np.diag(covariance)[-2:])
    assert joint.expects(1, joint.starts[1])
    assert joint.expects(1, joint.starts[1] + jnp.array([std[0], 0.0]) / 2)
    assert not joint.expects(1, joint.starts[1] + 10 * std)
    assert joint.expects(0, joint.starts[0]) == free[0]

    # The ellipsoid of probability 0.9 is left by a tenth of the draws.
    inside = [joint.expects(1, x, 0.9) for x in joint.gaussian(1, 400).starts[:, 1]]
    assert abs(np.mean(inside) - 0.9) < 4 * np.sqrt(0.09 / 400)


def test_stored_draws_are_drawn_without_repeats_while_there_are_any_and_by_the_seed_alone(case):
    joint, posterior = case[0], problem("stormer-verlet").model.kernels.posterior
    own = jnp.arange(9.0)
    unknowns = Unknowns(jnp.tile(own[:, None], (1, joint.mean.size)), jnp.tile(own[:, None, None], (1, 2, 2)))
    kept = np.array([0, 1, 3, 4, 6, 7, 8])
    joint = dataclasses.replace(joint, stored=Stored.of(unknowns, kept, 3))
    draw = lambda seed, count: joint.draw(seed, count, posterior, (4, 4), "quasi")
    key, other = 5, 6
    weights = {}
    for count in (3, 7, 17):
        drawn = draw(key, count)
        index = np.asarray(drawn.unknowns.u[:, 0])
        np.testing.assert_array_equal(drawn.unknowns.starts[:, 0, 0], index)  # values and starts stay together
        times = np.bincount(index.astype(int), minlength=9)
        assert times[[2, 5]].sum() == 0
        assert times[kept].max() - times[kept].min() <= 1
        for one, own_weights in zip(index, np.asarray(drawn.features.weights[0]), strict=True):
            # a draw was fitted with its own features, so it has the same ones whenever it is drawn
            np.testing.assert_array_equal(weights.setdefault(one, own_weights), own_weights)
    np.testing.assert_array_equal(draw(key, 7).unknowns.u, draw(key, 7).unknowns.u)
    assert not np.array_equal(draw(other, 7).unknowns.u, draw(key, 7).unknowns.u)
    assert len({float(one.sum()) for one in weights.values()}) == 7


def test_more_paths_begin_with_the_same_ones(case):
    joint, posterior = case[0], problem("stormer-verlet").model.kernels.posterior
    few, many = (joint.draw(3, count, posterior, (4, 4), "quasi") for count in (5, 40))
    parts = lambda drawn: (drawn.unknowns.u, drawn.unknowns.starts, *drawn.features.weights)
    for a, b in zip(parts(few), parts(many), strict=True):
        np.testing.assert_allclose(b[:5], a, rtol=1e-12, atol=1e-14)
    for a, b in zip(few.features.frequencies, many.features.frequencies, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("noise", [1e-3, 1e-6])
def test_a_recording_with_hardly_any_noise_has_a_posterior(noise):
    """Precisions whose conditions are beyond 1e9: their inverses are symmetric only to rounding."""
    system = sgpd.systems.get("pendulum")
    times = 0.1 * np.arange(60)
    states = system.simulate(system.x0, times)
    data = sgpd.Trajectories.from_arrays(times, states + noise * np.random.default_rng(0).normal(size=states.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # at the smaller noise, draws or residuals may be worth a word
        model = sgpd.fit(data, "separable", inference=sgpd.Laplace(stored=32))
    assert np.isfinite(model.facts.fit.log_evidence)
    assert np.isfinite(model.joint.root).all()
