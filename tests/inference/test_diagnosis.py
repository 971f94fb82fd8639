"""A fit says what it found, and speaks up where the structure does not fit the recording."""

import dataclasses
import warnings

import jax.numpy as jnp
import numpy as np

import sgpd
from sgpd.data import windows
from sgpd.gp import SquaredExponential, Trend
from sgpd.inference.diagnosis import _bands, _draws, _noise, _white
from sgpd.inference.posterior.field import LatentGroup
from sgpd.inference.unexplained import nystroem_residual
from tests.guesses import FIT


def recording_of(states):
    data = sgpd.Trajectories.from_arrays(0.1 * np.arange(len(states)), states, names=["a", "b"])
    return data, windows(data, len(states))


def test_residuals_that_resemble_their_neighbours_are_named_and_white_ones_are_not():
    noise = np.random.default_rng(0).normal(size=(400, 2))
    noise[:, 1] = np.convolve(np.random.default_rng(1).normal(size=403), np.ones(4) / 2, "valid")  # correlation 3/4
    data, recording = recording_of(noise)
    check = _white(data.names, recording, np.zeros((1, 400, 2)), np.array([1.0, 2.54]), free=False)
    b = noise[:, 1]
    correlation = (b[1:] * b[:-1]).mean() / (b**2).mean()
    assert check.verdict == "ATTENTION"
    assert f"neighbours correlate, b by {correlation:.2f} (limit 0.20)" in check.sentence  # 4/sqrt(399)
    assert "2.5 rows of b count as one" in check.sentence
    many = _white(data.names, recording, np.zeros((1, 400, 2)), np.array([1.0, 168.0]), free=False)
    assert "170 rows of b count as one" in many.sentence
    np.testing.assert_allclose([check.value, check.limit], [correlation, 4 / np.sqrt(399)])
    assert _white(("a",), *_alone(noise[:, :1]), np.ones(1), free=False).verdict == "PASS"


def _alone(residuals):
    data = sgpd.Trajectories.from_arrays(0.1 * np.arange(len(residuals)), residuals)
    return windows(data, len(residuals)), np.zeros((1, *residuals.shape))


def test_residuals_of_a_few_rows_are_not_measured():
    few = np.random.default_rng(0).normal(size=(8, 1))
    assert _white(("a",), *_alone(few), np.ones(1), free=False).verdict == "NOT MEASURED"


def test_noise_beyond_the_roughness_of_the_recording_is_named_by_channel():
    states = np.stack([np.sin(np.arange(200) / 10), np.cos(np.arange(200) / 10)], axis=1)
    data, _ = recording_of(states + 0.1 * np.random.default_rng(2).normal(size=states.shape))
    assert _noise(data, np.array([0.1, 0.1]), free=False).verdict == "PASS"
    check = _noise(data, np.array([0.1, 0.35]), free=False)
    assert check.verdict == "ATTENTION"
    assert "(b 3." in check.sentence


def test_what_inducing_points_leave_open_is_the_conditional_variance():
    inducing, x = np.array([[0.0], [1.0], [2.5]]), np.linspace(-1, 4, 9)[:, None]
    kernel = SquaredExponential(jnp.array([[0.8]]), jnp.array([1.7]))
    group = LatentGroup(kernel, jnp.asarray(inducing)[None], jnp.ones((1, 1, 1)))
    k = lambda a, b: np.exp(-((a - b.T) ** 2) / 2 / 0.8**2)
    expected = 1 - np.diag(k(x, inducing) @ np.linalg.solve(k(inducing, inducing), k(inducing, x)))
    whitenings = np.asarray(group.whitening)
    np.testing.assert_allclose(nystroem_residual(group, whitenings, x[None])[:, 0], expected, atol=1e-6)
    # A trend is part of the prior, and leaves nothing open: σ² = 1.7 beside slopes of variance 3 a lengthscale.
    trend = Trend(jnp.array([[1.5]]), jnp.log(jnp.array([[3.0, 1e-30]])))
    share = 1.7 / (1.7 + 3 * (((x - 1.5) / 0.8) ** 2).mean())
    with_trend = dataclasses.replace(group, trend=trend)
    np.testing.assert_allclose(nystroem_residual(with_trend, whitenings, x[None])[:, 0], share * expected, atol=1e-6)


def test_friction_in_a_recording_that_is_fitted_as_hamiltonian_is_told():
    """A pendulum that loses two thirds of its energy while it is recorded."""
    system = sgpd.systems.get("pendulum")
    step = sgpd.integrators.get("rk4")
    damped = lambda x: system.field(x) - jnp.array([0.1 * x[0], 0.0])
    states = sgpd.integrators.rollout(step, damped, jnp.asarray(system.x0), jnp.full(2000, 0.005), 20).states
    noisy = (np.asarray(states) + 0.02 * np.random.default_rng(3).normal(size=states.shape))[:100]
    data = sgpd.Trajectories.from_arrays(0.1 * np.arange(len(noisy)), noisy, names=["p", "q"])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = sgpd.fit(data, "separable")
    assert any("larger than the roughness" in str(warning.message) for warning in told)
    assert any("energy of the recorded states falls" in note for note in model.notes)
    assert any("not white" in note for note in model.notes)
    verdicts = {check.id: check.verdict for check in model.diagnosis}
    assert verdicts["recorded_energy"] == verdicts["noise"] == verdicts["residuals"] == "ATTENTION"
    assert verdicts["settled"] == "PASS"
    assert model.notes[0].startswith("Integrator: stormer-verlet")


def test_draws_that_failed_or_leave_something_out_ask_for_attention_and_others_do_not():
    facts = dataclasses.replace(FIT, stored_draws=128)
    for kind in ("gaussian", "weighed", "randomised"):
        assert _bands(dataclasses.replace(facts, draws=kind)) is None
        assert "512 draws" in _draws(dataclasses.replace(facts, draws=kind))
    failed = _bands(dataclasses.replace(facts, draws="failed", features_dropped=True))
    narrow = _bands(dataclasses.replace(facts, draws="randomised", features_dropped=True))
    assert failed.verdict == narrow.verdict == "ATTENTION"
    assert "the bands mean nothing" in failed.sentence
    assert "too narrow" in narrow.sentence
    assert "inducing points" in _draws(dataclasses.replace(facts, draws="weighed", features_dropped=True))
