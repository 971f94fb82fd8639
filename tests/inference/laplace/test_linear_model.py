"""The linear model around a rollout is the one that a full Jacobian gives, and shooting along it finds a field."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sgpd import integrators, structures, systems
from sgpd.data import Trajectories, windows
from sgpd.data.smoothing import noise_std, smooth_run
from sgpd.inference.initial import initial_posterior
from sgpd.inference.laplace import shooting
from sgpd.inference.laplace.linear_model import Recording, log_evidence, moved, regression, roll, solve, tangent
from sgpd.inference.posterior.field import Features, feature_counts, sample_features
from tests.inference.dense import METHODS, NOISE, dense, jacobians, problem


@eqx.filter_jit
def linearised(posterior, integrator, recording, at, features=None):
    along, j = tangent(posterior, integrator, recording, at, features)
    return along, j, regression(recording, at, along, j, NOISE)


def test_a_recording_is_padded_and_a_pinned_start_is_no_observation():
    _, _, recording, at = problem("stormer-verlet", every=6)
    assert recording.states.shape == (2, 17, 2)
    assert recording.steps.shape == (2, 16, 2)
    np.testing.assert_array_equal((recording.steps > 0).sum(axis=(1, 2)), [17, 10])  # one interval has two steps
    assert not recording.observed[0, 0].any()
    assert recording.observed[1, 0].all()
    np.testing.assert_array_equal(at.free(recording)[:, [0, 6, 12]], [[False, True, True], [True, True, True]])


def test_rows_between_restarts_are_rollouts():
    posterior, method, recording, at = problem("rk4", every=6)
    field = posterior.mean()
    rows = eqx.filter_jit(roll)(method, field, recording, at)
    for first, last in ((0, 6), (6, 12)):
        path = eqx.filter_jit(integrators.rollout)(
            method, field, at.starts[0, first], recording.steps[0, first : last - 1].reshape(-1), 2
        )
        np.testing.assert_allclose(rows[0, first:last], path.states, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("every", [100, 6])
def test_the_tangent_of_a_rollout_is_its_derivative_by_values_and_starts(method, every):
    posterior, integrator, recording, at = problem(method, every)
    along, j, _ = linearised(posterior, integrator, recording, at)
    rows, by_u, _, by_starts = jacobians(posterior, posterior, integrator, recording, at)
    np.testing.assert_allclose(along.rows, rows, rtol=1e-11, atol=1e-11)
    # k(ξ, ξ)⁻¹ makes rounding larger
    np.testing.assert_allclose(j, by_u, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(along.linear_part, by_u @ at.u, rtol=1e-9, atol=1e-9)
    # A row answers to one start alone, the last before it in its own piece.
    free = at.free(recording)[None, None, None, :, :, None]
    np.testing.assert_allclose(along.by_start, jnp.einsum("rnkrmi->rnki", by_starts * free), rtol=1e-9, atol=1e-9)


def test_the_tangent_of_a_drawn_field_is_that_of_its_own_rollout(getkey):
    """Random features bend the rollout; the field stays linear in its inducing values."""
    posterior, integrator, recording, at = problem("stormer-verlet", 6)
    drawn = sample_features(np.random.default_rng(0), posterior, feature_counts(posterior, 8), "quasi", 1)
    features = Features(drawn.frequencies, tuple(weights[0] for weights in drawn.weights))
    along, j, _ = linearised(posterior, integrator, recording, at, features)
    rows, by_u, _, _ = jacobians(posterior, posterior, integrator, recording, at, features)
    np.testing.assert_allclose(along.rows, rows, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(j, by_u, rtol=1e-9, atol=1e-9)
    assert np.abs(rows - eqx.filter_jit(roll)(integrator, posterior.mean(), recording, at)).max() > 1e-3


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("every", [100, 6])
def test_eliminating_the_starts_gives_the_same_step_as_solving_for_everything_at_once(damping, every):
    """With restarts, a start that is pinned, another that is not, a missing value and padding."""
    posterior, integrator, recording, at = problem("stormer-verlet", every)
    _, _, equations = linearised(posterior, integrator, recording, at)
    solution = eqx.filter_jit(solve)(equations, (NOISE / recording.start_std) ** 2, at.u, damping)
    found = eqx.filter_jit(moved)(recording, at, solution, NOISE)
    expected, _ = dense(posterior, integrator, recording, at).solution(damping)
    np.testing.assert_allclose(found.u, expected[: at.u.size], rtol=1e-6, atol=1e-8)
    free = np.asarray(at.free(recording))
    np.testing.assert_allclose(found.starts[free].reshape(-1), expected[at.u.size :], rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(found.starts[0, 0], at.starts[0, 0])  # the first one is pinned


@pytest.mark.parametrize(("method", "every"), [("stormer-verlet", 100), ("stormer-verlet", 6), ("rk4", 100)])
def test_the_evidence_is_the_density_of_the_data_under_the_linear_model(method, every):
    posterior, integrator, recording, at = problem(method, every)
    _, _, equations = linearised(posterior, integrator, recording, at)
    solution = eqx.filter_jit(solve)(equations, (NOISE / recording.start_std) ** 2, at.u)
    model = dense(posterior, integrator, recording, at)
    expected = multivariate_normal(*model.marginal()).logpdf(model.data)
    np.testing.assert_allclose(log_evidence(recording, solution, NOISE), expected, rtol=1e-8)


def test_shooting_finds_a_field_whose_one_long_rollout_fits_a_noisy_pendulum():
    """Its misfit is the noise, and its error over four times the recording is a fraction of the noise."""
    system = systems.get("pendulum")
    times, states = system.record(seed=3)
    data = Trajectories.from_arrays(times, states)
    pieces = windows(data, len(times))
    rows = smooth_run(data.runs[0]).states[None].copy()
    rows[0, 0] = states[0]
    method = integrators.get("stormer-verlet")
    recording = Recording.of(data, pieces, np.array([True]))
    guess = initial_posterior(structures.Separable(), data)
    shot = shooting.multiple_shooting(guess, method, recording, rows, noise_std(data), [10, 30, len(times)])
    np.testing.assert_allclose(shot.noise, np.sqrt(0.1), rtol=0.2)  # 100 rows: 7 % is one standard error
    truth = system.simulate(system.x0, 0.1 * np.arange(401))
    path = eqx.filter_jit(integrators.rollout)(
        method, shot.posterior.mean(), jnp.asarray(system.x0), jnp.full(400, 0.1)
    )
    assert np.sqrt(((path.states - truth) ** 2).sum(axis=1).mean()) < 0.4
