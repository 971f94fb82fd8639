"""The measures on steps and paths whose structure is known by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgpd import systems
from sgpd.checks import (
    determinant_error,
    energy_deviation,
    invariant_drift,
    measure,
    step_jacobian,
    symplectic_defect,
)
from sgpd.fields import SplitField
from sgpd.integrators import get, rollout

measured = eqx.filter_jit(measure)

X0 = jnp.array([0.3, -0.8])
OSCILLATOR = SplitField(dp=lambda q: -q, dq=lambda p: p)


@pytest.mark.parametrize("h", [0.5, 0.125])
def test_explicit_euler_on_the_oscillator_errs_by_exactly_h_squared(h):
    """ψ' = 1 + hJ: its determinant is 1 + h², and ψ'ᵀ J ψ' = (1 + h²) J. Powers of two make it exact."""
    jacobian = step_jacobian(get("euler"), OSCILLATOR, X0, jnp.array(h))
    np.testing.assert_array_equal(jacobian, [[1, -h], [h, 1]])
    assert float(determinant_error(jacobian)) == h**2
    assert float(symplectic_defect(jacobian)) == h**2


def test_a_shear_is_symplectic_exactly_and_a_scaling_that_keeps_volume_is_not():
    """diag(2, 1/2) acts on two momenta here, so it keeps volume and not the form."""
    assert float(symplectic_defect(jnp.array([[1.0, 0.7], [0.0, 1.0]]))) == 0
    scaling = jnp.diag(jnp.array([2.0, 0.5, 1.0, 1.0]))
    assert float(determinant_error(scaling)) == 0
    assert float(symplectic_defect(scaling)) == 1  # 2 p₁ with q₁: 2 - 1


def test_the_determinant_error_counts_lost_and_gained_volume_alike():
    for factor in (0.75, 1.25):
        assert float(determinant_error(jnp.diag(jnp.array([factor, 1.0])))) == 0.25


def test_the_drift_of_an_invariant_is_its_largest_change_over_the_largest_square():
    states = jnp.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0], [1.0, 0.0]])
    q = jnp.array([[1.0, 0.5], [0.5, 2.0]])  # values 1, 4, 8, 1
    assert float(invariant_drift(q, states)) == 7 / 4


def test_the_drift_of_an_invariant_does_not_depend_on_the_units_of_the_state():
    states = jnp.array([[1.0, 0.0], [0.5, 1.0]])
    assert float(invariant_drift(jnp.eye(2), states)) == float(invariant_drift(jnp.eye(2), 1024 * states)) == 0.2


def pendulum_energy(method, h, steps):
    pendulum = systems.get("pendulum")

    def of(x0):
        return energy_deviation(pendulum.energy, rollout(get(method), pendulum.field, x0, jnp.full(steps, h)).states)

    return map(float, jax.jit(of)(jnp.asarray(pendulum.x0)))


def test_the_energy_of_the_pendulum_wanders_under_verlet_and_has_no_trend():
    wander, trend = pendulum_energy("stormer-verlet", 0.1, 2000)
    assert 1e-3 < wander < 0.05
    assert trend < wander / 20


@pytest.mark.parametrize(("method", "h"), [("rk4", 0.2), ("euler", 0.01)])
def test_the_energy_of_the_pendulum_drifts_under_methods_that_are_not_symplectic(method, h):
    _, trend = pendulum_energy(method, h, 400)
    assert trend > 0.01


def test_the_wander_of_the_energy_knows_neither_its_level_nor_its_unit():
    states = jnp.array([[1.0, 0.0], [0.0, 1.1], [-1.0, 0.0], [0.0, -1.1]])
    energy = lambda x: x @ x / 2
    wander, trend = energy_deviation(energy, states)
    shifted = energy_deviation(lambda x: 8 * energy(x) + 512, states)
    np.testing.assert_allclose(shifted, (wander, trend), rtol=1e-12)
    # H - H₀ is 0 or 0.105; ∇H·(x - x̄) is 1 or 1.21
    np.testing.assert_allclose(wander, 0.105 / np.sqrt((1 + 1.21**2) / 2), rtol=1e-14)


def test_a_kept_energy_has_neither_wander_nor_trend():
    angles = jnp.linspace(0, 50, 400)
    wander, trend = energy_deviation(lambda x: x @ x / 2, jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1))
    assert wander < 1e-14
    assert trend < 1e-12


def test_what_beats_has_no_trend_and_what_drifts_has_it():
    """Of the values themselves: a beat whose first quarter is quiet, and a straight line."""
    t = jnp.linspace(0.0, 1.0, 4001)[:, None]
    beat = jnp.sin(60 * np.pi * t) + 0.02 * jnp.sin(np.pi * 4 * t) ** 2 * jnp.cos(900.0 * t)
    straight = jnp.concatenate([jnp.sin(60 * np.pi * t), 0.1 * t], axis=1)
    _, beating = energy_deviation(lambda x: x[0], beat)
    scale = np.sqrt(np.mean((np.asarray(straight) - np.asarray(straight).mean(axis=0)).sum(axis=1) ** 2))
    _, drifting = energy_deviation(lambda x: x[0] + x[1], straight)
    assert beating < 1e-3
    np.testing.assert_allclose(drifting, 0.05 / scale, rtol=1e-3)


def test_measurements_along_a_path_are_the_worst_of_it():
    """Explicit Euler on the oscillator again: every step is the same, and |x|² grows by 1 + h² each."""
    h, steps = 0.25, 10
    found = measured(OSCILLATOR, get("euler"), X0, jnp.array(h), steps, invariant=jnp.eye(2))
    assert float(found.determinant) == float(found.symplectic) == h**2
    np.testing.assert_allclose(found.invariant, 1 - (1 + h**2) ** -steps, rtol=1e-13)
    assert (found.energy_wander, found.energy_trend) == (None, None)
    assert bool(found.converged)
    assert bool(found.finite)
    assert float(found.residual) == 0


def test_the_step_after_the_last_one_is_not_measured():
    """The path ends where the field ends: no step from there belongs to it."""
    cliff = SplitField(dp=lambda q: 0.01 * jnp.sqrt(1 - q), dq=lambda p: p)
    found = measured(cliff, get("symplectic-euler"), jnp.array([1.0, 0.0]), jnp.array(0.3), 4)
    assert bool(found.finite)
    assert float(found.determinant) < 1e-14


def test_an_odd_state_has_no_symplectic_defect():
    body = systems.get("rigid-body")
    found = measured(body.field, get("euler"), jnp.asarray(body.x0), jnp.array(0.1), 2)
    assert np.isnan(found.symplectic)
    assert np.isfinite(found.determinant)
