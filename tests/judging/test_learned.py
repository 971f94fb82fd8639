"""Equilibrium and period of a learned field, against those of the true one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgpd
from sgpd.judging.learned import Learned, _longest_period, learned
from sgpd.wording import plus_minus


def test_a_pendulum_rests_where_it_hangs_and_swings_with_its_period():
    system = sgpd.systems.get("pendulum")
    times = 0.1 * np.arange(100)
    noise = 0.02 * np.random.default_rng(4).normal(size=(100, 2))
    states = system.simulate(np.array([0.4, 0.6]), times) + noise
    model = sgpd.fit(sgpd.Trajectories.from_arrays(times, states, names=["p", "q"], units=["", "rad"]), "separable")
    found = learned(model)
    assert np.all(np.abs(found.equilibrium) < 4 * found.equilibrium_std + 1e-3)
    frequency = np.linalg.eigvals(np.asarray(jax.jacfwd(system.field)(jnp.zeros(2)))).imag.max()
    assert found.period == pytest.approx(2 * np.pi / frequency, abs=4 * found.period_std)
    assert found.period_std < 0.05 * found.period
    assert "rad, small-swing period" in str(found)


@pytest.mark.parametrize(
    ("matrix", "period"),
    [
        ([[0.0, 4.0], [-1.0, 0.0]], np.pi),  # frequency 2
        ([[-0.1, 2.0], [-2.0, -0.1]], np.pi),  # swings while it decays
        ([[-1.0, 0.1], [-0.1, -1.0]], np.nan),  # decays before it swings
        ([[1.0, 0.0], [0.0, -1.0]], np.nan),  # a saddle
    ],
)
def test_the_period_is_that_of_the_eigenvalues(matrix, period):
    np.testing.assert_allclose(_longest_period(np.asarray(matrix, float)), period)


def test_of_several_periods_it_is_the_longest():
    blocks = np.kron(np.diag([1.0, 3.0]), [[0.0, 1.0], [-1.0, 0.0]])
    np.testing.assert_allclose(_longest_period(blocks), 2 * np.pi)


def test_a_spread_has_two_digits_and_decides_how_many_its_value_has():
    assert plus_minus(2.4512, 0.0149) == "2.451 ± 0.015"
    assert plus_minus(9812.0, 203.0) == "9810 ± 200"
    assert plus_minus(1.23456, 0.0) == "1.235"
    assert plus_minus(1.5, 3e-7) == "1.5 ± 3.0e-07"


def test_numbers_are_given_to_the_places_that_their_spread_tells():
    found = Learned(("p", "q"), ("", "mm"), np.array([0.0012, 13.7]), np.array([0.02, 4.0]), 2.51234, 0.013)
    assert str(found) == "equilibrium p = 0.001 ± 0.020, q = 13.7 ± 4.0 mm, small-swing period 2.512 ± 0.013"
