"""The true systems are true: against their closed solutions in elliptic functions, or Kepler's."""

from functools import cache

import jax
import numpy as np
import pytest
from scipy.special import ellipj, ellipk, ellipkinc

from sgpd import structures, systems
from sgpd.errors import NumericalFailure, Outcome

NAMES = ["pendulum", "two-body", "non-separable", "rigid-body"]
ROWS = dict(zip(NAMES, [100, 125, 100, 150], strict=True))

each_system = pytest.mark.parametrize("name", NAMES)


# -- closed solutions from the paper's initial states


def pendulum(t):
    """sin(q/2) = k sn(√6 t + u₀) with k² = H/12, from (p, q) = (2, 2)."""
    m = (6 * (1 - np.cos(2)) + 2) / 12
    u = np.sqrt(6) * t + ellipkinc(np.arcsin(np.sin(1) / np.sqrt(m)), m)
    sn, cn, _, _ = ellipj(u, m)
    return np.stack([2 * np.sqrt(6 * m) * cn, 2 * np.arcsin(np.sqrt(m) * sn)], axis=1)


def two_body(t):
    """The difference r of the positions is a Kepler ellipse with r'' = -2 r/|r|³; the centre of mass rests."""
    r, v = 2 * np.array([1.144, 0.880]), 2 * np.array([-0.241, 0.313])
    distance, mu = np.linalg.norm(r), 2.0
    a = 1 / (2 / distance - v @ v / mu)
    rate = np.sqrt(mu / a**3)
    start = r @ v / np.sqrt(mu * a), 1 - distance / a  # e sin E₀, e cos E₀
    anomaly = rate * t  # E - E₀, by Newton's method
    for _ in range(50):
        s, c = np.sin(anomaly), np.cos(anomaly)
        error = anomaly - start[1] * s + start[0] * (1 - c) - rate * t
        anomaly = anomaly - error / (1 - start[1] * c + start[0] * s)
    s, c = np.sin(anomaly), np.cos(anomaly)
    now = a * (1 - start[1] * c + start[0] * s)
    f, g = 1 - a / distance * (1 - c), t - (anomaly - s) / rate
    df, dg = -np.sqrt(mu * a) * s / (now * distance), 1 - a / now * (1 - c)
    q, p = np.outer(f, r) + np.outer(g, v), np.outer(df, r) + np.outer(dg, v)
    return np.hstack([p, -p, q, -q]) / 2


def non_separable(t):
    """q'² = (1 + q²)(a² - q²), so q = -a cn(√(1 + a²) t) from (p, q) = (0, -a), a = 1.5/4."""
    a = 1.5 / 4
    rate = np.sqrt(1 + a**2)
    sn, cn, dn, _ = ellipj(rate * t, a**2 / (1 + a**2))
    q = -a * cn
    return np.stack([a * rate * sn * dn / (1 + q**2), q], axis=1)


def rigid_body(t):
    """Euler's solution from (cos 1.1, 0, sin 1.1)."""
    c, s = np.cos(1.1), np.sin(1.1)
    sn, cn, dn, _ = ellipj(s / np.sqrt(2) * t, (c / s) ** 2)
    return np.stack([c * cn, -np.sqrt(2) * c * sn, s * dn], axis=1)


SOLUTIONS = dict(zip(NAMES, [pendulum, two_body, non_separable, rigid_body], strict=True))


@cache
def simulated(name):
    """A forecast as in the paper, from a start that is not 0."""
    system = systems.get(name)
    times = 3.0 + np.linspace(0, system.horizon, round(system.horizon / system.step) + 1)
    return times, system.simulate(system.x0, times)


@each_system
def test_simulation_is_the_closed_solution(name):
    times, states = simulated(name)
    np.testing.assert_allclose(states, SOLUTIONS[name](times - 3.0), rtol=0, atol=2e-9)


@each_system
def test_simulation_keeps_energy_and_invariants(name):
    system, (_, states) = systems.get(name), simulated(name)
    for kept in (system.energy, *system.invariants.values()):
        values = np.asarray(jax.jit(jax.vmap(kept))(states))
        np.testing.assert_allclose(values, np.broadcast_to(values[0], values.shape), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "period", "formula"),
    [
        ("pendulum", 4.038, 4 * ellipk((6 * (1 - np.cos(2)) + 2) / 12) / np.sqrt(6)),
        ("non-separable", 6.078, 4 * ellipk(0.375**2 / (1 + 0.375**2)) / np.sqrt(1 + 0.375**2)),
    ],
)
def test_solutions_return_after_one_period(name, period, formula):
    assert abs(formula - period) < 5e-4
    system = systems.get(name)
    start, half, end = system.simulate(system.x0, [0.0, formula / 2, formula])
    np.testing.assert_allclose(end, start, rtol=0, atol=1e-9)
    np.testing.assert_allclose(half, -start, rtol=0, atol=1e-9)  # both are odd


def test_energies_at_the_start_are_the_papers():
    """Of the two-body problem up to the three decimals of its initial state; the recorded orbit has -0.190378."""
    exact = {
        "pendulum": 10.496881,
        "two-body": 0.241**2 + 0.313**2 - 1 / (2 * np.hypot(1.144, 0.880)),
        "non-separable": 0.5703125,
        "rigid-body": np.cos(1.1) ** 2 / 2 + 3 * np.sin(1.1) ** 2 / 2,
    }
    assert abs(exact["two-body"] + 0.190378) < 2e-6
    for name in NAMES:
        system = systems.get(name)
        assert abs(system.energy(jax.numpy.asarray(system.x0)) - exact[name]) < 1e-6


@cache
def at_random_states(name):
    """States, the field there, and the gradients of the energy and of the invariants."""
    system = systems.get(name)
    x = np.random.default_rng(0).normal(size=(20, len(system.names)))
    kept = (system.energy, *system.invariants.values())
    found = jax.jit(jax.vmap(lambda x: (system.field(x), [jax.grad(f)(x) for f in kept])))(x)
    values, (energy, *invariants) = jax.tree.map(np.asarray, found)
    return x, values, energy, invariants


@each_system
def test_energy_and_invariants_do_not_change_along_the_field_anywhere(name):
    _, values, energy, invariants = at_random_states(name)
    for slope in (energy, *invariants):
        rate = np.einsum("nd,nd->n", slope, values)
        scale = np.linalg.norm(slope, axis=1) * np.linalg.norm(values, axis=1)
        assert np.all(np.abs(rate) <= 1e-14 * scale)


@pytest.mark.parametrize("name", NAMES[:3])
def test_hamiltonian_systems_are_the_turned_gradient_of_their_energy(name):
    _, values, energy, _ = at_random_states(name)
    dp, dq = np.split(energy, 2, axis=1)
    np.testing.assert_allclose(values, np.hstack([-dq, dp]), rtol=1e-13, atol=1e-14)


def test_the_rigid_body_is_lie_poisson():
    x, values, energy, _ = at_random_states("rigid-body")
    np.testing.assert_allclose(values, np.cross(x, energy) / 2, rtol=0, atol=1e-14)
    written = np.stack([x[:, 1] * x[:, 2] / 2, -x[:, 0] * x[:, 2], x[:, 0] * x[:, 1] / 2], axis=1)
    np.testing.assert_allclose(values, written, rtol=0, atol=1e-15)


@each_system
def test_a_system_names_its_coordinates_and_a_structure_that_there_is(name):
    system = systems.get(name)
    assert system.name == name
    assert len(system.names) == len(set(system.names)) == len(system.x0) == len(system.noise_variance)
    assert system.structure in structures.names()
    structures.get(system.structure).groups(len(system.x0))
    assert set(system.invariants) == {
        "two-body": {"momentum x", "momentum y", "angular momentum"},
        "rigid-body": {"|x|²"},
    }.get(name, set())


def test_the_catalogue_lists_every_system():
    assert systems.names() == NAMES


# -- recordings


@cache
def recording(name, seed):
    return systems.get(name).record(seed)


@each_system
def test_a_recording_has_the_papers_rows_and_starts_free_of_noise(name):
    system, (times, states) = systems.get(name), recording(name, 0)
    assert states.shape == (ROWS[name], len(system.names))
    np.testing.assert_allclose(times, system.step * np.arange(ROWS[name]), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(states[0], system.x0)


@each_system
def test_noise_has_mean_zero_and_the_stated_variance_and_no_correlation(name):
    noise = []
    for seed in range(3):
        times, states = recording(name, seed)
        noise.append((states - SOLUTIONS[name](times))[1:] / np.sqrt(systems.get(name).noise_variance))
    noise = np.concatenate(noise)
    n, d = noise.shape
    assert np.abs(noise.mean(axis=0) * np.sqrt(n)).max() < 4
    products = noise.T @ noise / n  # standard errors √(2/n) on the diagonal and √(1/n) off it
    assert np.abs((products - np.eye(d)) * np.sqrt(n / (1 + np.eye(d)))).max() < 4
    assert np.abs((noise[1:] * noise[:-1]).mean(axis=0) * np.sqrt(n)).max() < 4


@each_system
def test_the_same_seed_records_the_same_and_another_something_else(name):
    _, again = systems.get(name).record(0)
    np.testing.assert_array_equal(again, recording(name, 0)[1])
    assert not np.any(recording(name, 1)[1][1:] == again[1:])


# -- refusals


def test_an_unknown_system_is_refused_with_a_guess():
    with pytest.raises(
        ValueError, match=r"no system called 'pendulm'\. Did you mean 'pendulum'\? Known: pendulum, two-"
    ):
        systems.get("pendulm")


@pytest.mark.parametrize("x0", [[1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], [1.0, np.nan], [np.inf, 0.0], 1.0])
def test_an_initial_state_of_the_wrong_size_or_not_finite_is_refused(x0):
    with pytest.raises(ValueError, match=r"state of pendulum is 2 finite numbers, got .*; give p, q"):
        systems.get("pendulum").simulate(x0, [0.0, 1.0])


@pytest.mark.parametrize("times", [[0.0], [], 1.0, [0.0, 0.0], [1.0, 0.0], [0.0, np.nan], [0.0, np.inf], [[0.0, 1.0]]])
def test_times_that_do_not_increase_or_are_not_finite_are_refused(times):
    with pytest.raises(ValueError, match=r"Times to simulate must be at least two finite numbers that increase"):
        systems.get("pendulum").simulate([2.0, 2.0], times)


@pytest.mark.parametrize("positions", [[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, -1.0, 0.0]])
def test_a_collision_is_a_failure_with_a_remedy_and_not_an_endless_loop(positions):
    """At once, or after a fall from rest."""
    with pytest.raises(NumericalFailure, match="Start inside the region") as failure:
        systems.get("two-body").simulate([0.0] * 4 + positions, [0.0, 5.0])
    assert failure.value.outcome is Outcome.NOT_FINITE
