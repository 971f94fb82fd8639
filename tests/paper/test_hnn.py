"""The Hamiltonian network is the one of its paper: its field, its start, its targets, its training, its rollout."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from sgpd.paper.hnn import DIFFERENCES, HamiltonianNetwork, roll, train_networks

CIRCLE = np.linspace(0, 2 * np.pi, 60, endpoint=False)


def oscillator(radius=1.0):
    """States of H = (p² + q²)/2 on a circle, and the exact derivatives (-q, p) there."""
    p, q = radius * np.cos(CIRCLE), radius * np.sin(CIRCLE)
    return np.stack([p, q], axis=1), np.stack([-q, p], axis=1)


def leaves(network):
    return {name: np.asarray(getattr(network, name)) for name in ("w1", "b1", "w2", "b2", "w3")}


@pytest.mark.parametrize("dimension", [2, 8])
def test_the_field_is_the_energy_gradient_turned_by_a_right_angle(getkey, dimension):
    network = HamiltonianNetwork.initial(getkey(), dimension)
    x, h, n = jr.normal(getkey(), (dimension,)), 1e-5, dimension // 2
    slopes = [float(network.energy(x + h * e) - network.energy(x - h * e)) / (2 * h) for e in np.eye(dimension)]
    p_dot, q_dot = np.split(np.asarray(network(x)), 2)
    np.testing.assert_allclose(p_dot, np.negative(slopes[n:]), atol=1e-9)
    np.testing.assert_allclose(q_dot, slopes[:n], atol=1e-9)


@pytest.mark.parametrize("dimension", [2, 8])
def test_the_field_is_free_of_divergence(getkey, dimension):
    network = HamiltonianNetwork.initial(getkey(), dimension)
    jacobian = jax.jacfwd(network)(jr.normal(getkey(), (dimension,)))
    assert np.abs(jacobian).max() > 1e-3  # there is something to cancel
    assert abs(np.trace(jacobian)) < 1e-12


@pytest.mark.parametrize(("dimension", "count"), [(2, 41_000), (8, 42_200)])
def test_the_network_has_as_many_parameters_as_the_one_of_the_paper(getkey, dimension, count):
    """Two hidden layers of 200, the second of which holds almost all: 200 d + 200 + 200² + 200 + 200."""
    network = HamiltonianNetwork.initial(getkey(), dimension)
    assert sum(leaf.size for leaf in jax.tree.leaves(network)) == count


@pytest.mark.parametrize("dimension", [2, 8])
def test_a_new_network_has_orthogonal_weights_and_the_biases_of_pytorch(getkey, dimension):
    new = leaves(HamiltonianNetwork.initial(getkey(), dimension))
    np.testing.assert_allclose(new["w1"].T @ new["w1"], np.eye(dimension), atol=1e-12)
    np.testing.assert_allclose(new["w2"].T @ new["w2"], np.eye(200), atol=1e-12)
    np.testing.assert_allclose(new["w3"] @ new["w3"], 1, atol=1e-12)
    for bias, inputs in [(new["b1"], dimension), (new["b2"], 200)]:
        # The largest of 200 uniform magnitudes is below 0.95 of the bound once in 30 000 draws.
        assert 0.95 < np.abs(bias).max() * np.sqrt(inputs) <= 1
        assert abs(bias.mean()) * np.sqrt(inputs) < 4 / np.sqrt(3 * 200)  # four standard errors


TIMES = np.cumsum([0.0, 0.1, 0.1, 0.1, 0.2, 0.05])  # not all alike
CURVATURE = np.array([3.0, -2.0])


def quadratic(times):
    """x = 1 + 2 t + c t²/2 with x'' = c, and x'."""
    t = np.asarray(times)[:, None]
    return 1 + 2 * t + t**2 / 2 * CURVATURE, 2 + t * CURVATURE


@pytest.mark.parametrize("kind", list(DIFFERENCES))
def test_every_difference_is_exact_on_straight_lines(kind):
    states, derivatives = DIFFERENCES[kind](TIMES, TIMES[:, None] * np.array([2.0, -1.0]))
    np.testing.assert_allclose(derivatives, np.broadcast_to([2.0, -1.0], states.shape), rtol=1e-12)


def test_gradient_is_exact_on_parabolas_except_at_the_ends():
    given, exact = quadratic(TIMES)
    states, derivatives = DIFFERENCES["gradient"](TIMES, given)
    np.testing.assert_array_equal(states, given)
    np.testing.assert_allclose(derivatives[1:-1], exact[1:-1], rtol=1e-12)
    np.testing.assert_allclose(derivatives[0] - exact[0], 0.1 / 2 * CURVATURE, rtol=1e-12)


def test_forward_is_off_by_half_a_step_of_curvature():
    given, exact = quadratic(TIMES)
    states, derivatives = DIFFERENCES["forward"](TIMES, given)
    np.testing.assert_array_equal(states, given[:-1])
    np.testing.assert_allclose(derivatives - exact[:-1], np.diff(TIMES)[:, None] / 2 * CURVATURE, rtol=1e-9)


def test_midpoint_has_the_exact_derivative_at_a_state_off_by_the_square_of_the_step():
    states, derivatives = DIFFERENCES["midpoint"](TIMES, quadratic(TIMES)[0])
    between, exact = quadratic((TIMES[:-1] + TIMES[1:]) / 2)
    np.testing.assert_allclose(derivatives, exact, rtol=1e-12)
    np.testing.assert_allclose(states - between, np.diff(TIMES)[:, None] ** 2 / 8 * CURVATURE, rtol=1e-9)


def test_the_first_step_goes_down_the_gradient_with_the_decay_inside_it():
    """Adam's first step is lr · g / |g|, whatever the size of g. On targets that the network already meets, g is the
    decay alone and each parameter goes 1e-3 towards 0; decay outside the moments (AdamW) would take 1e-7 of it.
    """
    states, _ = oscillator()
    new = HamiltonianNetwork.initial(jr.key(3), 2)
    (after,) = train_networks(states[None], np.asarray(jax.vmap(new)(states))[None], 1, [3])
    for name, before in leaves(new).items():
        clear = np.abs(before) > 0.02  # where decay, 2e-6 or more, stands above single precision's rounding of g
        moved = leaves(after)[name] - before
        np.testing.assert_allclose(moved[clear], -1e-3 * np.sign(before[clear]), rtol=0.02)


def test_networks_side_by_side_are_the_networks_trained_alone():
    """Other products of matrices round otherwise, in single precision, and Adam's first steps make a whole step of
    any gradient, however small: 20 steps of 1e-3 move a parameter by up to 0.02, rounding by a thousandth of that.
    """
    small, large = oscillator(0.5), oscillator(1.5)
    states, derivatives = (np.stack(pair) for pair in zip(small, large, strict=True))
    together = train_networks(states, derivatives, 20, [1, 2])
    for i, seed in enumerate([1, 2]):
        (alone,) = train_networks(states[i : i + 1], derivatives[i : i + 1], 20, [seed])
        for name, leaf in leaves(alone).items():
            np.testing.assert_allclose(leaves(together[i])[name], leaf, atol=2e-5)
    assert np.abs(together[0].w2 - together[1].w2).max() > 0.02


def test_progress_is_told_and_the_networks_come_back_in_double_precision():
    told = []
    states, derivatives = oscillator()
    (network,) = train_networks(states[None], derivatives[None], 120, [0], progress=lambda *now: told.append(now))
    assert told == [(100, 120), (120, 120)]
    assert all(leaf.dtype == np.float64 for leaf in leaves(network).values())


def test_an_oscillator_without_noise_is_learned():
    """Trained on a circle, the field is right on it to one per cent, and the rollout comes round in time 2 π."""
    states, derivatives = oscillator()
    (network,) = train_networks(states[None], derivatives[None], 400, [0])
    error = np.asarray(jax.vmap(network)(states)) - derivatives
    assert np.sqrt(np.mean(error**2)) / np.sqrt(np.mean(derivatives**2)) < 0.01
    rolled, ok = roll(network, states[0], np.array([0.0, np.pi / 2, np.pi, 2 * np.pi]))
    assert ok
    np.testing.assert_allclose(rolled, [[1, 0], [0, 1], [-1, 0], [1, 0]], atol=0.03)


def test_a_rollout_keeps_the_energy_of_its_network_to_the_tolerance_of_the_solver(getkey):
    network = HamiltonianNetwork.initial(getkey(), 4)
    times = np.linspace(0, 40, 101)
    states, ok = roll(network, np.array([0.3, -0.2, 0.5, 0.1]), times)
    energies = np.asarray(jax.vmap(network.energy)(states))
    assert ok
    assert np.abs(states - states[0]).max() > 0.1  # it went somewhere
    assert np.abs(energies - energies[0]).max() < 1e-7  # 1e-8 a step, over some dozens of steps


def test_a_rollout_is_the_known_solution():
    times = np.linspace(0, 20, 41)
    states, ok = roll(lambda x: jnp.stack([-x[1], x[0]]), np.array([1.0, 0.0]), times)
    assert ok
    np.testing.assert_allclose(states, np.stack([np.cos(times), np.sin(times)], axis=1), atol=1e-6)


def test_a_rollout_that_leaves_the_numbers_is_not_ok():
    """x' = x² from 1 is infinite at time 1."""
    _, ok = roll(jnp.square, np.array([1.0, 1.0]), np.linspace(0, 2, 5))
    assert not ok
