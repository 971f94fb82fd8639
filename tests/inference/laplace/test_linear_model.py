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
from sgpd.inference.laplace.linear_model import LinearModel, Tangent
from sgpd.inference.laplace.recording import Layout, Recording
from sgpd.inference.posterior.field import Features, feature_counts, sample_features
from tests.inference.dense import METHODS, NOISE, dense, jacobians, problem, roll

LONG = (70, 11)  # rows of two runs, of which the first goes through three blocks


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("every", "rows"), [(100, (17, 11)), (6, (17, 11)), (25, LONG)])
def test_the_tangent_of_a_rollout_is_its_derivative_by_values_and_starts(method, every, rows):
    """And the equations for u are made of the derivative by u."""
    model, at, layout = problem(method, every, rows=rows)
    found = model.linearise(at)
    states, by_u, _, by_starts = jacobians(model, model.posterior, at, layout.place)
    along = Tangent(*map(layout.in_pieces, found.along))
    np.testing.assert_allclose(along.rows, states, rtol=1e-11, atol=1e-11)
    # k(ξ, ξ)⁻¹ makes rounding larger
    np.testing.assert_allclose(along.linear_part, by_u @ at.u, rtol=1e-9, atol=1e-9)
    # A row answers to one start alone, the last before it in its own piece.
    free = at.free(model.recording)[None, None, None, :, :, None]
    by_start = jnp.einsum("rncbki->rnci", by_starts * free)
    np.testing.assert_allclose(along.by_start, by_start, rtol=1e-9, atol=1e-9)
    seen = (layout.in_pieces(model.recording.observed) & layout.real[:, :, None])[..., None]
    weighed = np.where(seen, np.asarray(by_u) / np.asarray(NOISE)[:, None], 0.0).reshape(-1, at.u.size)
    np.testing.assert_allclose(found.equations.matrix, weighed.T @ weighed + np.eye(at.u.size), rtol=1e-8, atol=1e-8)


def test_the_tangent_of_a_drawn_field_is_that_of_its_own_rollout(getkey):
    """Random features bend the rollout; the field stays linear in its inducing values."""
    model, at, layout = problem("stormer-verlet", 6)
    posterior = model.posterior
    drawn = sample_features(np.random.default_rng(0), posterior, feature_counts(posterior, 8), "quasi", 1)
    features = Features(drawn.frequencies, tuple(weights[0] for weights in drawn.weights))
    along = Tangent(*map(layout.in_pieces, eqx.filter_jit(model.tangent)(at, features)))
    rows, by_u, _, _ = jacobians(model, posterior, at, layout.place, features)
    np.testing.assert_allclose(along.rows, rows, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(along.linear_part, by_u @ at.u, rtol=1e-9, atol=1e-9)
    without, *_ = jacobians(model, posterior, at, layout.place)
    assert np.abs(rows - without).max() > 1e-3


def test_the_misfit_of_a_field_is_that_of_its_rollouts():
    model, at, layout = problem("rk4", 6)
    field = model.posterior.mean()
    rows, states = roll(model, field, at, layout.place), layout.in_pieces(model.recording.states)
    seen = layout.in_pieces(model.recording.observed) & layout.real[:, :, None]
    expected = (np.where(seen, (np.asarray(rows) - states) / np.asarray(NOISE), 0.0) ** 2).sum()
    begins = at.rollouts.begins.reshape(-1)
    starts, of = at.starts.reshape(-1, 2)[begins], (jnp.cumsum(begins) - 1).reshape(at.rollouts.begins.shape)
    np.testing.assert_allclose(eqx.filter_jit(model.misfit)(field, starts, of, at.rollouts), expected, rtol=1e-12)


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize(("every", "rows"), [(100, (17, 11)), (6, (17, 11)), (25, LONG)])
def test_eliminating_the_starts_gives_the_same_step_as_solving_for_everything_at_once(damping, every, rows):
    """With restarts, a start that is pinned, another that is not, a missing value and padding."""
    given = model, at, layout = problem("stormer-verlet", every, rows=rows)
    found = model.improved(at, model.linearise(at).equations, jnp.array(damping))
    expected, _ = dense(given).solution(damping)
    np.testing.assert_allclose(found.u, expected[: at.u.size], rtol=1e-6, atol=1e-8)
    free = np.asarray(at.free(model.recording))
    np.testing.assert_allclose(found.starts[free].reshape(-1), expected[at.u.size :], rtol=1e-6, atol=1e-8)
    first = layout.place[0, 0]
    assert first == 0  # the first start is pinned
    np.testing.assert_array_equal(found.starts[0, 0], at.starts[0, 0])


@pytest.mark.parametrize(
    ("method", "every", "rows"),
    [("stormer-verlet", 100, (17, 11)), ("stormer-verlet", 6, (17, 11)), ("rk4", 100, (17, 11)), ("rk4", 25, LONG)],
)
def test_the_evidence_is_the_density_of_the_data_under_the_linear_model(method, every, rows):
    """By the equations with all starts, and by those for u alone."""
    given = model, at, _ = problem(method, every, rows=rows)
    found, written_out = model.linearise(at), dense(given)
    expected = multivariate_normal(*written_out.marginal()).logpdf(written_out.data)
    for solution in (
        eqx.filter_jit(model.solve)(found.equations, at.u),
        eqx.filter_jit(model.sums)(at, found.along).solved(),
    ):
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
    lengths = [10, 30, len(times)]
    layout = Layout.of(pieces, lengths)
    recording = Recording.of(data, pieces, np.array([True]), layout)
    guess = initial_posterior(structures.Separable(), data)
    model = LinearModel(guess, method, recording, jnp.asarray(noise_std(data)))
    shot = shooting.multiple_shooting(model, layout, rows, lengths)
    np.testing.assert_allclose(shot.noise, np.sqrt(0.1), rtol=0.2)  # 100 rows: 7 % is one standard error
    truth = system.simulate(system.x0, 0.1 * np.arange(401))
    path = eqx.filter_jit(integrators.rollout)(
        method, shot.posterior.mean(), jnp.asarray(system.x0), jnp.full(400, 0.1)
    )
    assert np.sqrt(((path.states - truth) ** 2).sum(axis=1).mean()) < 0.4
