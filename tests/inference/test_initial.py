"""The start comes from the data alone, and the search from it solves the equations that it should solve."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from sgpd import integrators, structures, systems
from sgpd.data import Trajectories, windows
from sgpd.gp import Matern32, Matern52
from sgpd.inference import shooting
from sgpd.inference.initial import inducing_points, initial_posterior, noise_std, smooth_run


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


def brute_force_step(posterior, integrator, recording, noise, restart, u, starts, damping):
    """One damped Gauss-Newton step on all unknowns at once, by the full Jacobian."""
    places = np.flatnonzero(np.asarray(shooting._free(recording, restart)).reshape(-1))
    d = starts.shape[2]

    def residuals(unknowns):
        moves = unknowns[u.size :].reshape(-1, d) * noise[None, :]
        moved = starts.reshape(-1, d).at[places].add(moves).reshape(starts.shape)
        field = shooting._flat_field(posterior, unknowns[: u.size])
        run = lambda s, r, h: shooting._rows(field, integrator, s, r, h)
        rows = jax.vmap(run)(moved, restart, recording.steps)
        error = jnp.where(recording.observed, (rows - recording.states) / noise[None, None, :], 0.0)
        weak = jnp.sqrt(shooting.WEAK_PRIOR) * unknowns[u.size :]
        return jnp.concatenate([error.reshape(-1), unknowns[: u.size], weak])

    here = jnp.concatenate([u, jnp.zeros(len(places) * d)])
    jacobian, value = jax.jacfwd(residuals)(here), residuals(here)
    step = jnp.linalg.solve(jacobian.T @ jacobian + damping * jnp.eye(here.size), -jacobian.T @ value)
    moved = starts.reshape(-1, d).at[places].add(step[u.size :].reshape(-1, d) * noise[None, :])
    return u + step[: u.size], moved.reshape(starts.shape)


def test_eliminating_the_starts_gives_the_same_step_as_solving_for_everything_at_once():
    data = oscillator(noise=0.05, rows=17)
    posterior = initial_posterior(structures.Separable(), data, points=4)
    pieces = windows(data, 17)
    states = pieces.observed.copy()
    states[0, 3, 1] = False  # a missing value
    recording = shooting.Recording(
        jnp.asarray(pieces.states), jnp.asarray(states), jnp.asarray(pieces.steps), jnp.array([True])
    )
    restart = jnp.asarray(np.arange(17) % 6 == 0)[None]
    u, _ = ravel_pytree(tuple(q.mean for q in posterior.values))
    noise, starts = jnp.array([0.05, 0.07]), jnp.asarray(smooth_run(data.runs[0]).states)[None]
    method = integrators.get("stormer-verlet")
    at = shooting._linearise(posterior, method, recording, noise, restart, u, starts)
    found = shooting._improved(at, recording, noise, restart, u, starts, 0.3)
    expected = brute_force_step(posterior, method, recording, noise, restart, u, starts, 0.3)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6, atol=1e-8)
    used = np.asarray(restart)[0]
    np.testing.assert_allclose(found[1][0, used], expected[1][0, used], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found[1][0, 0], starts[0, 0])  # the first one is pinned


def test_shooting_finds_a_field_whose_one_long_rollout_fits_a_noisy_pendulum():
    """Its misfit is the noise, and its error over four times the recording is a fraction of the noise."""
    system = systems.get("pendulum")
    times, states = system.record(seed=3)
    data = Trajectories.from_arrays(times, states)
    pieces = windows(data, len(times))
    rows = smooth_run(data.runs[0]).states[None].copy()
    rows[0, 0] = states[0]
    method = integrators.get("stormer-verlet")
    recording = shooting.Recording.of(pieces, np.array([True]))
    guess = initial_posterior(structures.Separable(), data)
    shot = shooting.shoot(guess, method, recording, rows, noise_std(data), [10, 30, len(times)])
    np.testing.assert_allclose(shot.noise, np.sqrt(0.1), rtol=0.2)  # 100 rows: 7 % is one standard error
    truth = system.simulate(system.x0, 0.1 * np.arange(401))
    path = eqx.filter_jit(integrators.rollout)(
        method, shot.posterior.mean(), jnp.asarray(system.x0), jnp.full(400, 0.1)
    )
    assert np.sqrt(((path.states - truth) ** 2).sum(axis=1).mean()) < 0.4
