"""Inducing points become more where a recording determines most of the values there; the field stays what it was."""

import dataclasses
import warnings

import numpy as np
import pytest

import sgpd
from sgpd.data.smoothing import smooth
from sgpd.errors import CheckWarning
from sgpd.gp import JITTER
from sgpd.inference.initial import initial_posterior
from sgpd.inference.laplace import growing, stages
from sgpd.inference.laplace.constants import FULL, MOST_POINTS
from sgpd.inference.options import FitOptions
from sgpd.inference.posterior.kernels import Kernels
from tests.inference.motions import double_pendulum, kepler

ROUND = np.linspace(0, 6, 40)


def recording_in_three_dimensions():
    """A spiral on a ball, noisy."""
    x = np.stack([np.cos(ROUND) * np.cos(ROUND / 9), np.sin(ROUND) * np.cos(ROUND / 9), np.sin(ROUND / 9)], axis=1)
    return sgpd.Trajectories.from_arrays(ROUND, x + 0.01 * np.random.default_rng(4).normal(size=x.shape))


@pytest.fixture(scope="module")
def separable():
    """V and T of three inputs each, with 10 points and a trend, and those with 20 and 10."""
    data = kepler(rows=60, seed=3)
    few = initial_posterior(sgpd.structures.Separable(), data, points=10).plain()
    return data, few, growing.with_points(few, data, (20, 10))


def squared_exponential(group, latent, a, b):
    length, variance = (np.asarray(each)[latent] for each in (group.kernel.lengthscale, group.kernel.variance))
    return variance * np.exp(-(((a[:, None] - b[None]) / length) ** 2).sum(axis=2) / 2)


def test_twice_as_many_points_begin_with_the_values_that_the_mean_had_there(separable):
    _, few, many = separable
    old, new = Kernels.of(few), Kernels.of(many)
    u = np.random.default_rng(0).normal(size=few.flat_mean.size)
    carried = growing.carried(old, new, u)
    assert len(carried) == len(u) + 10
    at = now = 0
    for before, after in zip(few.groups, many.groups, strict=True):
        inducing, wanted = (np.asarray(g.inducing)[0] for g in (before, after))
        nugget = JITTER * float(before.kernel.variance[0])
        prior = lambda x, b=before, n=nugget: squared_exponential(b, 0, x, x) + n * np.eye(len(x))
        values = np.linalg.cholesky(prior(inducing)) @ u[at : at + before.points]
        mean = squared_exponential(before, 0, wanted, inducing) @ np.linalg.solve(prior(inducing), values)
        found = np.linalg.cholesky(prior(wanted)) @ carried[now : now + after.points]
        np.testing.assert_allclose(found, mean, atol=1e-4 * np.abs(mean).max())
        at, now = at + before.points, now + after.points
        np.testing.assert_array_equal(carried[now : now + 9], u[at : at + 9])  # the trend: 3 slopes and 6 bends
        at, now = at + 9, now + 9
    assert (at, now) == (len(u), len(carried))


def test_points_are_placed_as_those_of_a_first_guess_and_kernels_stay(separable):
    data, few, many = separable
    again = initial_posterior(few.structure, data, points=20)
    states = smooth(data).states
    assert states.shape == (60, 6)
    np.testing.assert_allclose(_seen(many.groups[0]), _seen(again.groups[0]), atol=1e-9)
    assert many.groups[1] is few.groups[1]
    for one, other in zip(few.logarithms, many.logarithms, strict=True):
        np.testing.assert_array_equal(one, other)


def _seen(group):
    return np.asarray(group.inducing)


def test_a_value_is_determined_by_as_much_as_its_variance_has_shrunk(separable):
    _, few, _ = separable
    p = few.flat_mean.size
    rng = np.random.default_rng(1)
    x = rng.normal(size=(25, p))
    covariance = np.eye(p) - x.T @ np.linalg.solve(np.eye(25) + x @ x.T, x)  # of u, given 25 rows of X
    shares = growing.determined(few, np.eye(p) + x.T @ x)
    np.testing.assert_allclose(shares, [1 - np.diag(covariance)[:10].mean(), 1 - np.diag(covariance)[19:29].mean()])


def test_groups_that_ask_get_twice_as_many_and_too_many_are_refused_with_a_reason(separable, monkeypatch):
    data, few, _ = separable
    options = FitOptions(sgpd.integrators.get("stormer-verlet"), sgpd.Laplace(), "latent")
    tuning = stages.Problem.of(data, few, options, 500).tuning
    assert growing.doubled(tuning, [True, False]) == ((20, 10), "")
    assert growing.doubled(tuning, [True, True]) == ((20, 20), "")
    many = dataclasses.replace(tuning, original=growing.with_points(few, data, (MOST_POINTS // 2 + 1, 10)))
    assert growing.doubled(many, [True, False])[1] == "most"
    assert growing.doubled(many, [False, True])[1] == ""
    monkeypatch.setattr(growing, "MOST_WORK", 48**2 * 360)  # V and T with 20 and 10 points, and two trends of 9
    assert growing.doubled(tuning, [True, False])[1] == ""
    assert growing.doubled(tuning, [True, True])[1] == "work"


def test_points_are_the_fits_to_choose_where_nobody_else_has(separable):
    data, few, _ = separable
    asked = FitOptions(sgpd.integrators.get("stormer-verlet"), sgpd.Laplace(), "latent")
    own = [dataclasses.replace(asked, settings=sgpd.Laplace(inducing=24)), dataclasses.replace(asked, own_points=True)]
    assert [stages.Problem.of(data, few, options, 500).grows for options in (asked, *own)] == [True, False, False]


def test_a_fit_with_too_few_points_grows_and_says_so(monkeypatch):
    monkeypatch.setattr(growing, "FULL", 0.02)
    monkeypatch.setattr(growing, "MOST_POINTS", 48)
    grown = sgpd.fit(recording_in_three_dimensions(), "free")
    facts = grown.facts.fit
    assert (facts.inducing_first, facts.inducing, facts.growth) == ((24,), (48,), "most")
    assert [group.points for group in grown.posterior.groups] == [48]
    (said,) = (note for note in grown.notes if note.startswith("Inducing points: "))
    assert "48 (at first 24; the recording determines" in said
    assert grown.joint.mean.size == 3 * 48


def test_points_that_make_the_evidence_lower_are_not_taken(monkeypatch):
    asked, tune = [], stages.tune

    def worse(tuning, hyper, best):
        found = tune(tuning, hyper, best)
        points = tuning.original.groups[0].points
        return found._replace(values=(*found.values[:-1], found.values[-1] - 100.0)) if points > 24 else found

    monkeypatch.setattr(stages, "tune", worse)
    monkeypatch.setattr(stages, "asking", lambda *given: asked.append(given) or [True])
    model = sgpd.fit(recording_in_three_dimensions(), "free")
    assert (model.facts.fit.inducing, model.facts.fit.growth) == ((24,), "worse")
    assert len(asked) == 2  # after the first stage, and after the last
    assert any("twice as many had a lower evidence" in note for note in model.notes)


@pytest.mark.slow
def test_a_double_pendulum_gets_as_many_points_as_its_recording_asks_for():
    """With the 32 points of four inputs, a third of the band that should hold 95 % held the truth."""
    model = sgpd.fit(double_pendulum(seed=1), "hamiltonian")
    facts = model.facts.fit
    assert facts.inducing == (128,)
    assert facts.determined[0] < FULL
    assert [check.verdict for check in model.diagnosis if check.id == "inducing"] == ["PASS"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckWarning)  # of too few points, and of draws that do not vary between them
        given = sgpd.fit(double_pendulum(seed=1), "hamiltonian", inference=sgpd.Laplace(inducing=32))
    assert given.facts.fit.determined[0] > 0.8
    assert facts.log_evidence > given.facts.fit.log_evidence + 40
    (check,) = (check for check in given.diagnosis if check.id == "inducing")
    assert (check.verdict, "determines more than half" in check.sentence) == ("ATTENTION", True)
