"""A step says whether its equations were solved: the flag is true when they are, and false when they are not."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from sgpd.integrators import Newton, RungeKutta, get, names, rollout
from tests.integrators.systems import asymmetric_pendulum, hamiltonian_waves


def square(x):
    """x' = x². An implicit Euler step solves h x₁² - x₁ + x₀ = 0, which has no solution when 4 h x₀ > 1."""
    return x**2


def least_residual(x, h):
    """min over g of |g - (x + h g)²|, when no g makes it zero: the parabola's lowest point."""
    return x / h - 1 / (4 * h**2)


@pytest.mark.parametrize("h", [0.01, 0.1, 0.24])
def test_implicit_euler_finds_the_solution_of_its_quadratic_equation_and_says_so(h):
    x, info = get("implicit-euler").step(square, jnp.array([1.0]), h)
    np.testing.assert_allclose(x, [(1 - np.sqrt(1 - 4 * h)) / (2 * h)], rtol=1e-13)
    assert info.converged
    assert info.residual < 1e-10


@pytest.mark.parametrize("h", [0.26, 1.0, 1e3])
def test_a_step_whose_equation_has_no_solution_is_reported_with_a_residual_that_says_so(h):
    _, info = get("implicit-euler").step(square, jnp.array([1.0]), h)
    assert not info.converged
    assert info.residual >= least_residual(1.0, h) > 0
    assert info.iterations == Newton().max_steps


@pytest.mark.parametrize("name", ["trapezoidal", "lobatto-iiia-iiib-4"])
def test_a_field_that_gives_nan_is_reported(name):
    _, info = get(name).step(lambda x: jnp.sqrt(x), jnp.array([-1.0, 1.0]), 0.1)
    assert not info.converged
    assert not np.isfinite(info.residual)


def test_midpoint_is_called_converged_exactly_when_its_equation_holds(getkey):
    field = hamiltonian_waves(getkey(), 1)

    @jax.jit
    @jax.vmap
    def defect_and_flag(x, h):
        x1, info = get("implicit-midpoint").step(field, x, h)
        return jnp.abs(x1 - x - h * field((x + x1) / 2)).max() / (1 + jnp.abs(x1).max()), info.converged

    states, lengths = jr.normal(getkey(), (400, 2)), 10 ** jr.uniform(getkey(), (400,), minval=-1.0, maxval=3.0)
    defect, converged = map(np.asarray, defect_and_flag(states, lengths))
    assert 20 < converged.sum() < 380
    assert defect[converged].max() < 1e-11
    # A step that is given up may be saved by the last correction, but most are not even near.
    assert np.median(defect[~converged]) > 1e-3


def test_newton_that_is_stopped_early_is_not_called_converged():
    tableau, x = get("gauss-4").tableau, jnp.array([0.9, 0.6])
    _, stopped = RungeKutta(tableau, Newton(max_steps=0)).step(asymmetric_pendulum, x, 1.0)
    _, finished = RungeKutta(tableau).step(asymmetric_pendulum, x, 1.0)
    assert not stopped.converged
    assert stopped.iterations == 0
    assert finished.converged
    assert finished.residual < 1e-14 < 1e-6 < stopped.residual


@pytest.mark.parametrize("name", [name for name in names() if not get(name).implicit])
def test_explicit_methods_always_converge_with_residual_zero(name):
    _, info = get(name).advance(asymmetric_pendulum, jnp.array([0.9, 0.6]), jnp.array(1e3))
    assert info.converged
    assert (info.residual, info.iterations) == (0, 0)


def test_a_failing_state_in_a_batch_fails_alone():
    h, starts = 0.2, np.array([1.0, np.nan, 30.0, 0.5])
    x, info = jax.vmap(lambda x: get("implicit-euler").step(square, x, h))(jnp.array(starts)[:, None])
    assert info.converged.tolist() == [True, False, False, True]
    solved = starts[[0, 3]]
    np.testing.assert_allclose(x[jnp.array([0, 3]), 0], (1 - np.sqrt(1 - 4 * h * solved)) / (2 * h), rtol=1e-13)


def test_rollout_carries_the_failure_of_any_step_to_the_next_saved_state():
    run = jax.jit(partial(rollout, get("implicit-euler"), square, jnp.array([1.0])), static_argnums=1)
    for failing in (2, 3):
        steps = jnp.array([0.1, 0.05, 0.0, 0.0]).at[failing].set(10.0)
        full, saved = run(steps, 1), run(steps, 2)
        assert full.converged.tolist() == [k != failing for k in range(4)]
        assert saved.converged.tolist() == [True, False]
        assert saved.residual[0] < 1e-10
        # the same to rounding: two programs may add up in a different order
        np.testing.assert_allclose(saved.residual[1], full.residual[failing], rtol=1e-12)
        assert full.residual[failing] >= least_residual(full.states[2, 0], 10.0) > 0


def test_rollout_carries_nan_as_a_failure():
    trajectory = rollout(get("gauss-4"), lambda x: jnp.sqrt(x), jnp.array([-1.0]), jnp.full(4, 0.1), save_every=2)
    assert not trajectory.converged.any()
    assert not np.isfinite(trajectory.residual).any()
