"""A leap too far is taken in shorter ones, what is lost is cut, every fit ends, and all of that is told."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import sgpd
from sgpd.errors import NumericalFailure
from sgpd.inference.initial import initial_posterior
from sgpd.inference.laplace import stages
from sgpd.inference.laplace.constants import LEAPS
from sgpd.inference.laplace.descent import Descent
from sgpd.inference.options import FitOptions
from tests.inference.motions import kepler

SYSTEM = sgpd.systems.get("pendulum")


def pendulum(rows=100):
    times, states = SYSTEM.record(seed=101)
    return sgpd.Trajectories.from_arrays(times[:rows], states[:rows], names=SYSTEM.names)


def descents(monkeypatch, farthest):
    """As if no leap by more than a factor came through, nor any rollout beyond the farthest; the lengths that are
    tried."""
    tried = []

    def descended(self, tuning, length, until):
        tried.append(length)
        lost = length > 1.5 * self.length or length > farthest
        along = SimpleNamespace(rows=np.full((1, 1), float(length)))
        found = SimpleNamespace(cost=1e6 if lost else 100.0 + length, along=along)
        return Descent(SimpleNamespace(u=np.full(1, float(length))), found, not lost)

    monkeypatch.setattr(stages.Stage, "descended", descended)
    return tried


@pytest.fixture(scope="module")
def problem():
    """Three runs."""
    times, states = pendulum().runs[0].times, pendulum().runs[0].states
    data = sgpd.Trajectories.from_arrays([times, times[:50], times[:90]], [states, states[:50], states[:90]])
    options = FitOptions(sgpd.integrators.get("stormer-verlet"), sgpd.Laplace(), "latent")
    return stages.Problem.of(data, initial_posterior(sgpd.structures.Separable(), data).plain(), options, 500)


def after_forty_rows(problem):
    return problem.begin()._replace(length=40, cost=np.asarray(100.0))


def test_a_leap_too_far_is_taken_by_way_of_shorter_ones(problem, monkeypatch):
    tried = descents(monkeypatch, farthest=1000)
    there, best = stages._leapt(problem.tuning, after_forty_rows(problem), 80)
    assert tried == [80, 60, 80]
    assert (there.length, float(there.u[0]), float(there.cost), best.ended) == (80, 80.0, 180.0, True)


def test_where_shorter_leaps_do_not_help_either_the_stage_stands_as_far_as_it_came(problem, monkeypatch):
    tried = descents(monkeypatch, farthest=57)
    there, best = stages._leapt(problem.tuning, after_forty_rows(problem), 80)
    assert best is None
    assert there.length == max(length for length in tried if length <= 57)
    assert len(tried) <= LEAPS
    assert float(there.rows[0, 0]) == there.length


def test_pieces_are_cut_in_equal_parts_and_rows_stay_where_they_are(problem):
    line = problem.tuning.recording.in_line(problem.pieces.states)
    for reached, length in ((90, 50), (50, 50), (40, 34), (100, 50)):
        cut, moved = problem.cut(problem.begin()._replace(rows=line, length=reached))
        assert (cut.length, cut.pieces.lengths.sum()) == (length, 240)
        np.testing.assert_array_equal(moved.rows, cut.tuning.recording.in_line(cut.pieces.states))
    with pytest.raises(NumericalFailure, match="so unstable that no field was found"):
        problem.cut(problem.begin()._replace(rows=line, length=15))


def test_a_fit_of_which_nothing_is_left_ends_with_a_sentence_and_a_remedy(monkeypatch):
    tune, calls = stages.tune, []

    def nothing(tuning, hyper, best):
        calls.append(len(best.at.starts))
        found = tune(tuning, hyper, best)
        return found._replace(values=(float("nan"),)) if len(calls) > 1 else found

    monkeypatch.setattr(stages, "tune", nothing)
    with pytest.raises(NumericalFailure, match=r"so unstable that no field was found .* Record more often"):
        sgpd.fit(pendulum(), "separable")
    assert calls == [5, 1, 2, 4]  # every 20 rows; all, halves and quarters of the recording


@pytest.mark.slow
@pytest.mark.parametrize("points", [24, None])
def test_a_planet_in_space_is_fitted_to_the_end(points):
    """With 24 points only, V is so poorly known across the plane of the orbit that rollouts of all rows run away."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = sgpd.fit(kepler(seed=1), "separable", inference=sgpd.Laplace(inducing=points))
    cut = [check for check in model.diagnosis if check.id == "rollouts"]
    assert bool(cut) == any("the recording was cut" in str(each.message) for each in caught) == (points == 24)
    if points is None:
        assert model.facts.fit.inducing[0] > model.facts.fit.inducing_first[0] == 24
        ahead = model.predict(duration=5.0)
        assert ahead.ok.all()
        assert np.asarray(ahead.std).max() < 0.1
