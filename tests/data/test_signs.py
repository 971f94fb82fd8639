"""The sign test against motions whose sign is known: right order positive, swapped order negative, nothing else."""

import dataclasses

import numpy as np
import pytest

import sgpd
from sgpd.data import Trajectories, sign_test

RNG = np.random.default_rng(0)
T = np.arange(0, 20, 0.1)
P, Q = np.cos(T), np.sin(T)  # dq/dt = p, dp/dt = -q


def one(times, p, q):
    data = Trajectories.from_arrays(times, np.stack([p, q], axis=1), names=["p", "q"])
    return sign_test(data, ["p"], ["q"])[0], sign_test(data, ["q"], ["p"])[0]


def test_an_oscillator_is_positive_and_its_swap_negative():
    right, swapped = one(T, P, Q)
    assert right.correlation == pytest.approx(1, abs=1e-3)
    assert swapped.correlation == pytest.approx(-1, abs=1e-3)
    assert (right.positive, right.negative, swapped.positive, swapped.negative) == (True, False, False, True)


def test_the_correlation_over_one_row_is_that_of_slopes_and_midpoints():
    """Where the noise is in the momentum only and small, one row tells most: the plain correlation."""
    times = np.cumsum(RNG.uniform(0.5, 1.5, 400))
    p = RNG.normal(size=400)
    q = np.concatenate([[0], np.cumsum(np.diff(times) * (p[1:] + p[:-1]) / 2)])
    p = p + 0.3 * RNG.normal(size=400)
    expected = np.corrcoef(np.diff(q) / np.diff(times), (p[1:] + p[:-1]) / 2)[0, 1]
    assert one(times, p, q)[0].correlation == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["pendulum", "two-body", "non-separable"])
def test_noisy_simulations_are_told_from_their_swaps(name):
    system = sgpd.systems.get(name)
    times = np.arange(0, system.duration, system.step)
    states = system.simulate(system.x0, times)
    states = states + np.sqrt(system.noise_variance) * RNG.normal(size=states.shape)
    data = Trajectories.from_arrays(times, states, names=system.names)
    momenta, positions = np.split(np.array(system.names), 2)
    assert all(sign.positive for sign in sign_test(data, list(momenta), list(positions)))
    assert all(sign.negative for sign in sign_test(data, list(positions), list(momenta)))


def test_heavy_noise_is_averaged_out():
    """Differences of neighbouring rows are mostly noise here; over more rows the motion shows."""
    noise = 0.3 * RNG.normal(size=(2, len(T)))
    plain = np.corrcoef(np.diff(Q + noise[1]) / 0.1, (P + noise[0])[1:])[0, 1]
    right, swapped = one(T, P + noise[0], Q + noise[1])
    assert plain < 0.5
    assert right.correlation > 0.7
    assert swapped.correlation < -0.7


def test_noise_alone_is_not_clear():
    clear = [one(T, *RNG.normal(size=(2, len(T))))[0].clear for _ in range(100)]
    # Independent white noise: the slope over a row and the mean over the same row do not correlate.
    assert np.mean(clear) < 0.05


def test_windows_that_overlap_are_not_counted_twice():
    """Independent random walks: over many rows the slopes change slowly, and few of them are independent."""
    clear = [one(T, *np.cumsum(RNG.normal(size=(2, len(T))), axis=1))[0].clear for _ in range(200)]
    assert np.mean(clear) < 0.05


def test_nothing_is_said_across_runs():
    """Each run's positions start lower than the last ended although all momenta are positive."""
    runs = [(T[:40] + 10 * k, 1 + 0.5 * np.sin(T[:40])) for k in range(6)]
    states = []
    for k, (times, p) in enumerate(runs):
        q = np.concatenate([[0], np.cumsum(np.diff(times) * (p[1:] + p[:-1]) / 2)]) - 1e4 * k
        states.append(np.stack([p, q], axis=1))
    data = Trajectories.from_arrays([times for times, _ in runs], states, names=["p", "q"])
    assert sign_test(data, ["p"], ["q"])[0].correlation == pytest.approx(1, abs=1e-6)


def test_nothing_is_said_across_gaps():
    """In each long pause, someone pushes the mass back, against the motion before and after."""
    times, q = T.copy(), Q.copy()
    for k in range(20, 200, 20):
        times[k:] += 1.0
        q[k:] -= 500 * np.sign(P[k])
    right, _ = one(times, P, q)
    assert right.correlation == pytest.approx(1, abs=1e-3)


def test_missing_values_are_passed_over():
    p, q = P.copy(), Q.copy()
    p[::7] = np.nan
    q[3::11] = np.nan
    right, swapped = one(T, p, q)
    assert right.positive
    assert swapped.negative


def test_a_drift_of_the_position_does_not_matter():
    assert one(T, P, Q + 1000 + 5 * T)[0].correlation == pytest.approx(1, abs=1e-3)


def test_very_large_and_very_small_numbers_have_the_same_sign():
    for scale in (1e-200, 1e140):
        assert one(T, scale * P, scale * Q)[0].correlation == pytest.approx(1, abs=1e-3)


def test_too_few_rows_tell_nothing():
    right, swapped = one(T[:4], P[:4], Q[:4])
    assert np.isnan(right.correlation)
    assert not right.clear
    assert not swapped.clear


def test_the_sign_is_said_in_words():
    right, swapped = one(T, P, Q)
    assert str(right) == "dq/dt follows p, correlation +0.999"
    assert str(swapped) == "dp/dt runs against q, correlation -0.999"
    named = dataclasses.replace(right, momentum="dq")
    assert str(named) == "the slope of q follows dq, correlation +0.999"
    weak = one(T[:30], *RNG.normal(size=(2, 30)))[0]
    assert str(weak).endswith("too weak to tell")
