"""Forecasts start where they should, repeat, say when they are not what was trained, and survive being saved."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgpd
from sgpd.data import Run, Trajectories
from sgpd.errors import BadInput
from sgpd.integrators import rollout
from sgpd.judging import judge_held_out
from sgpd.models.forecast import Schedule, require_usable

X0 = [2.0, 2.0]


def test_row_zero_is_the_given_state_and_times_are_multiples_of_the_trained_step(model):
    forecast = model.predict(X0, duration=2.0, paths=6)
    np.testing.assert_allclose(forecast.times, 0.1 * np.arange(21))
    np.testing.assert_array_equal(forecast.paths[:, 0], np.tile(X0, (6, 1)))
    assert forecast.paths.shape == (6, 21, 2)
    assert forecast.ok.all()
    np.testing.assert_array_equal(forecast.std[0], 0)
    assert repr(forecast) == "Forecast(6 paths, t 0..2, p q, 0 failed)"


def test_the_same_seed_gives_the_same_paths_and_another_seed_others(model):
    first, again, other = (model.predict(X0, duration=1.0, paths=4, seed=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(first.paths, again.paths)
    assert np.abs(first.paths - other.paths).max() > 1e-6


def test_each_path_is_the_rollout_of_one_drawn_field(model):
    forecast = model.predict(X0, duration=3.0, paths=1, seed=5)
    field, x = model.draw(seed=5), jnp.asarray(X0)
    for row in forecast.paths[0, 1:]:
        x, info = model.integrator.step(field, x, model.step)
        assert info.converged
        np.testing.assert_allclose(x, row, atol=1e-9)


def test_stacked_draws_are_the_fields_behind_the_paths(model):
    forecast = model.predict([1.0, 0.5], duration=0.5, paths=3, seed=4)
    stacked = eqx.filter_vmap(lambda field: rollout(model.integrator, field, jnp.array([1.0, 0.5]), steps).states)
    steps = jnp.full(5, model.step)
    # two programs round differently, and k(ξ, ξ)⁻¹ makes that larger
    np.testing.assert_allclose(stacked(model.draws(3, seed=4)), forecast.paths, atol=1e-9)


def test_mean_std_and_interval_are_those_of_the_paths(model):
    forecast = model.predict(X0, duration=2.0, paths=8)
    np.testing.assert_allclose(forecast.mean, forecast.paths.mean(axis=0))
    np.testing.assert_allclose(forecast.std, forecast.paths.std(axis=0, ddof=1))
    low, high = forecast.interval(0.5)
    inside = (forecast.paths >= low) & (forecast.paths <= high)
    np.testing.assert_allclose(inside[:, 1:].mean(axis=0), 0.5)
    with pytest.raises(ValueError, match=r"for 95 % give 0\.95"):
        forecast.interval(95.0)


def test_without_a_start_the_forecast_goes_on_from_the_end_of_the_recording(model, pendulum):
    forecast = model.predict(duration=1.0, paths=32)
    assert forecast.times[0] == pendulum.runs[0].times[-1]
    last = sgpd.systems.get("pendulum").simulate(X0, pendulum.runs[0].times)[-1]
    assert np.all(np.abs(forecast.mean[0] - last) < 4 * forecast.std[0] + 0.3)
    assert np.all(forecast.std[0] > 0)  # the state is uncertain, together with the field


def test_uneven_times_are_stepped_in_equal_sub_steps(model):
    times = [0.0, 0.1, 0.4, 0.5]
    forecast = model.predict(X0, times=times, paths=2)
    even = model.predict(X0, duration=0.5, paths=2)
    np.testing.assert_allclose(forecast.paths, even.paths[:, [0, 1, 4, 5]], rtol=1e-9)


ROWS = [[1] * 50, [7] * 50, [1] * 50 + [1000] + [1] * 50, [10] * 50 + [1000] + [10] * 50, [2, 3] * 20]


@pytest.mark.parametrize("rows", ROWS)
def test_a_schedule_takes_every_interval_in_its_own_number_of_steps(rows):
    times = np.append(0, np.cumsum(rows)) * 0.1
    schedule = Schedule.through(times, 0.1)
    reached = np.append(0, np.cumsum(schedule.steps))
    np.testing.assert_allclose(reached[schedule.ends], times, atol=1e-9)
    assert len(schedule.steps) == sum(rows)
    np.testing.assert_allclose(schedule.steps, 0.1)


@pytest.mark.parametrize("rows", [[1] * 5, [3] * 70, [1, 200, 1]])
@pytest.mark.parametrize("lead", [0, 1, 7])
def test_steps_before_a_schedule_change_nothing_but_where_its_rows_are(rows, lead):
    schedule = Schedule.through(np.append(0, np.cumsum(rows)) * 0.1, 0.1)
    longer = schedule.after(np.full(lead, 0.5))
    reached = lambda s: np.append(0, np.cumsum(s.steps))[s.ends]
    np.testing.assert_allclose(reached(longer), 0.5 * lead + reached(schedule), atol=1e-9)


def test_the_best_rollout_is_that_of_the_best_estimate(model):
    field, integrator = model.mean(), model.integrator
    forecast, x = model.predict(X0, duration=1.0, paths=3), jnp.asarray(X0)
    for row in forecast.best[1:]:
        x, _ = integrator.step(field, x, model.step)
        np.testing.assert_allclose(row, x, rtol=1e-9, atol=1e-12)


def test_paths_in_several_batches_are_those_of_one(model, monkeypatch):
    once = model.predict(X0, duration=1.0, paths=20)
    monkeypatch.setattr("sgpd.models.forecast.DRAWS_AT_ONCE", (8,))
    np.testing.assert_allclose(model.predict(X0, duration=1.0, paths=20).paths, once.paths, rtol=1e-9)


def test_a_long_gap_is_stepped_through_to_the_same_states(model):
    times = 0.1 * np.array([0, 1, 2, 32, 33])
    forecast = model.predict(X0, times=times, paths=2)
    even = model.predict(X0, duration=3.3, paths=2)
    np.testing.assert_allclose(forecast.paths, even.paths[:, [0, 1, 2, 32, 33]], rtol=1e-8)
    np.testing.assert_allclose(forecast.best, even.best[[0, 1, 2, 32, 33]], rtol=1e-8)


def test_another_step_or_method_is_announced_and_adaptive_steps_agree_with_tiny_ones(model):
    with pytest.warns(sgpd.SgpdWarning, match="steps of 0.005 to 0.005 instead of 0.1"):
        fine = model.predict(X0, duration=1.0, step=0.005, paths=2)
    with pytest.warns(sgpd.SgpdWarning, match="adaptive steps instead of stormer-verlet"):
        adaptive = model.predict(X0, times=fine.times, integrator="adaptive", paths=2)
    np.testing.assert_allclose(adaptive.paths, fine.paths, atol=1e-4)
    with pytest.warns(sgpd.SgpdWarning, match="gauss-4 instead of stormer-verlet"):
        model.predict(X0, duration=0.5, integrator="gauss-4", paths=2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(x0=[1.0], duration=1.0), "x0 must be 2 finite numbers"),
        (dict(x0=[1.0, np.nan], duration=1.0), "x0 must be 2 finite numbers"),
        (dict(x0=X0), "Say either how long"),
        (dict(x0=X0, duration=1.0, times=[0, 1]), "Say either how long"),
        (dict(x0=X0, duration=-1.0), "at least one step"),
        (dict(x0=X0, times=[0.0, 0.0]), "increase"),
        (dict(x0=X0, duration=1.0, step=0.0), "positive"),
        (dict(x0=X0, duration=1.0, integrator="gaus-4"), "Did you mean 'gauss-4'"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(model, arguments, message):
    with pytest.raises(ValueError, match=message):
        model.predict(**arguments)


def test_paths_that_fail_are_counted_and_none_left_is_an_outcome_with_a_remedy():
    with pytest.warns(sgpd.SgpdWarning, match="1 of 2 paths failed and are left out of mean and bands"):
        require_usable(np.array([True, False]), np.zeros(2))
    with pytest.raises(sgpd.NumericalFailure, match="all 2 paths") as failure:
        require_usable(np.array([False, False]), np.array([np.nan, 0.0]))
    assert failure.value.outcome is sgpd.Outcome.NOT_FINITE
    with pytest.raises(sgpd.NumericalFailure, match="shorter step") as failure:
        require_usable(np.array([False]), np.array([0.3]))
    assert failure.value.outcome is sgpd.Outcome.NOT_CONVERGED


def test_every_claim_of_the_model_is_measured_and_holds(model):
    assert model.preserves == {"volume", "symplectic form"}
    report = model.check_claims(20.0)
    assert report.passed
    assert {check.id for check in report.checks} == {
        "determinant", "symplectic", "energy_wander", "energy_trend", "steps"
    }  # fmt: skip
    assert report["determinant"].value < 1e-11


def test_a_saved_model_predicts_the_same_numbers(model, tmp_path):
    model.save(tmp_path / "m.safetensors")
    loaded = sgpd.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(
        loaded.predict(X0, duration=1.0, paths=3).paths, model.predict(X0, duration=1.0, paths=3).paths
    )
    assert (loaded.names, loaded.units, loaded.objective) == (model.names, model.units, model.objective)
    assert loaded.history == model.history
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_a_file_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        sgpd.load(tmp_path / "absent.safetensors")
    (tmp_path / "junk.safetensors").write_bytes(b"\x80\x04junk")
    with pytest.raises(ValueError, match="not a readable sgpd model"):
        sgpd.load(tmp_path / "junk.safetensors")


def test_a_drawn_field_has_its_own_energy(model):
    field = model.draw(seed=0)
    gradient = jax.grad(field.energy)(jnp.array([0.3, -0.4]))
    np.testing.assert_allclose(field(jnp.array([0.3, -0.4])), [-gradient[1], gradient[0]], rtol=1e-9)


def test_a_further_path_lies_inside_the_interval_with_its_probability():
    """Of exchangeable paths, whatever their number."""
    rng, repeats = np.random.default_rng(0), 4000
    for paths, level, expected in ((64, 0.95, 0.95), (30, 0.5, 0.5), (5, 0.95, 4 / 6)):  # five: lowest to highest
        drawn = rng.normal(size=(paths, repeats, 1))
        ok = np.ones(paths, bool)
        forecast = sgpd.Forecast(np.arange(repeats), drawn, drawn[0], ok, np.zeros(paths), ("x",), ("",))
        low, high = forecast.interval(level)
        further = rng.normal(size=(repeats, 1))
        share = ((low <= further) & (further <= high)).mean()
        assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / repeats)


# -- runs and starts


@pytest.fixture(scope="module")
def three_runs(pendulum):
    """No row of the first one is complete, so that no window starts in it and nothing of it is fitted."""
    run = pendulum.runs[0]
    rows = {"a": slice(0, 6), "b": slice(6, 66), "c": slice(66, 96)}
    states = [run.states[r].copy() for r in rows.values()]
    states[0][::2, 0] = states[0][1::2, 1] = np.nan
    data = sgpd.Trajectories.from_arrays([run.times[r] for r in rows.values()], states)
    data = dataclasses.replace(data, run_names=tuple(rows))
    settings = sgpd.Variational(steps=3, shooting=False, features=32, paths=2, window=10, stride=5)
    return data, sgpd.fit(data, "separable", x0="observed", inference=settings)


def test_a_forecast_goes_on_from_the_run_that_was_named(three_runs):
    """Not from the run that stands at its place among those that have windows."""
    data, model = three_runs
    assert model.fitted_runs == [1, 2]
    for run, index in (("b", 1), (1, 1), ("c", 2), (-1, 2), (None, 2)):
        forecast = model.predict(duration=1.0, paths=2, run=run)
        assert forecast.times[0] == data.runs[index].times[-1]
        assert forecast.run == data.run_names[index]
        smoothed = model.smooth(run=run, paths=2)
        assert smoothed.run == data.run_names[index]
        assert smoothed.times[-1] == data.runs[index].times[-1]


@pytest.mark.parametrize(("run", "message"), [("a", "no window lies in run 'a'"), ("d", "no fitted run called 'd'")])
def test_a_run_that_was_not_fitted_is_refused_with_those_that_were(three_runs, run, message):
    with pytest.raises(BadInput, match=f"{message}.*[Kk]no.*b'?, '?c"):
        three_runs[1].predict(duration=1.0, run=run)


def test_held_out_rows_are_forecast_from_their_own_run(three_runs):
    data, model = three_runs
    b = data.runs[1]
    held = Trajectories((Run(b.times[-1] + 0.1 * np.arange(1, 6), b.states[-5:]),), data.names, data.units, ("b",))
    judged = judge_held_out(model, held, paths=4)
    assert judged.forecasts[0].times[0] == b.times[-1]
    assert judged.forecasts[0].run == "b"


def test_a_forecast_can_start_at_the_first_row_of_a_run(model, pendulum):
    forecast, smoothed = model.predict(start="first", duration=1.0, paths=3), model.smooth(paths=3)
    assert forecast.times[0] == pendulum.runs[0].times[0]
    np.testing.assert_allclose(forecast.paths, smoothed.paths[:, :11], rtol=1e-9)


def test_a_state_that_cannot_be_the_first_one_is_refused_as_such_and_taken_as_any_other(model):
    with pytest.raises(BadInput, match="outside what the recording allows for the first state"):
        model.predict([-2.0, 1.0], start="first", duration=1.0)
    assert model.predict([-2.0, 1.0], duration=1.0, paths=2).ok.all()
    with pytest.raises(ValueError, match="no start of a forecast called 'begin'"):
        model.predict(start="begin", duration=1.0)
