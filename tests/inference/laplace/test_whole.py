"""A long recording: kernels are tuned on excerpts, the posterior is that of all rows."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy.optimize import least_squares

import sgpd
from sgpd.data import Trajectories, windows
from sgpd.inference import chunks
from sgpd.inference.laplace import engine, sampling
from sgpd.inference.laplace.linear_model import ShootingState
from sgpd.inference.laplace.recording import Recording
from sgpd.inference.laplace.sampling import extra_costs
from sgpd.inference.laplace.starts import found_starts
from sgpd.inference.posterior.field import sample_features
from sgpd.inference.posterior.joint import Drawn, Unknowns
from sgpd.inference.starts import observed_rows
from tests.inference.dense import problem, two_runs
from tests.inference.laplace.test_recording import plain_runs

SYSTEM, NOISE = sgpd.systems.get("pendulum"), 0.1


@pytest.fixture(scope="module")
def clean():
    return SYSTEM.simulate(SYSTEM.x0, 0.1 * np.arange(1401))


@pytest.fixture(scope="module")
def data(clean):
    noisy = clean[:1001] + NOISE * np.random.default_rng(0).normal(size=(1001, 2))
    return Trajectories.from_arrays(0.1 * np.arange(1001), noisy, names=SYSTEM.names)


@pytest.fixture
def small(monkeypatch):
    """As if 400 rows, in stretches of 100, were all that can be tuned on, and 150 rows of memory were all there is."""
    monkeypatch.setattr(engine, "TUNED_ON", 400)
    monkeypatch.setattr(sampling, "TUNED_ON", 400)
    monkeypatch.setattr(engine, "LONGEST", 100)
    monkeypatch.setattr("sgpd.models.fit.LONGEST", 100)
    monkeypatch.setattr("sgpd.inference.diagnosis.LONGEST", 100)
    monkeypatch.setattr(chunks, "CHUNK", 160)


@pytest.mark.usefixtures("small")
def test_all_rows_narrow_the_bands_as_rows_do_and_hold_the_truth(data, clean):
    """Two and a half times the rows: standard deviations are smaller, by about the root of that."""
    whole = sgpd.fit(data, "separable")
    part = sgpd.fit(data, "separable", inference=sgpd.Laplace(rows=400))
    assert whole.facts.recording.rows == 1001
    assert part.facts.recording.rows == 400
    assert len(whole.joint.starts) == 11
    assert any("400 of 1,001 rows" in remark for remark in whole.remarks)
    assert any("The fit used 400 of 1,001 rows" in remark for remark in part.remarks)
    np.testing.assert_allclose(whole.noise_std, NOISE, rtol=0.15)
    long = {name: model.predict(clean[0], duration=140.0).std.mean() for name, model in (("all", whole), ("few", part))}
    assert 1.2 < long["few"] / long["all"] < 2.0
    ahead, truth = whole.predict(duration=40.0), clean[1000:]
    low, high = ahead.interval(0.95)
    assert ((low <= truth) & (truth <= high)).mean() > 0.85
    assert np.sqrt(((ahead.best - truth) ** 2).mean()) < NOISE


def test_a_recording_whose_derivatives_are_not_kept_has_the_same_equations():
    model, at = problem("stormer-verlet", 25, rows=(70, 11))
    kept = model.linearise(at)
    forgetful = replace(model, keeps=False)
    found = forgetful.linearise(at)
    assert not found.along.tangents
    assert kept.along.tangents
    jax.tree.map(np.testing.assert_array_equal, found.equations, kept.equations)
    np.testing.assert_array_equal(found.along.rows, kept.along.rows)
    with pytest.raises(ValueError, match="did not keep them"):
        forgetful.evidence(at, found.along)


@pytest.mark.parametrize("rows", [(97, 11, 3, 60), (70, *(11,) * 40)])
def test_some_pieces_are_a_recording_of_their_own(rows):
    data, pieces = plain_runs(rows)
    pinned = np.arange(len(pieces)) % 3 == 0
    chosen = np.arange(len(pieces))[1::2]
    found = Recording.of(data, pieces, pinned).of_pieces(chosen)
    expected = Recording.of(data, pieces.take(chosen), pinned[chosen])
    for name in ("states", "observed", "steps", "real", "pinned", "center", "start_std"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(found.place, expected.place)


def test_starts_of_a_field_that_is_known_are_those_of_a_least_squares_fit():
    """Against SciPy's, piece by piece; the field is the first guess of a recording with other noise."""
    model, at = problem("implicit-midpoint")
    data, pieces = two_runs(seed=5)
    recording = Recording.of(data, pieces, np.zeros(2, bool))
    model = replace(model, recording=recording)
    found = found_starts(model, at.u, recording.in_line(pieces.states), [6, 17])
    for piece in range(2):
        rows = slice(recording.place[piece, 0], recording.place[piece, -1] + 1)
        seen = recording.observed[rows]

        def residuals(start, piece=piece, rows=rows, seen=seen):
            starts = found.starts.copy()
            starts[piece] = start
            error = (model.rows(found._replace(starts=starts))[0] - recording.states)[rows] / model.noise
            return np.append(error[seen], (start - recording.center) / recording.start_std)

        expected = least_squares(residuals, pieces.states[piece, 0], xtol=1e-12, ftol=1e-12, gtol=1e-12)
        np.testing.assert_allclose(found.starts[piece], expected.x, atol=1e-4)


def test_pieces_that_are_spread_evenly_stand_for_all_where_draws_of_a_long_recording_are_weighed(monkeypatch):
    """For pieces that are all the same, it is the very number."""
    run = plain_runs((12,))[0].runs[0]
    data = Trajectories.from_arrays([run.times] * 8, [run.states] * 8)
    pieces = windows(data, 12)
    model, _ = problem("stormer-verlet")
    recording = Recording.of(data, pieces, np.zeros(8, bool))
    model = replace(model, recording=recording)
    rollouts = recording.rollouts(12)
    at = ShootingState(np.zeros(model.size), recording.states[rollouts.first], rollouts)
    equations = model.linearise(at).equations
    rng = np.random.default_rng(0)
    u, away = 0.3 * rng.normal(size=(16, model.size)), 0.05 * rng.normal(size=(16, 1, 2))
    features = sample_features(rng, model.kernels.posterior, (4, 4), "quasi", 16)
    drawn = Drawn(Unknowns(u, at.starts[None] + away), features)
    whole = extra_costs(model, at, equations, drawn)
    assert np.abs(whole).max() > 1
    monkeypatch.setattr(sampling, "TUNED_ON", len(recording) // 4)
    np.testing.assert_allclose(extra_costs(model, at, equations, drawn), whole, rtol=1e-8)


def test_what_is_missing_is_filled_in_by_straight_lines():
    """Within a piece; where a channel was not observed at all, by its mean."""
    times = np.arange(6.0)
    states = np.stack([times**2, np.full(6, np.nan)], axis=1)
    states[[2, 3], 0] = np.nan
    pieces = windows(Trajectories.from_arrays([times, times], [states, np.ones((6, 2))]), 6)
    found = observed_rows(pieces, np.array([0.0, 7.0]))
    np.testing.assert_allclose(found[0, :, 0], [0, 1, 6, 11, 16, 25])
    np.testing.assert_array_equal(found[0, :, 1], 7.0)
    np.testing.assert_array_equal(found[1], 1.0)
