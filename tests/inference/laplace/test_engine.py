"""The default fit of a noisy pendulum: forecasts, the smoothed recording, an exact start, saving, several runs."""

import dataclasses
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgpd
from sgpd.errors import CheckWarning
from sgpd.fields import linearise
from sgpd.inference.laplace import engine as laplace
from sgpd.inference.laplace import stages
from sgpd.integrators import rollout
from sgpd.paper.truths import noisy_start

SYSTEM = sgpd.systems.get("pendulum")
SEED = 101
NO_STEPS = sgpd.integrators.Newton(max_steps=0)


@pytest.fixture(scope="module")
def truth():
    return SYSTEM.simulate(SYSTEM.x0, 0.1 * np.arange(401))


@pytest.fixture(scope="module")
def known():
    """The paper's recording, whose first state is exact, and the fit that knows it."""
    data = sgpd.Trajectories.from_arrays(*SYSTEM.record(seed=SEED), names=SYSTEM.names, units=["N s", "rad"])
    return data, sgpd.fit(data, "separable", x0="known", seed=1)


@pytest.fixture(scope="module")
def latent():
    """The same with noise on the first state too."""
    times, states = SYSTEM.record(seed=SEED)
    states[0] = noisy_start(SYSTEM, SEED)
    data = sgpd.Trajectories.from_arrays(times, states, names=SYSTEM.names)
    return data, sgpd.fit(data, "separable", seed=1)


def distance(states, truth):
    return np.sqrt(((np.asarray(states) - truth) ** 2).sum(axis=1).mean())


def test_a_forecast_over_four_times_the_recording_is_closer_than_the_noise(known, truth):
    """The noise is 0.45 long."""
    forecast = known[1].predict(SYSTEM.x0, duration=40.0)
    assert forecast.ok.all()
    assert distance(forecast.best, truth) < 0.3
    assert distance(forecast.mean, truth) < 0.3


@pytest.mark.parametrize("start", ["known", "latent"])
def test_the_smoothed_recording_is_closer_to_the_truth_and_its_bands_hold_it(request, start, truth):
    data, model = request.getfixturevalue(start)
    smoothed = model.smooth()
    np.testing.assert_allclose(smoothed.times, data.runs[0].times)
    recorded = distance(data.runs[0].states, truth[:100])
    assert distance(smoothed.mean, truth[:100]) < recorded / 3
    assert distance(smoothed.best, truth[:100]) < recorded / 3
    low, high = smoothed.interval(0.95)
    inside = (low <= truth[:100]) & (truth[:100] <= high)
    assert 0.8 <= inside[1:].mean() <= 1
    assert np.all((smoothed.std[0] == 0) == (start == "known"))


def test_a_start_that_becomes_known_corrects_the_field(latent, truth):
    """Start and field were learned together; a rollout of the field alone from the exact start drifts away."""
    model, x0 = latent[1], jnp.asarray(SYSTEM.x0)
    naive = eqx.filter_jit(rollout)(model.integrator, model.mean(), x0, jnp.full(400, 0.1)).states
    anywhere = model.predict(SYSTEM.x0, duration=40.0)  # any state, however close to a recorded one: nothing is learned
    np.testing.assert_allclose(anywhere.best, naive, atol=1e-6)
    forecast = model.predict(SYSTEM.x0, start="first", duration=40.0)
    np.testing.assert_array_equal(forecast.paths[:, 0], np.broadcast_to(SYSTEM.x0, (64, 2)))
    assert distance(forecast.best, truth) < distance(naive, truth) / 3
    assert distance(forecast.mean, truth) < distance(naive, truth) / 3
    assert distance(forecast.best, truth) < 0.5


def test_without_a_start_the_forecast_goes_on_where_the_smoothed_recording_ends(latent, truth):
    data, model = latent
    ahead, smoothed = model.predict(duration=30.0, paths=16, seed=4), model.smooth(paths=16, seed=4)
    assert ahead.times[0] == data.runs[0].times[-1]
    np.testing.assert_allclose(ahead.paths[:, 0], smoothed.paths[:, -1], rtol=1e-9)  # field and state drawn together
    np.testing.assert_allclose(ahead.best[0], smoothed.best[-1], rtol=1e-9)
    assert np.all(ahead.std[0] > 0)
    assert distance(ahead.mean, truth[99:400]) < 0.5


def test_the_same_seed_gives_the_same_paths_and_another_seed_others(latent):
    model = latent[1]
    first, again, other = (model.predict(duration=1.0, paths=8, seed=s).paths for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-6


@pytest.mark.parametrize("start", ["known", "latent"])
def test_a_saved_fit_gives_the_same_numbers_and_words(request, start, tmp_path):
    model = request.getfixturevalue(start)[1]
    model.save(tmp_path / "m.safetensors")
    loaded = sgpd.load(tmp_path / "m.safetensors")
    for ask in (
        lambda m: m.predict(SYSTEM.x0, duration=2.0, paths=8),
        lambda m: m.predict(duration=2.0, paths=8),
        lambda m: m.smooth(paths=8),
    ):
        mine, its = ask(model), ask(loaded)
        for part in ("times", "paths", "best", "ok"):
            np.testing.assert_array_equal(getattr(its, part), getattr(mine, part))
    for part in ("notes", "facts", "history", "names", "units", "objective", "step"):
        assert getattr(loaded, part) == getattr(model, part)
    np.testing.assert_array_equal(loaded.noise_std, model.noise_std)


def test_a_fit_tells_facts_about_itself(known):
    facts, history = known[1].facts.fit, known[1].history
    assert facts.converged
    assert facts.parameters == known[1].joint.mean.size
    assert 2 < facts.effective_parameters < facts.parameters
    assert np.isfinite(facts.log_evidence)
    assert (facts.inducing, facts.inducing_first, facts.growth) == ((12, 12), (12, 12), "")  # a grid does not grow
    assert not any(group.may_grow for group in known[1].posterior.groups)
    assert max(facts.determined) < 1
    assert known[1].objective == "evidence"
    assert [line.restart for line in history if line.round == 0] == [20, 100]
    assert known[1].notes
    np.testing.assert_allclose(known[1].noise_std, np.sqrt(0.1), rtol=0.25)


def test_several_runs_with_a_gap_and_missing_values_are_fitted_with_noise_that_is_known(known):
    times, states = known[0].runs[0].times, known[0].runs[0].states
    holes = states[:40].copy()
    holes[5:9, 0] = np.nan
    holes[0, 1] = np.nan
    later = np.delete(np.arange(100), slice(60, 75))  # a gap
    data = sgpd.Trajectories.from_arrays([times[:40], times[later]], [holes, states[later]])
    model = sgpd.fit(data, "separable", inference=sgpd.Laplace(noise_std=(0.3, 0.35)))
    np.testing.assert_allclose(model.noise_std, [0.3, 0.35], rtol=1e-15)
    assert model.joint.starts.shape == (3, 2)  # the gap cuts the second run in two
    exact = SYSTEM.simulate(SYSTEM.x0, times)
    for run, rows in ((0, np.arange(40)), (1, later)):
        smoothed = model.smooth(run=run, paths=16)
        np.testing.assert_allclose(smoothed.times, times[rows])
        assert distance(smoothed.best, exact[rows]) < 0.3
        assert model.predict(duration=1.0, paths=2, run=run).times[0] == times[rows[-1]]
    with pytest.raises(ValueError, match="there is no run 2: there are 2, from 0 to 1"):
        model.smooth(run=2)


def test_more_are_drawn_where_the_first_draws_are_worth_too_few_to_store(known, monkeypatch):
    """As if one draw in eight weighed something: 64 of the first 512, and 128 are to be stored."""
    sizes = []

    def one_in_eight(extra):
        sizes.append(len(extra))
        return np.where(np.arange(len(extra)) % 8 == 0, 8 / len(extra), 0.0)

    monkeypatch.setattr(laplace, "weights_of", one_in_eight)
    model = sgpd.fit(known[0], "separable", x0="known", seed=1)
    assert sizes == [512, 2048]
    assert (model.facts.fit.draws, model.facts.fit.drawn) == ("weighed", 2048)
    np.testing.assert_allclose(model.facts.fit.importance_sample_size, 256)
    assert len(model.joint.stored) == model.facts.fit.stored_draws == 128


def test_where_no_draw_fits_the_fit_stands_without_features_and_says_that_its_bands_do_not(known, monkeypatch):
    asked = []
    monkeypatch.setattr(laplace, "weights_of", np.zeros_like)
    monkeypatch.setattr(
        laplace, "randomise_then_optimise", lambda *given: asked.append(given) or (None, np.zeros(16, bool))
    )
    with pytest.warns(sgpd.SgpdWarning, match="the bands mean nothing"):
        model = sgpd.fit(known[0], "separable", x0="known", seed=1)
    assert [given[-2].frequencies[0].shape[0] for given in asked] == [64, 0]
    assert (model.features, model.facts.fit.draws, model.joint.stored) == ((0, 0), "failed", None)
    assert [check.verdict for check in model.diagnosis if check.id == "draws"] == ["ATTENTION"]
    np.testing.assert_allclose(model.joint.mean, known[1].joint.mean)
    assert np.isfinite(model.predict(SYSTEM.x0, duration=0.5, paths=4).best).all()


def test_a_rollout_too_unstable_for_the_whole_recording_is_cut_in_two(known, truth, monkeypatch):
    """As if nothing but rounding were left of the evidence over all rows."""

    tune = stages.tune

    def tuned(tuning, hyper, best):
        found = tune(tuning, hyper, best)
        whole = len(best.at.starts) == 1 and int(tuning.recording.observed[:, 0].sum()) == 98
        return found._replace(values=(float("nan"),)) if whole else found

    monkeypatch.setattr(stages, "tune", tuned)
    run = known[0].runs[0]
    data = sgpd.Trajectories.from_arrays(run.times[:99], run.states[:99], names=SYSTEM.names)
    with pytest.warns(CheckWarning, match="cut in pieces of 50 rows .instead of 99."):
        model = sgpd.fit(data, "separable", x0="known", seed=1)
    (check,) = (check for check in model.diagnosis if check.id == "rollouts")
    assert (check.verdict, check.value, check.limit) == ("ATTENTION", 50.0, 99.0)
    assert any(check.sentence in note for note in model.notes)
    assert model.pieces.row.tolist() == [0, 49]
    assert "No rollout is longer than 50 rows: each such piece has a first state of its own." in model.notes
    recorded = distance(data.runs[0].states, truth[:99])
    assert distance(model.smooth().best, truth[:99]) < recorded / 2


@pytest.mark.parametrize(("newton", "verdict"), [(sgpd.integrators.Newton(), "PASS"), (NO_STEPS, "FAIL")])
def test_a_fit_says_whether_its_implicit_steps_converged(newton, verdict):
    """Without Newton steps beyond the first correction they did not; note, check and history tell."""
    system = sgpd.systems.get("non-separable")
    times, states = system.record(seed=0)
    data = sgpd.Trajectories.from_arrays(times[:40], states[:40], names=system.names)
    midpoint = dataclasses.replace(sgpd.integrators.get("implicit-midpoint"), newton=newton)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", sgpd.SgpdWarning)
        model = sgpd.fit(data, "hamiltonian", midpoint)
    check = {check.id: check for check in model.diagnosis}["fit_steps"]
    assert check.verdict == verdict
    assert (model.history[-1].steps_converged < 0.5) == (verdict == "FAIL")
    assert (model.history[-1].worst_residual > 1e-13) == (verdict == "FAIL")
    said = [text for text in (*model.notes, *map(str, (c.message for c in caught))) if "did not converge" in text]
    assert (len(said) >= 2) == (verdict == "FAIL")


class OwnEuler(sgpd.integrators.Integrator):
    """A method that somebody has written: the step, and how it answers to the state and to the field."""

    def advance(self, field, x, h):
        return x + h * field(x), sgpd.integrators.StepInfo.explicit()

    def respond(self, field, x, h):
        value, jacobian = linearise(field, x)
        identity, (after, info) = jnp.eye(len(x)), self.advance(field, x, h)
        del value
        return sgpd.integrators.Response(after, identity + h * jacobian, x[None], h * identity[None], info)


def test_a_method_of_ones_own_is_fitted_as_one_of_ours():
    own, ours = OwnEuler(sgpd.integrators.get("euler").tableau), "euler"
    times, states = SYSTEM.record(seed=SEED)
    data = sgpd.Trajectories.from_arrays(times[:40], states[:40], names=SYSTEM.names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Euler's steps are poor, and the fit says so
        models = [sgpd.fit(data, "free", method, inference=sgpd.Laplace(inducing=9)) for method in (own, ours)]
    np.testing.assert_allclose(models[0].facts.fit.log_evidence, models[1].facts.fit.log_evidence, rtol=1e-5)
    paths = [model.predict(duration=1.0, paths=4).best for model in models]
    np.testing.assert_allclose(paths[0], paths[1], atol=1e-3)


def test_a_recording_of_another_length_with_gaps_and_runs_compiles_nothing(known):
    """Nor does a forecast of another duration, or of fewer paths than were rolled out before."""
    compiled = []

    def listen(event, seconds, **about):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(about.get("fun_name"))

    times, states = known[0].runs[0].times, known[0].runs[0].states
    later = np.delete(np.arange(40, 93), slice(10, 30))  # a gap
    settings = sgpd.Laplace(stored=32)
    sgpd.fit(known[0], "separable", inference=settings).predict(duration=3.0, paths=20)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        data = sgpd.Trajectories.from_arrays([times[:37], times[later]], [states[:37], states[later]])
        model = sgpd.fit(data, "separable", inference=settings)
        model.predict(duration=80.0, paths=20)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    # Draws by randomise-then-optimise need one more, of rollouts with random features.
    assert set(compiled) <= ({"jit(tangent)"} if model.facts.fit.draws == "randomised" else set())
