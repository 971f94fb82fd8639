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
from sgpd.inference.laplace.linear_model import LinearModel, Recording
from sgpd.inference.posterior.field import Features, feature_counts, sample_features
from tests.inference.dense import METHODS, dense, jacobians, problem


@eqx.filter_jit
def linearised(model, at, features=None):
    along, j = model.tangent(at, features)
    return along, j, model.regression(at, along, j)


def test_a_recording_is_padded_and_a_pinned_start_is_no_observation():
    model, at = problem("stormer-verlet", every=6)
    recording = model.recording
    assert recording.states.shape == (2, 17, 2)
    assert recording.steps.shape == (2, 16, 2)
    np.testing.assert_array_equal((recording.steps > 0).sum(axis=(1, 2)), [17, 10])  # one interval has two steps
    assert not recording.observed[0, 0].any()
    assert recording.observed[1, 0].all()
    np.testing.assert_array_equal(at.free(recording)[:, [0, 6, 12]], [[False, True, True], [True, True, True]])


def test_rows_between_restarts_are_rollouts():
    model, at = problem("rk4", every=6)
    field = model.posterior.mean()
    rows = eqx.filter_jit(model.roll)(field, at)
    for first, last in ((0, 6), (6, 12)):
        path = eqx.filter_jit(integrators.rollout)(
            model.integrator, field, at.starts[0, first], model.recording.steps[0, first : last - 1].reshape(-1), 2
        )
        np.testing.assert_allclose(rows[0, first:last], path.states, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("every", [100, 6])
def test_the_tangent_of_a_rollout_is_its_derivative_by_values_and_starts(method, every):
    model, at = problem(method, every)
    along, j, _ = linearised(model, at)
    rows, by_u, _, by_starts = jacobians(model, model.posterior, at)
    np.testing.assert_allclose(along.rows, rows, rtol=1e-11, atol=1e-11)
    # k(ξ, ξ)⁻¹ makes rounding larger
    np.testing.assert_allclose(j, by_u, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(along.linear_part, by_u @ at.u, rtol=1e-9, atol=1e-9)
    # A row answers to one start alone, the last before it in its own piece.
    free = at.free(model.recording)[None, None, None, :, :, None]
    np.testing.assert_allclose(along.by_start, jnp.einsum("rnkrmi->rnki", by_starts * free), rtol=1e-9, atol=1e-9)


def test_the_tangent_of_a_drawn_field_is_that_of_its_own_rollout(getkey):
    """Random features bend the rollout; the field stays linear in its inducing values."""
    model, at = problem("stormer-verlet", 6)
    posterior = model.posterior
    drawn = sample_features(np.random.default_rng(0), posterior, feature_counts(posterior, 8), "quasi", 1)
    features = Features(drawn.frequencies, tuple(weights[0] for weights in drawn.weights))
    along, j, _ = linearised(model, at, features)
    rows, by_u, _, _ = jacobians(model, posterior, at, features)
    np.testing.assert_allclose(along.rows, rows, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(j, by_u, rtol=1e-9, atol=1e-9)
    assert np.abs(rows - eqx.filter_jit(model.roll)(posterior.mean(), at)).max() > 1e-3


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("every", [100, 6])
def test_eliminating_the_starts_gives_the_same_step_as_solving_for_everything_at_once(damping, every):
    """With restarts, a start that is pinned, another that is not, a missing value and padding."""
    model, at = problem("stormer-verlet", every)
    _, _, equations = linearised(model, at)
    found = eqx.filter_jit(model.moved)(at, eqx.filter_jit(model.solve)(equations, at.u, damping))
    expected, _ = dense(model, at).solution(damping)
    np.testing.assert_allclose(found.u, expected[: at.u.size], rtol=1e-6, atol=1e-8)
    free = np.asarray(at.free(model.recording))
    np.testing.assert_allclose(found.starts[free].reshape(-1), expected[at.u.size :], rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(found.starts[0, 0], at.starts[0, 0])  # the first one is pinned


@pytest.mark.parametrize(("method", "every"), [("stormer-verlet", 100), ("stormer-verlet", 6), ("rk4", 100)])
def test_the_evidence_is_the_density_of_the_data_under_the_linear_model(method, every):
    model, at = problem(method, every)
    _, _, equations = linearised(model, at)
    solution = eqx.filter_jit(model.solve)(equations, at.u)
    written_out = dense(model, at)
    expected = multivariate_normal(*written_out.marginal()).logpdf(written_out.data)
    np.testing.assert_allclose(model.log_evidence(solution), expected, rtol=1e-8)


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
    model = LinearModel(guess, method, recording, jnp.asarray(noise_std(data)))
    shot = shooting.multiple_shooting(model, rows, [10, 30, len(times)])
    np.testing.assert_allclose(shot.noise, np.sqrt(0.1), rtol=0.2)  # 100 rows: 7 % is one standard error
    truth = system.simulate(system.x0, 0.1 * np.arange(401))
    path = eqx.filter_jit(integrators.rollout)(
        method, shot.posterior.mean(), jnp.asarray(system.x0), jnp.full(400, 0.1)
    )
    assert np.sqrt(((path.states - truth) ** 2).sum(axis=1).mean()) < 0.4
