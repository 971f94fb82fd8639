"""Rows that the fit did not see judge its forecast: by independent samples, not by rows."""

import numpy as np
import pytest
from scipy.stats import norm

import sgpd
from sgpd.errors import BadInput
from sgpd.judging import judge_held_out
from sgpd.judging.held_out import HeldOut

SYSTEM = sgpd.systems.get("pendulum")
TIMES = 0.1 * np.arange(150)


@pytest.fixture(scope="module")
def states():
    rng = np.random.default_rng(11)
    return SYSTEM.simulate(SYSTEM.x0, TIMES) + 0.1 * rng.normal(size=(150, 2))


@pytest.fixture(scope="module")
def model(states):
    return sgpd.fit(sgpd.Trajectories.from_arrays(TIMES[:100], states[:100], names=["p", "q"]), "separable")


def later(states, run="0", start=100):
    return sgpd.Trajectories((sgpd.data.Run(TIMES[start:], states[start:]),), ("p", "q"), ("", ""), (run,))


def test_rows_that_no_path_reaches_fail_and_the_others_are_judged(model, states, monkeypatch):
    predict = sgpd.Model.predict

    def only_near(self, *arguments, times, **more):
        if times[-1] - times[0] > 2.0:
            raise sgpd.NumericalFailure(sgpd.Outcome.NOT_FINITE)
        return predict(self, *arguments, times=times, **more)

    monkeypatch.setattr(sgpd.Model, "predict", only_near)
    held = judge_held_out(model, later(states), paths=32, seed=3)
    assert (held.data.rows, held.beyond) == (15, 35)
    assert held.checked_to == pytest.approx(1.5)
    assert [check.id for check in held.checks] == ["held_out_reach", "held_out_error", "coverage"]
    assert held.checks[0].verdict == "FAIL"
    assert "no path reaches 35 of 50" in held.checks[0].sentence
    assert len(held.pit[0]) == 15
    monkeypatch.setattr("sgpd.models.forecast.SHORTER", (1.0, 0.9))
    with pytest.raises(sgpd.NumericalFailure):
        judge_held_out(model, later(states), paths=32, seed=3)


def test_the_end_of_a_run_is_forecast_on_from_its_fitted_part(model, states):
    held = judge_held_out(model, later(states), paths=32, seed=3)
    forecast = model.predict(times=np.r_[TIMES[99], TIMES[100:]], paths=32, seed=3)
    np.testing.assert_array_equal(held.forecasts[0].paths, forecast.paths)
    np.testing.assert_allclose(held.leads[0], TIMES[100:] - TIMES[99])
    assert held.checked_to == pytest.approx(5.0)
    expected = np.mean([norm.cdf(states[100:], path[1:], model.noise_std) for path in forecast.paths], axis=0)
    np.testing.assert_allclose(held.pit[0], expected, rtol=1e-12)
    error = np.sqrt(((forecast.best[1:] - states[100:]) ** 2).mean(axis=0)) / states[:100].std(axis=0)
    np.testing.assert_allclose(held.error, error, rtol=1e-12)
    assert held.error.max() < 0.3
    assert held.coverage(0.95) > 0.85
    assert held.checks[0].verdict == "PASS"


def test_a_run_that_the_fit_does_not_know_starts_at_its_first_complete_row_as_uncertain_as_the_noise(model):
    rng = np.random.default_rng(5)
    states = SYSTEM.simulate(np.array([0.3, 1.2]), TIMES) + 0.1 * rng.normal(size=(150, 2))
    states[0, 1] = states[40, 0] = np.nan
    held = judge_held_out(model, later(states, "new", start=0), paths=100)
    first = held.forecasts[0]
    np.testing.assert_array_equal(first.best[0], states[1])
    np.testing.assert_allclose(first.std[0], model.noise_std, rtol=4 / np.sqrt(2 * 100))
    assert np.isnan(held.pit[0][[0, 0, 1, 1, 40], [0, 1, 0, 1, 0]]).all()
    assert np.isnan(held.pit[0]).sum() == 5
    assert held.coverage(0.95) > 0.85


def judged(share, n, samples):
    """A result with a given share of values inside."""
    inside = np.full(round(share * n), 0.5)
    pit = np.concatenate([inside, np.full(n - len(inside), 0.999)])[:, None]
    data = sgpd.Trajectories.from_arrays(np.arange(n), np.arange(n)[:, None])
    return HeldOut(data, (), (np.arange(n),), (pit,), float(samples), np.array([0.1])).checks[1]


def test_coverage_is_judged_by_a_binomial_of_looks():
    assert judged(0.9, 1000, 19.9).verdict == "NOT MEASURED"
    assert judged(0.85, 1000, 20).verdict == "PASS"
    assert judged(0.85, 1000, 200).verdict == "FAIL"  # 7 standard errors
    assert judged(0.95, 1000, 1000).verdict == "PASS"
    assert judged(1.0, 1000, 1000).verdict == "ATTENTION"


def test_other_channels_are_refused(model, states):
    data = sgpd.Trajectories.from_arrays(TIMES, states, names=["q", "p"])
    with pytest.raises(BadInput, match=r"The channels are q, p, those of the model p, q"):
        judge_held_out(model, data)


def test_a_measured_start_has_its_spread_and_no_hold_on_the_field(model):
    x0 = np.array([0.5, 1.0])
    forecast = model.predict(x0, x0_std=[0.2, 0.0], duration=1.0, paths=100)
    np.testing.assert_array_equal(forecast.best[0], x0)
    assert forecast.std[0, 0] == pytest.approx(0.2, rel=4 / np.sqrt(200))
    np.testing.assert_array_equal(forecast.paths[:, 0, 1], 1.0)


def test_the_uncertainty_of_a_start_needs_the_start(model):
    with pytest.raises(ValueError, match="give x0, and no `start`"):
        model.predict(x0_std=[0.1, 0.1], duration=1.0)


def test_one_look_is_said_in_the_singular():
    assert "about 1 effective sample;" in judged(1.0, 100, 1.2).sentence
    assert "about 3 effective samples;" in judged(1.0, 100, 3.0).sentence
