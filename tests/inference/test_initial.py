"""The start of a fit comes from the data alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgpd import structures
from sgpd.data import Run, Trajectories
from sgpd.data.smoothing import noise_std, smooth_run
from sgpd.gp import Matern32, Matern52
from sgpd.inference.initial import inducing_points, initial_posterior


def oscillator(noise=0.0, rows=60, seed=0):
    times = 0.1 * np.arange(rows)
    states = np.stack([np.cos(times), np.sin(times)], axis=1)
    return Trajectories.from_arrays(times, states + noise * np.random.default_rng(seed).normal(size=states.shape))


def test_splines_recover_states_and_derivatives_of_a_smooth_signal():
    data = oscillator(noise=1e-3)
    smoothed = smooth_run(data.runs[0])
    exact = np.stack([np.cos(data.runs[0].times), np.sin(data.runs[0].times)], axis=1)
    assert np.sqrt(((smoothed.states - exact) ** 2).mean()) < 1e-3
    derivative = np.stack([-exact[:, 1], exact[:, 0]], axis=1)
    assert np.sqrt(((smoothed.derivatives - derivative)[3:-3] ** 2).mean()) < 0.01


def test_the_noise_estimate_is_right_within_four_standard_errors_and_skips_missing_values():
    noisy = oscillator(noise=0.05, rows=2000, seed=1)
    states = noisy.runs[0].states.copy()
    states[::7, 0] = np.nan
    for data in (noisy, Trajectories.from_arrays(noisy.runs[0].times, states)):
        # third differences are correlated: a variance estimate from n of them has a relative error of about √(5/n)
        assert np.all(np.abs(noise_std(data) ** 2 / 0.05**2 - 1) < 4 * np.sqrt(5 / 900))


def test_gradient_matching_recovers_the_field_of_clean_data():
    data = oscillator(noise=1e-4)
    field = initial_posterior(structures.Hamiltonian(), data).mean()
    states = jnp.asarray(data.runs[0].states[5:-5])
    found = jax.vmap(field)(states)
    np.testing.assert_allclose(found, jnp.stack([-states[:, 1], states[:, 0]], axis=1), atol=0.02)


def test_inducing_points_cover_the_data_and_a_little_more():
    inputs = np.random.default_rng(0).uniform(-1, 2, size=(200, 2))
    grid = inducing_points(inputs)
    assert grid.shape == (64, 2)
    assert np.all(grid.min(axis=0) < inputs.min(axis=0))
    assert np.all(grid.max(axis=0) > inputs.max(axis=0))
    spread = inducing_points(np.random.default_rng(0).normal(size=(200, 4)), 20)
    distances = np.linalg.norm(spread[:, None] - spread[None], axis=2) + 10 * np.eye(20)
    assert spread.shape == (20, 4)
    assert distances.min() > 0.5


def test_a_latent_that_is_differentiated_refuses_a_rough_kernel():
    with pytest.raises(ValueError, match="differentiated only once; use SquaredExponential or Matern52"):
        initial_posterior(structures.Hamiltonian(), oscillator(), Matern32)
    initial_posterior(structures.Hamiltonian(), oscillator(), Matern52)


def test_the_noise_is_not_taken_from_jumps_across_gaps():
    t = 0.05 * np.arange(400)
    states = np.sin(t)[:, None] + 0.01 * np.random.default_rng(0).normal(size=(400, 1))
    kept = np.concatenate([np.arange(k, k + 20) for k in range(0, 400, 80)])
    gaps = Trajectories.from_arrays(t[kept], states[kept])
    assert noise_std(gaps)[0] == pytest.approx(0.01, rel=0.25)


def test_a_run_is_smoothed_on_either_side_of_a_gap_by_itself():
    t = np.concatenate([0.1 * np.arange(60), 50.0 + 0.1 * np.arange(40), [90.0]])
    states = np.stack([np.sin(t), np.cos(t)], axis=1) + 0.02 * np.random.default_rng(1).normal(size=(101, 2))
    whole = smooth_run(Run(t, states))
    for rows in (slice(60), slice(60, 100)):
        part = smooth_run(Run(t[rows], states[rows]))
        np.testing.assert_array_equal(whole.states[rows], part.states)
        np.testing.assert_array_equal(whole.derivatives[rows], part.derivatives)
    np.testing.assert_array_equal(whole.states[100], states[100])  # alone between two gaps
    assert np.abs(whole.states[:100] - np.stack([np.sin(t), np.cos(t)], axis=1)[:100]).max() < 0.05
