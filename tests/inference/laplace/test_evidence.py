"""The evidence has the gradient that it should have, its mode moves as it should, and following it finds the noise."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.stats import multivariate_normal

from sgpd import integrators, structures, systems
from sgpd.data import Trajectories, windows
from sgpd.inference.initial import initial_posterior
from sgpd.inference.laplace import linear_model
from sgpd.inference.laplace.constants import CONVERGED, WIDTH
from sgpd.inference.laplace.evidence import Hyper, Tuning, tune
from sgpd.inference.laplace.linear_model import LinearModel, ShootingState
from sgpd.inference.laplace.recording import Layout, Recording, Rollouts
from sgpd.inference.starts import smoothed_rows
from tests.inference.dense import NOISE, dense, problem


def tuning_of(model, noise=NOISE, known_noise=False):
    """The kernels and the noise as they are, as the centre of a prior."""
    start = Hyper.unchanged(model.posterior, noise)
    return Tuning(model.posterior, start, model.integrator, model.recording, known_noise)


def elsewhere(start, seed=1):
    """Kernels and noise away from where the model was made linear, by up to a factor of about two."""
    flat, unravel = ravel_pytree(start)
    flat = flat + 0.3 * np.random.default_rng(seed).normal(size=flat.size)
    return flat, unravel(flat)


@pytest.mark.parametrize(
    ("method", "every", "rows"),
    [("stormer-verlet", 100, (17, 11)), ("implicit-midpoint", 6, (17, 11)), ("stormer-verlet", 25, (70, 11))],
)
def test_the_gradient_of_the_objective_equals_finite_differences_in_every_parameter(method, every, rows):
    """Also where a rollout goes on from one block of the recording to the next."""
    model, at, _ = problem(method, every, rows=rows)
    found, tuning = model.linearise(at), tuning_of(model)
    flat, _ = elsewhere(tuning.start)
    value = lambda x: tuning.objective(x, at, found.along)
    differences = [(value(flat + e).minus - value(flat - e).minus) / 2e-4 for e in 1e-4 * jnp.eye(flat.size)]
    np.testing.assert_allclose(value(flat).gradient, differences, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(("method", "every"), [("stormer-verlet", 6), ("implicit-midpoint", 100)])
def test_the_mode_and_the_objective_under_changed_kernels_are_those_of_the_full_jacobian(method, every):
    """The rollout stays as it is; the values that a changed field adds are those of the changed kernels."""
    given = model, at, _ = problem(method, every)
    found, tuning = model.linearise(at), tuning_of(model)
    start, (flat, hyper) = tuning.start, elsewhere(tuning.start)
    there = tuning.model(hyper)
    changed, written_out = there.posterior, dense(given, there.noise, there.posterior)
    expected, _ = written_out.solution()

    judged = tuning.objective(flat, at, found.along)
    np.testing.assert_allclose(judged.solution.u, expected[: at.u.size], rtol=1e-6, atol=1e-7)
    moved = there.improved(at, there.regression(at, found.along)[0], jnp.array(0.0))
    np.testing.assert_allclose(moved.u, expected[: at.u.size], rtol=1e-6, atol=1e-7)
    starts = moved.starts[np.asarray(at.free(model.recording))]
    np.testing.assert_allclose(starts.reshape(-1), expected[at.u.size :], rtol=1e-6, atol=1e-7)

    widths = [WIDTH["lengthscale"]] * (flat.size - 3 * len(changed.groups) - 2)
    widths += [WIDTH["variance"]] * 3 * len(changed.groups) + [WIDTH["noise"]] * 2  # of process and trend
    prior = np.sum(((flat - ravel_pytree(start)[0]) / np.array(widths)) ** 2) / 2
    evidence = multivariate_normal(*written_out.marginal()).logpdf(written_out.data)
    np.testing.assert_allclose(judged.log_evidence, evidence, rtol=1e-8)
    np.testing.assert_allclose(judged.minus, prior - evidence, rtol=1e-8)


def noisy_pendulum():
    """The paper's recording, its first state known, with restarts every 20 rows."""
    times, states = systems.get("pendulum").record(seed=3)
    data, pinned = Trajectories.from_arrays(times, states), np.array([True])
    pieces = windows(data, len(times))
    posterior = initial_posterior(structures.Separable(), data, points=8)
    layout = Layout.of(pieces, [20])
    rows = jnp.asarray(layout.in_blocks(smoothed_rows(data, pieces, pinned)))
    at = ShootingState(posterior.flat_mean, rows, Rollouts.every(20, layout))
    method, recording = integrators.get("stormer-verlet"), Recording.of(data, pieces, pinned, layout)
    return LinearModel(posterior, method, recording, jnp.array([0.7, 0.15])), at  # twice and half of the noise


def test_tuning_raises_the_objective_and_finds_the_noise_and_leaves_noise_alone_that_is_known():
    model, at = noisy_pendulum()
    start = tuning_of(model, model.noise).start
    tuned = tune(tuning_of(model, model.noise), start, at)
    assert tuned.converged
    assert len(tuned.values) > 2
    assert np.all(np.diff(tuned.values[:-1]) > 0)
    assert tuned.values[-1] > tuned.values[-2] - CONVERGED  # the last round is one that gains nothing
    assert tuned.values[-1] > tuned.values[0] + 10
    np.testing.assert_allclose(tuned.noise, np.sqrt(0.1), rtol=0.25)  # 100 rows: 7 % is one standard error

    known = tune(tuning_of(model, model.noise, known_noise=True), start, at)
    np.testing.assert_array_equal(known.hyper.noise, start.noise)
    np.testing.assert_allclose(known.noise, [0.7, 0.15], rtol=1e-15)
    assert np.all(np.diff(known.values) > -CONVERGED)
    assert known.values[-1] < tuned.values[-1]
    assert np.abs(ravel_pytree(known.hyper)[0] - ravel_pytree(start)[0]).max() > 0.1


def test_products_by_a_library_give_the_same_evidence_and_gradient(monkeypatch):
    """Posteriors with many unknowns go that way. No other test has this number of rows, so that all is traced anew."""
    monkeypatch.setattr(linear_model, "WRITTEN_OUT", 0)
    given = model, at, _ = problem("stormer-verlet", 25, rows=(120, 11))
    tuning = tuning_of(model)
    assert model._wide(at)
    found, flat = model.linearise(at), ravel_pytree(tuning.start)[0]
    written_out = dense(given)
    evidence = multivariate_normal(*written_out.marginal()).logpdf(written_out.data)
    judged = tuning.objective(flat, at, found.along)
    np.testing.assert_allclose(judged.log_evidence, evidence, rtol=1e-8)
    of_all = eqx.filter_jit(model.solve)(found.equations, at.u)
    np.testing.assert_allclose(model.log_evidence(of_all), evidence, rtol=1e-8)
    value = lambda x: tuning.objective(x, at, found.along).minus
    differences = [(value(flat + e) - value(flat - e)) / 2e-4 for e in 1e-4 * jnp.eye(flat.size)]
    np.testing.assert_allclose(judged.gradient, differences, rtol=1e-6, atol=1e-5)
