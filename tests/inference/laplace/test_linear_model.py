"""The linear model around a rollout is the one that a full Jacobian gives, and shooting along it finds a field."""

from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sgpd import integrators, structures, systems
from sgpd.data import Trajectories, windows
from sgpd.data.smoothing import noise_std, smooth_run
from sgpd.inference import chunks
from sgpd.inference.initial import initial_posterior
from sgpd.inference.laplace import shooting
from sgpd.inference.laplace.linear_model import LinearModel
from sgpd.inference.laplace.recording import Recording
from sgpd.inference.posterior.field import Features, feature_counts, sample_features
from tests.inference.dense import METHODS, NOISE, dense, jacobians, problem

LONG = (70, 11)  # rows of two runs, of which the first goes through several blocks


@pytest.fixture(params=["one chunk", "several chunks"])
def chunked(request, monkeypatch):
    """Rollouts that go on from one chunk to the next give the same; 48 entries are three blocks."""
    if request.param == "several chunks":
        monkeypatch.setattr(chunks, "CHUNK", 48)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("every", "rows"), [(100, (17, 11)), (6, (17, 11)), (25, LONG), (100, LONG)])
@pytest.mark.usefixtures("chunked")
def test_the_tangent_of_a_rollout_is_its_derivative_by_values_and_starts(method, every, rows):
    """And the equations for u are made of the derivative by u."""
    model, at = problem(method, every, rows=rows)
    along, equations, _ = model.linearise(at)
    states, by_u, _, by_starts = map(np.asarray, jacobians(model, model.kernels.posterior, at))
    np.testing.assert_allclose(along.rows, states, rtol=1e-11, atol=1e-11)
    # k(ξ, ξ)⁻¹ makes rounding larger
    np.testing.assert_allclose(along.explained, by_u @ at.u, rtol=1e-9, atol=1e-9)
    # A row answers to one start alone, the last before it in its own piece.
    by_start = np.einsum("ncsi,s->nci", by_starts, at.rollouts.free)
    np.testing.assert_allclose(along.by_start, by_start, rtol=1e-9, atol=1e-9)
    weighed = np.where(model.recording.observed[:, :, None], by_u / NOISE[:, None], 0.0).reshape(-1, at.u.size)
    np.testing.assert_allclose(equations.matrix, weighed.T @ weighed + np.eye(at.u.size), rtol=1e-8, atol=1e-8)


def test_the_tangent_of_a_drawn_field_is_that_of_its_own_rollout():
    """Random features bend the rollout; the field stays linear in its inducing values."""
    model, at = problem("stormer-verlet", 6)
    posterior = model.kernels.posterior
    drawn = sample_features(np.random.default_rng(0), posterior, feature_counts(posterior, 8), "quasi", 1)
    features = Features(drawn.frequencies, tuple(weights[0] for weights in drawn.weights))
    along = replace(model, features=features).linearise(at).along
    rows, by_u, _, _ = map(np.asarray, jacobians(model, posterior, at, features))
    np.testing.assert_allclose(along.rows, rows, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(along.explained, by_u @ at.u, rtol=1e-9, atol=1e-9)
    without, *_ = jacobians(model, posterior, at)
    assert np.abs(rows - without).max() > 1e-3


@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize(("every", "rows"), [(100, (17, 11)), (6, (17, 11)), (25, LONG)])
def test_eliminating_the_starts_gives_the_same_step_as_solving_for_everything_at_once(damping, every, rows):
    """With restarts, a start that is pinned, another that is not, a missing value and padding."""
    given = model, at = problem("stormer-verlet", every, rows=rows)
    found = model.improved(at, model.linearise(at).equations, damping)
    expected, _ = dense(given).solution(damping)
    np.testing.assert_allclose(found.u, expected[: at.u.size], rtol=1e-6, atol=1e-8)
    free = at.rollouts.free
    np.testing.assert_allclose(found.starts[free].reshape(-1), expected[at.u.size :], rtol=1e-6, atol=1e-8)
    assert not free[0]  # the first start is pinned
    np.testing.assert_array_equal(found.starts[0], at.starts[0])


@pytest.mark.parametrize(
    ("method", "every", "rows"),
    [("stormer-verlet", 100, (17, 11)), ("stormer-verlet", 6, (17, 11)), ("rk4", 100, (17, 11)), ("rk4", 25, LONG)],
)
def test_the_evidence_is_the_density_of_the_data_under_the_linear_model(method, every, rows):
    given = model, at = problem(method, every, rows=rows)
    written_out = dense(given)
    expected = multivariate_normal(*written_out.marginal()).logpdf(written_out.data)
    np.testing.assert_allclose(model.evidence(at, model.linearise(at).along).log_evidence, expected, rtol=1e-8)


def test_the_cost_of_the_equations_is_that_of_the_linear_model():
    """At the reference it is the true cost; anywhere else, squares of residuals and prior written out."""
    given = model, at = problem("rk4", 6)
    _, equations, cost = model.linearise(at)
    np.testing.assert_allclose(equations.cost(at.u[None], np.zeros((1, *at.starts.shape))), cost, rtol=1e-10)
    rng, written_out = np.random.default_rng(0), dense(given)
    u, v = rng.normal(size=(2, at.u.size)), rng.normal(size=(2, *at.starts.shape))
    v[:, ~at.rollouts.free] = 0.0  # their cost counts nowhere
    for k in range(2):
        moved = (at.starts + model.noise * v[k])[at.rollouts.free].reshape(-1)
        z = np.concatenate([u[k], moved])
        misfit = (written_out.offset + written_out.design @ z - written_out.data) / written_out.noise
        prior = (z - written_out.prior_mean) / written_out.prior_std
        np.testing.assert_allclose(equations.cost(u, v)[k], (misfit**2).sum() + (prior**2).sum(), rtol=1e-9)


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
    guess = initial_posterior(structures.Separable(), data)
    model = LinearModel.of(guess, method, Recording.of(data, pieces, np.array([True])), noise_std(data))
    shot = shooting.multiple_shooting(guess, model, rows, lengths)
    np.testing.assert_allclose(shot.noise, np.sqrt(0.1), rtol=0.2)  # 100 rows: 7 % is one standard error
    truth = system.simulate(system.x0, 0.1 * np.arange(401))
    path = eqx.filter_jit(integrators.rollout)(
        method, shot.posterior.mean(), jnp.asarray(system.x0), jnp.full(400, 0.1)
    )
    assert np.sqrt(((path.states - truth) ** 2).sum(axis=1).mean()) < 0.4


@pytest.mark.parametrize("method", ["stormer-verlet", "implicit-midpoint"])
def test_a_rollout_that_runs_away_where_nothing_was_observed_spoils_nothing_else(method):
    """The second half of the first run was not recorded, and its rollout there begins at a state that overflows."""
    model, at = problem(method, 6)
    gone = at.rollouts.segments(0, len(model.recording))[1]
    seen = model.recording.observed.copy()
    seen[gone[1]] = False
    blind = replace(model, recording=replace(model.recording, observed=seen))
    starts = at.starts.copy()
    starts[gone[0]] = 1e300
    with np.errstate(all="ignore"):
        _, (_, matrix, right, about), _ = blind.linearise(at._replace(starts=starts))
    expected = blind.linearise(at).equations
    others = np.arange(len(starts)) != gone[0]
    np.testing.assert_allclose(matrix, expected.matrix, rtol=1e-10)
    np.testing.assert_allclose(right, expected.right, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(about.coupling[others], expected.starts.coupling[others], rtol=1e-10, atol=1e-10)
