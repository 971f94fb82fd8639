"""Forecasts as tables: the names of the columns, and the numbers in them against their definition."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from sgpd.models import Forecast
from sgpd.models.tables import paths_dataframe

NAMES = ("p", "q")


def forecast(paths=200, rows=4, failed=(), seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(paths, rows, 2)) * [1.0, 3.0] + [10.0, -5.0]
    ok = np.ones(paths, bool)
    ok[list(failed)] = False
    return Forecast(5.0 + 0.5 * np.arange(rows), values, values.mean(axis=0), ok, np.zeros(paths), NAMES, ("kg", "m"))


def test_the_wide_table_has_the_level_in_its_names():
    frame = forecast().to_dataframe([0.5, 0.995])
    bands = [f"{name}_{what}" for name in NAMES for what in ("mean", "std", "lo50", "hi50", "lo99.5", "hi99.5")]
    assert list(frame.columns) == ["t", "lead", *bands, "paths_ok"]
    np.testing.assert_allclose(frame["lead"], [0, 0.5, 1.0, 1.5])


def test_the_numbers_are_those_of_the_paths_that_are_ok():
    fc = forecast(failed=[3, 7])
    frame = fc.to_dataframe()
    used = np.delete(fc.paths, [3, 7], axis=0)
    np.testing.assert_allclose(frame["q_mean"], used[:, :, 1].mean(axis=0))
    np.testing.assert_allclose(frame["q_std"], used[:, :, 1].std(axis=0, ddof=1))
    np.testing.assert_allclose(frame["p_hi95"], np.quantile(used[:, :, 0], 0.975, axis=0, method="weibull"))


def test_the_long_table_says_the_same_with_units():
    wide, long = forecast().to_dataframe(), forecast().to_dataframe(layout="long")
    assert list(long.columns) == ["t", "lead", "state", "unit", "mean", "std", "lo95", "hi95", "paths_ok"]
    q = long[long["state"] == "q"]
    assert set(q["unit"]) == {"m"}
    np.testing.assert_array_equal(q["lo95"], wide["q_lo95"])


def test_the_band_of_observations_of_one_certain_path_is_that_of_the_noise():
    fc = forecast(paths=2)
    fc = Forecast(fc.times, np.zeros((2, 4, 2)), fc.best, fc.ok, fc.residual, NAMES, fc.units)
    frame = fc.to_dataframe([0.9], noise=[0.1, 2.0])
    np.testing.assert_allclose(frame["q_obs_hi90"], 2.0 * norm.ppf(0.95), rtol=1e-12)
    np.testing.assert_allclose(frame["p_obs_lo90"], 0.1 * norm.ppf(0.05), rtol=1e-12)


def test_the_band_of_observations_holds_its_share_of_noisy_values():
    fc, noise = forecast(), np.array([0.8, 2.0])
    frame = fc.to_dataframe([0.8], noise=noise)
    draws = 2000
    seen = fc.paths[:, None] + noise * np.random.default_rng(1).normal(size=(200, draws, 4, 2))
    for k, name in enumerate(NAMES):
        low, high = (frame[f"{name}_obs_{end}80"].to_numpy() for end in ("lo", "hi"))
        inside = ((low <= seen[..., k]) & (seen[..., k] <= high)).mean()
        assert abs(inside - 0.8) < 4 * np.sqrt(0.16 / (200 * draws))


def test_paths_that_leave_the_numbers_are_counted_until_then():
    fc = forecast(paths=10)
    fc.paths[4, 2:] = np.inf
    fc.ok[4] = False
    fc.ok[5], fc.residual[5] = False, 0.3  # its solver failed somewhere: it counts nowhere
    assert fc.to_dataframe()["paths_ok"].tolist() == [9, 9, 8, 8]


def test_paths_have_the_shape_of_a_recording(tmp_path):
    from sgpd import Trajectories

    fc = forecast(paths=3, failed=[1])
    paths_dataframe(fc, "time").to_csv(tmp_path / "paths.csv", index=False)
    data = Trajectories.read(tmp_path / "paths.csv", run="path")
    assert data.run_names == ("0", "2")
    assert data.names == NAMES
    np.testing.assert_allclose(data.runs[1].states, fc.paths[2])
    np.testing.assert_allclose(data.runs[1].times, fc.times)


def test_a_dataset_has_a_variable_for_each_coordinate_with_its_unit():
    xarray = pytest.importorskip("xarray")
    fc = forecast(paths=3, failed=[1])
    dataset = fc.to_xarray()
    assert isinstance(dataset, xarray.Dataset)
    assert dataset["q"].dims == ("path", "time")
    assert dataset["q"].attrs["units"] == "m"
    np.testing.assert_array_equal(dataset["p"].values, fc.paths[:, :, 0])
    assert dataset["converged"].values.tolist() == [True, False, True]


def test_one_of_several_runs_is_named_in_every_table():
    pytest.importorskip("xarray")
    alone, fc = forecast(), replace(forecast(), run="monday")
    for layout in ("wide", "long"):
        frame = fc.to_dataframe(layout=layout)
        assert list(frame.columns) == ["run", *alone.to_dataframe(layout=layout).columns]
        assert set(frame["run"]) == {"monday"}
    assert str(fc.to_xarray()["run"].values) == "monday"
    assert "run" not in alone.to_xarray().coords
    assert "run monday" in fc._repr_html_()


def test_the_dataset_for_arviz_has_its_dimensions_and_only_paths_that_are_ok():
    pytest.importorskip("xarray")
    fc = forecast(paths=3, failed=[1])
    dataset = fc.to_xarray(arviz=True)
    assert dataset["q"].dims == ("chain", "draw", "time")
    assert set(dataset.data_vars) == set(NAMES)
    assert (dataset["chain"].values.tolist(), dataset["draw"].values.tolist()) == ([0], [0, 2])
    np.testing.assert_array_equal(dataset["p"].values[0], fc.paths[[0, 2], :, 0])
    np.testing.assert_allclose(dataset["q"].mean(("chain", "draw")), fc.mean[:, 1])


def test_the_card_is_small_and_says_how_many_paths_failed():
    card = forecast(failed=[0, 1])._repr_html_()
    assert "2 failed" in card
    assert "ATTENTION" in card
    assert "<script" not in card
    assert len(card) < 10_000


def test_names_are_escaped_in_the_card():
    fc = forecast()
    card = Forecast(fc.times, fc.paths, fc.best, fc.ok, fc.residual, ("<b>", "q"), fc.units)._repr_html_()
    assert "<b>" not in card


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"layout": "wider"}, "Did you mean 'wide'"),
        ({"levels": [95.0]}, "between 0 and 1"),
        ({"noise": [1.0]}, "2 positive numbers"),
        ({"noise": [1.0, -1.0]}, "2 positive numbers"),
    ],
)
def test_what_cannot_be_tabulated_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        forecast().to_dataframe(**arguments)
