"""What the figures show, against numbers found in another way."""

import base64

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

import sgpd
from sgpd.checks import energy_deviation
from sgpd.judging import HeldOut
from sgpd.models import Forecast
from sgpd.plots.interactive import packed
from sgpd.plots.marks import padded, stretches, thinned
from sgpd.report.material import Fitted, gather
from sgpd.report.sections.calibration import coverage_by_lead, ecdf_margin
from sgpd.report.sections.cuts import integrated, near_data
from sgpd.report.sections.forecast import observation_band
from sgpd.report.sections.kept import ENERGY, Kept, changes, recorded_courses
from sgpd.report.sections.residuals import left_over
from sgpd.wording import number, share
from tests.report.conftest import ABOUT, CHECKS


def test_white_noise_stays_in_the_margin_of_its_distribution_nineteen_times_of_twenty():
    rng, count, looks = np.random.default_rng(1), 4000, 12
    u = np.sort(rng.uniform(size=(count, looks)), axis=1)
    above, below = np.arange(1, looks + 1) / looks - u, u - np.arange(looks) / looks
    inside = (np.maximum(above, below).max(axis=1) <= ecdf_margin(looks)).mean()
    assert abs(inside - 0.95) < 4 * np.sqrt(0.95 * 0.05 / count)


def test_coverage_by_lead_counts_values_inside_central_bands(pendulum):
    real = pendulum.held_out
    n, d = real.pit[0].shape
    pit = np.full((n, d), 0.5)
    pit[n // 2 :, 0] = 0.99  # outside the 95 % band (0.025 to 0.975), late
    pit[0, 1] = np.nan
    held = HeldOut(real.data, real.forecasts, real.leads, (pit,), 10.0, np.zeros(2))
    lead, inside, counts = coverage_by_lead(held, 0.95)
    assert counts.sum() == n * d - 1
    assert (inside * counts).sum() == pytest.approx(n * d - 1 - (n - n // 2))
    assert (np.diff(lead) > 0).all()
    assert inside[0] == 1
    assert inside[-1] < 1


def test_the_observation_band_is_that_of_paths_with_noise():
    rng = np.random.default_rng(2)
    paths = rng.normal(size=(40, 3, 1)) * np.array([0.2, 1.0, 5.0])[None, :, None]
    forecast = Forecast(np.arange(3.0), paths, paths[0], np.ones(40, bool), np.zeros(40), ("x",), ("",))
    low, high = observation_band(forecast, np.arange(3), 0, 0.7)
    noisy = paths[:, :, 0][None] + 0.7 * rng.normal(size=(20_000, 40, 3))
    expected = np.quantile(noisy.reshape(-1, 3), [0.025, 0.975], axis=0)
    np.testing.assert_allclose(np.stack([low, high]), expected, rtol=0.02)


def test_the_change_of_energy_along_paths_is_what_the_checks_measure():
    system = sgpd.systems.get("pendulum")
    path = np.array([[2.0, 2.0], [1.0, 2.2], [0.0, 2.3], [-1.5, 2.0]])
    field = sgpd.SplitField(lambda q: -6 * jnp.sin(q), lambda p: p, system.energy)
    kept = Kept("H", lambda field, x: system.energy(x))
    found = changes(kept, field, path[None])[0]
    wander, _ = energy_deviation(system.energy, jnp.asarray(path))
    assert np.abs(found).max() == pytest.approx(float(wander))
    assert found[0] == 0
    energies = np.array([system.energy(x) for x in path])
    assert (np.sign(found[1:]) == np.sign(energies[1:] - energies[0])).all()


def test_the_recorded_energy_of_the_page_has_the_trend_that_the_diagnosis_judged(pendulum):
    material = gather(pendulum.model, pendulum.data, CHECKS, ABOUT)
    (_, course), check = recorded_courses(material, ENERGY)[0], material.assessment["recorded_energy"]
    assert abs(course.slope / course.error) == pytest.approx(check.value, rel=1e-6)


def test_residuals_stand_at_the_rows_that_were_fitted():
    run = sgpd.data.Run(np.arange(6.0), np.array([[0.0], [1.0], [np.nan], [3.0], [4.0], [5.0]]))
    kept = np.array([0.0, 1.0, 2.0, 4.0])
    smoothed = Forecast(kept, np.zeros((1, 4, 1)), kept[:, None] - 0.5, np.ones(1, bool), np.zeros(1), ("x",), ("",))
    left = left_over(Fitted(run, smoothed), np.array([0.25]))
    np.testing.assert_array_equal(left.times, kept)
    np.testing.assert_array_equal(left.values[:, 0], [2.0, 2.0, np.nan, 2.0])


def test_a_potential_is_the_integral_of_its_force():
    at = np.linspace(-1, 2, 201)
    expected = np.array([quad(np.cos, -1, end)[0] for end in at])
    np.testing.assert_allclose(
        integrated(at, np.stack([np.cos(at), 2 * np.cos(at)])), [expected, 2 * expected], atol=1e-4
    )


def test_places_near_data_are_those_with_a_state_within_reach():
    rng = np.random.default_rng(3)
    states, points = rng.normal(size=(30, 2)) * [1.0, 50.0], rng.normal(size=(200, 2)) * [1.0, 50.0]
    scaled = (points[:, None] - states[None]) / np.ptp(states, axis=0)
    np.testing.assert_array_equal(near_data(points, states), np.sqrt((scaled**2).sum(axis=2)).min(axis=1) <= 0.12)


def test_arrays_survive_packing_to_what_a_screen_can_show():
    for values in (np.linspace(-3, 7, 50), 1.7e9 + np.linspace(0, 1, 50), np.array([0.0, np.nan, 1e-300])):
        found = packed(values)
        back = np.frombuffer(base64.b64decode(found["bdata"]), "<" + found["dtype"]).astype(float)
        np.testing.assert_allclose(back, values, atol=1e-6 * np.ptp(values[np.isfinite(values)]), rtol=0)


def test_thinning_keeps_both_ends_and_curves_part_at_gaps():
    assert thinned(7).tolist() == list(range(7))
    few = thinned(10_001, 100)
    assert (few[0], few[-1], len(few)) == (0, 10_000, 100)
    parts = stretches(np.array([0.0, 1.0, 2.0, 9.0, 10.0]), 3.0)
    assert [(part.start, part.stop) for part in parts] == [(0, 3), (3, 5)]
    assert padded(np.array([1.0, np.nan, 3.0]), 0.0) == (1.0, 3.0)
    assert padded(np.array([1.0, 3.0]), 0.5) == (0.0, 4.0)


def test_numbers_are_written_as_people_write_them():
    assert [number(v) for v in (0.0, 31622.7, -0.014, 2.4515, 3e-15, 1e7)] == [
        "0", "31600", "-0.014", "2.45", "3e-15", "1e+07",
    ]  # fmt: skip
    assert [share(v) for v in (0.0, 0.004, 0.95, 0.997, 1.0)] == ["0 %", "< 1 %", "95 %", "> 99 %", "100 %"]
