"""What a step keeps exactly, however long it is: the symplectic form, and quadratic invariants."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from sgpd.integrators import RungeKutta, get, names, rollout
from tests.integrators.systems import hamiltonian_waves, rigid_body, tao, waves_for
from tests.integrators.test_tableau import YOSHIDA

LONG_STEP = 1.5  # of fields whose Lipschitz constant is at most one


def step_jacobians(method, field, states, h=LONG_STEP):
    """∂x₁/∂x₀ from each state, of steps that all converged."""

    def step(x):
        x, info = method.step(field, x, h)
        return x, info.converged

    jacobian = jax.jit(jax.jacfwd(step, has_aux=True))
    jacobians, converged = zip(*map(jacobian, states), strict=True)
    assert all(converged)
    return np.stack(jacobians)


def symplectic_defect(jacobians):
    n = jacobians.shape[-1] // 2
    form = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    return max(np.abs(m.T @ form @ m - form).max() for m in jacobians)


@pytest.mark.parametrize("freedom", [1, 2])
@pytest.mark.parametrize("name", [name for name in names() if get(name).symplectic])
def test_symplectic_method_keeps_the_symplectic_form_and_volume_to_rounding(name, freedom, getkey):
    method = get(name)
    field = waves_for(method, getkey(), freedom)
    jacobians = step_jacobians(method, field, jr.normal(getkey(), (8, 2 * freedom)))
    assert symplectic_defect(jacobians) < 1e-11
    assert np.abs(np.linalg.det(jacobians) - 1).max() < 1e-12


@pytest.mark.parametrize("name", [name for name in names() if not get(name).symplectic])
def test_method_that_does_not_claim_it_loses_the_symplectic_form(name):
    assert symplectic_defect(step_jacobians(get(name), tao, jnp.array([[0.7, -0.4], [0.3, 0.9]]), h=0.4)) > 1e-7


def test_composed_midpoint_keeps_the_symplectic_form(getkey):
    method = RungeKutta(get("implicit-midpoint").tableau.compose("triple jump", YOSHIDA, 4))
    field = hamiltonian_waves(getkey(), 2)
    assert symplectic_defect(step_jacobians(method, field, jr.normal(getkey(), (8, 4)))) < 1e-11


def largest_drift(name, steps):
    """How far |x|² and x₁² + x₂²/2 get from their first values."""
    x0 = jnp.array([0.6, -0.5, 0.8])
    trajectory = jax.jit(lambda hs: rollout(get(name), rigid_body, x0, hs))(jnp.full(steps, 0.2))
    assert trajectory.converged.all()
    values = np.asarray(trajectory.states) ** 2 @ np.array([[1, 1], [1, 0.5], [1, 0]])
    return np.abs(values - values[0]).max(axis=0)


@pytest.mark.parametrize("name", ["implicit-midpoint", "gauss-4", "gauss-6"])
def test_quadratic_invariants_of_the_rigid_body_are_kept_over_ten_thousand_steps(name):
    assert largest_drift(name, steps=10_000).max() < 1e-10


@pytest.mark.parametrize("name", ["rk4", "trapezoidal"])
def test_methods_that_are_not_symplectic_lose_the_quadratic_invariants_of_the_rigid_body(name):
    assert largest_drift(name, steps=1_000).min() > 1e-7
