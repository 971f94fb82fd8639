"""Residuals that are alike say the same thing again: rows are counted as one for their autocorrelation time."""

import warnings

import numpy as np
import pytest

import sgpd
from sgpd.data import Windows, windows
from sgpd.inference.laplace import engine as laplace
from sgpd.inference.residuals import autocorrelation, autocorrelation_times, effective_sample_size, neighbours

SYSTEM = sgpd.systems.get("pendulum")


def autoregressive(rng, phi: float, n: int) -> np.ndarray:
    """xₜ = φ xₜ₋₁ + noise, with variance 1: its correlations are φ^|k|."""
    z = np.zeros(n)
    z[0] = rng.normal()
    for t in range(1, n):
        z[t] = phi * z[t - 1] + np.sqrt(1 - phi**2) * rng.normal()
    return z


def residuals(*runs: np.ndarray) -> tuple[Windows, np.ndarray]:
    """A recording whose residuals are these (n, d), and rows of zeros."""
    data = sgpd.Trajectories.from_arrays([0.1 * np.arange(len(run)) for run in runs], list(runs))
    cut = windows(data, max(map(len, runs)))
    return cut, np.zeros(cut.states.shape)


def test_white_errors_are_as_many_looks_as_rows():
    z = np.random.default_rng(0).normal(size=(4000, 1))
    assert 0.9 * 4000 < effective_sample_size(z) <= 4000


@pytest.mark.parametrize("phi", [0.5, 0.9, -0.8])
def test_autoregressive_errors_are_as_many_looks_as_their_squared_correlations_leave(phi):
    """Σ over all lags of φ^2|k| is (1 + φ²)/(1 - φ²)."""
    n = 40000
    z = autoregressive(np.random.default_rng(1), phi, n)
    assert effective_sample_size(z[:, None]) == pytest.approx(n * (1 - phi**2) / (1 + phi**2), rel=0.1)


def test_an_error_that_swings_for_ever_is_hardly_more_than_one_look():
    t = np.arange(400)
    few = np.sin(t / 7)
    assert effective_sample_size(few[:, None]) < 4
    many = np.random.default_rng(2).normal(size=400)
    assert effective_sample_size(np.stack([few, many], axis=1)) == effective_sample_size(few[:, None])
    assert (
        effective_sample_size(np.stack([many, np.where(t % 2 == 0, many, np.nan)], axis=1)) <= 200
    )  # missing: no values


@pytest.mark.parametrize("phi", [0.5, 0.9])
def test_rows_a_look_are_the_sum_of_all_correlations(phi):
    """Σ over all lags of φ^|k| is (1 + φ)/(1 - φ).

    The sum over 2M + 1 lags has a relative standard error of √(2 (2M + 1)/n), and is too large by what correlations of
    0 come to in such a series: their variance is not 1/n but (1 + φ²)/(1 - φ²)/n (Bartlett).
    """
    rng, lengths = np.random.default_rng(3), (20000, 15000)
    runs = [np.stack([autoregressive(rng, phi, n), rng.normal(size=n)], axis=1) for n in lengths]
    correlated, white = autocorrelation_times(*residuals(*runs))
    exact = (1 + phi) / (1 - phi)
    lags = 5 * exact
    error = exact * np.sqrt(2 * (2 * lags + 1) / sum(lengths))
    excess = 2 * lags * np.sqrt(2 / np.pi / min(lengths)) * (np.sqrt((1 + phi**2) / (1 - phi**2)) - 1)
    assert -4 * error < correlated - exact < 4 * error + excess
    assert white == 1.0


def test_neighbours_that_are_unlike_are_not_discounted():
    assert autocorrelation_times(*residuals(autoregressive(np.random.default_rng(6), -0.8, 2000)[:, None]))[0] == 1.0


def test_a_swing_at_the_frequency_of_the_motion_is_hardly_more_than_one_look():
    """At frequency 0 there is nothing of it: what counts is |ρ|."""
    t = np.arange(400)
    swing = np.stack([np.sin(t / 7), np.random.default_rng(4).normal(size=400)], axis=1)
    assert autocorrelation_times(*residuals(swing))[0] > 100


@pytest.mark.parametrize("rows", [5, 20])
def test_many_short_pieces_tell_together_what_none_tells_alone(rows):
    """The mean over pieces of Σ φ^|i - j| / n; piece by piece the correlations would be lost."""
    rng, phi = np.random.default_rng(7), 0.9
    pieces = [autoregressive(rng, phi, rows)[:, None] for _ in range(20000 // rows)]
    distance = np.abs(np.subtract.outer(np.arange(rows), np.arange(rows)))
    assert autocorrelation_times(*residuals(*pieces))[0] == pytest.approx((phi**distance).sum() / rows, rel=0.05)


def test_values_with_missing_ones_between_them_are_neighbours():
    rng = np.random.default_rng(9)
    every_second = np.where(np.arange(4000) % 2 == 0, np.repeat(autoregressive(rng, 0.9, 2000), 2), np.nan)
    both = residuals(np.stack([every_second, rng.normal(size=4000)], axis=1))
    np.testing.assert_array_equal(neighbours(*both).alike, [True, False])
    assert autocorrelation_times(*both)[0] > 10


def test_missing_values_are_no_rows():
    rng = np.random.default_rng(5)
    z = autoregressive(rng, 0.7, 20000)[:, None]
    half = np.where(np.arange(20000)[:, None] < 10000, z, np.nan)
    whole, part = (autocorrelation_times(*residuals(np.hstack([x, z])))[0] for x in (z, half))
    assert part == pytest.approx(whole, rel=0.15)
    few = np.where(np.arange(20000)[:, None] < 8, z, np.nan)
    assert np.isnan(neighbours(*residuals(np.hstack([few, z]))).limit[0])
    assert autocorrelation_times(*residuals(np.hstack([few, z])))[0] == 1.0


@pytest.mark.parametrize("counted", [True, False])
def test_noise_that_is_not_white_widens_the_bands_to_what_the_errors_are(counted, monkeypatch):
    """Four recordings of a pendulum. If every row counts, the smoothed states are three times as wrong as they say."""
    if not counted:
        monkeypatch.setattr(laplace, "autocorrelation_times", lambda recording, rows: np.ones(rows.shape[-1]))
    times = 0.1 * np.arange(100)
    truth, errors, variances = SYSTEM.simulate(SYSTEM.x0, times), [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        noise = 0.05 * np.stack([autoregressive(rng, 0.9, 100) for _ in range(2)], axis=1)
        data = sgpd.Trajectories.from_arrays(times, truth + noise, names=SYSTEM.names)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sgpd.SgpdWarning)
            model = sgpd.fit(data, "separable", seed=seed)
        told = next(check.sentence for check in model.diagnosis if check.id == "residuals")
        assert ("count as one" in told) == counted
        smoothed = model.smooth(paths=64)
        errors.append((smoothed.best - truth) ** 2)
        variances.append(smoothed.std**2)
    ratio = np.sqrt(np.mean(errors) / np.mean(variances))
    assert 0.6 < ratio < 1.5 if counted else ratio > 2


def test_the_autocorrelation_is_that_of_the_pairs_of_all_pieces():
    rng = np.random.default_rng(0)
    pieces = [np.cumsum(rng.normal(size=n)) for n in (40, 1, 7)]
    found, pairs = autocorrelation(pieces, 8)
    square = np.mean(np.concatenate(pieces) ** 2)
    for lag in range(1, 9):
        products = [z[i] * z[i + lag] for z in pieces for i in range(len(z) - lag)]
        assert pairs[lag - 1] == len(products)
        assert found[lag - 1] == pytest.approx(np.mean(products) / square)
    assert autocorrelation([np.zeros(0)], 3)[0].size == 0
    assert np.isnan(autocorrelation([np.zeros(5)], 1)[0]).all()


def test_the_check_of_neighbours_is_the_first_of_these_correlations():
    z = autoregressive(np.random.default_rng(3), 0.6, 200)
    recording, rows = residuals(z[:, None])
    assert neighbours(recording, rows).correlation[0] == autocorrelation([z], 30)[0][0]
