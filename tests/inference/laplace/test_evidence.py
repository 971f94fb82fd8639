"""The evidence has the gradient that it should have, its mode moves as it should, and following it finds the noise."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sgpd import integrators, structures, systems
from sgpd.data import Trajectories, windows
from sgpd.inference import chunks
from sgpd.inference.initial import initial_posterior
from sgpd.inference.laplace.constants import CONVERGED, TIGHT, WIDTH
from sgpd.inference.laplace.descent import Until, descend
from sgpd.inference.laplace.evidence import Hyper, Tuning, tune
from sgpd.inference.laplace.linear_model import LinearModel, ShootingState
from sgpd.inference.laplace.recording import Recording
from sgpd.inference.starts import smoothed_rows
from tests.inference.dense import NOISE, dense, problem


def tuning_of(model, noise=NOISE, known_noise=False):
    """The kernels and the noise as they are, as the centre of a prior."""
    start = Hyper.unchanged(model.kernels.posterior, noise)
    return Tuning(model.kernels.posterior, start, model.integrator, model.recording, known_noise)


def elsewhere(start, seed=1):
    """Kernels and noise away from where the model was made linear, by up to a factor of about two."""
    return start.of_flat(start.flat + 0.3 * np.random.default_rng(seed).normal(size=start.flat.size))


@pytest.mark.parametrize("chunk", [512, 48])
@pytest.mark.parametrize(
    ("method", "every", "rows"),
    [("stormer-verlet", 100, (17, 11)), ("implicit-midpoint", 6, (17, 11)), ("stormer-verlet", 25, (70, 11))],
)
def test_the_gradient_of_the_objective_equals_finite_differences_in_every_parameter(
    method, every, rows, chunk, monkeypatch
):
    """Also where a rollout goes on from one block of the recording to the next, or from one chunk to the next."""
    monkeypatch.setattr(chunks, "CHUNK", chunk)
    model, at = problem(method, every, rows=rows)
    along, tuning = model.linearise(at).along, tuning_of(model)
    there = elsewhere(tuning.start)
    value = lambda flat: tuning.objective(there.of_flat(flat), at, along).value
    differences = [(value(there.flat + e) - value(there.flat - e)) / 2e-4 for e in 1e-4 * np.eye(there.flat.size)]
    np.testing.assert_allclose(tuning.objective(there, at, along).gradient, differences, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(("method", "every"), [("stormer-verlet", 6), ("implicit-midpoint", 100)])
def test_the_mode_and_the_objective_under_changed_kernels_are_those_of_the_full_jacobian(method, every):
    """The rollout stays as it is; the values that a changed field adds are those of the changed kernels."""
    given = model, at = problem(method, every)
    along, tuning = model.linearise(at).along, tuning_of(model)
    hyper = elsewhere(tuning.start)
    there = tuning.model(hyper)
    changed, written_out = there.kernels.posterior, dense(given, there.noise, there.kernels.posterior)
    expected, _ = written_out.solution()

    judged = tuning.objective(hyper, at, along)
    np.testing.assert_allclose(judged.evidence.solution.u, expected[: at.u.size], rtol=1e-6, atol=1e-7)
    moved = there.improved(at, there.regression(at, along))
    np.testing.assert_allclose(moved.u, expected[: at.u.size], rtol=1e-6, atol=1e-7)
    starts = moved.starts[at.rollouts.free]
    np.testing.assert_allclose(starts.reshape(-1), expected[at.u.size :], rtol=1e-6, atol=1e-7)

    widths = [WIDTH["lengthscale"]] * (hyper.flat.size - 3 * len(changed.groups) - 2)
    widths += [WIDTH["variance"]] * 3 * len(changed.groups) + [WIDTH["noise"]] * 2  # of process and trend
    prior = np.sum(((hyper.flat - tuning.start.flat) / np.array(widths)) ** 2) / 2
    evidence = multivariate_normal(*written_out.marginal()).logpdf(written_out.data)
    np.testing.assert_allclose(judged.evidence.log_evidence, evidence, rtol=1e-8)
    np.testing.assert_allclose(judged.value, evidence - prior, rtol=1e-8)


def noisy_pendulum():
    """The paper's recording, its first state known, with restarts every 20 rows."""
    times, states = systems.get("pendulum").record(seed=3)
    data, pinned = Trajectories.from_arrays(times, states), np.array([True])
    pieces = windows(data, len(times))
    posterior = initial_posterior(structures.Separable(), data, points=8)
    recording = Recording.of(data, pieces, pinned)
    rollouts = recording.rollouts(20)
    starts = recording.in_line(smoothed_rows(data, pieces, pinned))[rollouts.first]
    model = LinearModel.of(posterior, integrators.get("stormer-verlet"), recording, np.array([0.7, 0.15]))
    return model, ShootingState(np.asarray(posterior.flat_mean), starts, rollouts)  # twice and half of the noise


def test_tuning_raises_the_objective_and_finds_the_noise_and_leaves_noise_alone_that_is_known():
    model, at = noisy_pendulum()
    start = tuning_of(model, model.noise).start
    best = descend(model, at, Until(TIGHT))
    tuned = tune(tuning_of(model, model.noise), start, best)
    assert tuned.converged
    assert len(tuned.values) > 2
    assert np.all(np.diff(tuned.values[:-1]) > 0)
    assert tuned.values[-1] > tuned.values[-2] - CONVERGED  # the last round is one that gains nothing
    assert tuned.values[-1] > tuned.values[0] + 10
    np.testing.assert_allclose(tuned.noise, np.sqrt(0.1), rtol=0.25)  # 100 rows: 7 % is one standard error

    known = tune(tuning_of(model, model.noise, known_noise=True), start, best)
    np.testing.assert_array_equal(known.hyper.noise, start.noise)
    np.testing.assert_allclose(known.noise, [0.7, 0.15], rtol=1e-15)
    assert np.all(np.diff(known.values) > -CONVERGED)
    assert known.values[-1] < tuned.values[-1]
    assert np.abs(known.hyper.flat - start.flat).max() > 0.1
