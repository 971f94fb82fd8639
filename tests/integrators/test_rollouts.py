"""Many steps are the steps one after the other, whatever is saved of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgpd.fields import SplitField
from sgpd.integrators import get, rollout
from tests.integrators.systems import asymmetric_pendulum, tao
from tests.oracles import central_differences, exact_states, with_value

X0 = jnp.array([0.7, -0.4])
IRREGULAR = jnp.array([0.1, 0.3, 0.05, 0.2, 0.12, 0.08, 0.25, 0.15, 0.02, 0.11, 0.2, 0.07])


@pytest.mark.parametrize("name", ["rk4", "lobatto-iiia-iiib-4", "stormer-verlet"])
def test_rollout_takes_each_step_with_its_own_length(name):
    method, states = get(name), [X0]
    for h in IRREGULAR:
        states.append(method.step(asymmetric_pendulum, states[-1], h)[0])
    trajectory = rollout(method, asymmetric_pendulum, X0, IRREGULAR)
    np.testing.assert_allclose(trajectory.states, np.stack(states), rtol=0, atol=1e-14)
    assert trajectory.converged.shape == trajectory.residual.shape == (12,)
    assert trajectory.converged.all()


def test_irregular_steps_arrive_where_scipy_does():
    steps = IRREGULAR / 8  # short enough for the error of gauss-6 to be at 1e-13
    trajectory = rollout(get("gauss-6"), tao, X0, steps)
    exact = exact_states(tao, X0, np.cumsum(steps))
    np.testing.assert_allclose(trajectory.states[1:], exact, rtol=0, atol=1e-11)


@pytest.mark.parametrize(
    ("name", "save_every"), [("implicit-midpoint", 3), ("stormer-verlet", 4), ("stormer-verlet", 12)]
)
def test_saving_every_kth_state_gives_every_kth_state_of_the_full_rollout(name, save_every):
    full = rollout(get(name), asymmetric_pendulum, X0, IRREGULAR)
    sparse = rollout(get(name), asymmetric_pendulum, X0, IRREGULAR, save_every)
    np.testing.assert_allclose(sparse.states, full.states[::save_every], rtol=0, atol=1e-15)
    np.testing.assert_allclose(sparse.residual, full.residual.reshape(-1, save_every).max(axis=1), rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["euler", "gauss-4", "yoshida-4"])
def test_steps_of_length_zero_stay_exactly_where_they_are(name):
    trajectory = rollout(get(name), asymmetric_pendulum, X0, jnp.array([0.0, 0.2, 0.0, 0.0]))
    assert (trajectory.states[0] == trajectory.states[1]).all()
    assert (trajectory.states[1] != trajectory.states[2]).all()
    assert (trajectory.states[3] == trajectory.states[2]).all()
    assert (trajectory.states[4] == trajectory.states[2]).all()
    assert trajectory.converged.all()


def test_a_number_of_steps_that_is_no_multiple_of_save_every_is_refused():
    with pytest.raises(ValueError, match="12 steps cannot be saved every 5: some would be lost"):
        rollout(get("euler"), tao, X0, IRREGULAR, save_every=5)


def test_a_million_steps_keep_eleven_states_and_the_memory_of_one_stretch():
    h, oscillator = 0.01, SplitField(dp=lambda q: -q, dq=lambda p: p)
    run = jax.jit(lambda steps: rollout(get("symplectic-euler"), oscillator, jnp.array([0.0, 1.0]), steps, 100_000))
    program = run.lower(jax.ShapeDtypeStruct((1_000_000,), float)).compile()
    assert program.memory_analysis().temp_size_in_bytes < 4e6  # a million states would take 16e6

    states = program(jnp.full(1_000_000, h)).states
    assert states.shape == (11, 2)
    # p₁ = p₀ - h q₀, q₁ = q₀ + h p₁ is a matrix, and its power is cheap.
    stretch = np.linalg.matrix_power(np.array([[1, -h], [h, 1 - h**2]]), 100_000)
    expected = [np.array([0.0, 1.0])]
    for _ in range(10):
        expected.append(stretch @ expected[-1])
    np.testing.assert_allclose(states, expected, rtol=0, atol=1e-9)


def run_from(name, save_every, steps):
    """All saved numbers, from one vector of initial state and two parameters of a split field."""

    def run(z):
        field = SplitField(dp=lambda q: -z[2] * jnp.sin(q), dq=lambda p: p + z[3] * p**3)
        return rollout(get(name), field, z[:2], steps, save_every).states.reshape(-1)

    return run


@pytest.mark.parametrize(
    ("name", "save_every"), [("rk4", 1), ("stormer-verlet", 3), ("gauss-4", 3), ("lobatto-iiia-iiib-4", 1)]
)
def test_reverse_mode_through_rollout_is_forward_mode_and_finite_differences(name, save_every):
    run, z = run_from(name, save_every, IRREGULAR), jnp.array([0.7, -0.4, 1.2, 0.3])
    forward = with_value(jax.jacfwd, run)
    gradient, _ = forward(z)
    np.testing.assert_allclose(jax.jit(jax.jacrev(run))(z), gradient, rtol=0, atol=1e-13)
    np.testing.assert_allclose(gradient, central_differences(lambda z: forward(z)[1], z), rtol=0, atol=1e-8)


def test_padding_a_schedule_with_steps_of_length_zero_leaves_the_gradient_alone():
    z, padded = jnp.array([0.7, -0.4, 1.2, 0.3]), jnp.concatenate([IRREGULAR, jnp.zeros(3)])
    short, long = (jax.jit(jax.jacrev(run_from("implicit-midpoint", 1, steps)))(z) for steps in (IRREGULAR, padded))
    np.testing.assert_allclose(long[: len(short)], short, rtol=0, atol=1e-14)
    np.testing.assert_allclose(long[-2:], short[-2:], rtol=0, atol=1e-14)


def test_the_gradient_in_each_step_length_is_that_of_finite_differences():
    reverse = with_value(jax.jacrev, lambda steps: rollout(get("implicit-midpoint"), tao, X0, steps).states[-1])
    differences = central_differences(lambda steps: reverse(steps)[1], IRREGULAR)
    np.testing.assert_allclose(reverse(IRREGULAR)[0], differences, rtol=0, atol=1e-8)
