"""The maximum within a box is that of other methods; what cannot be evaluated is avoided; what was learned helps."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from sgpd.inference.laplace.maximise import Memory, Point, best_step, curved, maximise


def parabola(seed, size, condition=1e3):
    """Slope, curvature and bounds, some of which will hold the maximum."""
    rng = np.random.default_rng(seed)
    axes, _ = np.linalg.qr(rng.normal(size=(size, size)))
    curvature = axes * np.geomspace(1 / condition, 1.0, size) @ axes.T
    slope = curvature @ rng.normal(size=size) * 2
    low, high = -rng.uniform(size=size), rng.uniform(size=size)
    low[0] = 0.0  # where a search begins on a bound
    return slope, curvature, low, high


def brute_force(slope, curvature, low, high):
    """The best feasible point over all choices of which coordinates are held, and where."""
    best, most = np.zeros_like(slope), 0.0
    for held in product((-1, 0, 1), repeat=len(slope)):
        held = np.array(held)
        s, free = np.where(held < 0, low, high), held == 0
        left = slope - curvature[:, ~free] @ s[~free]
        s[free] = np.linalg.solve(curvature[np.ix_(free, free)], left[free])
        value = slope @ s - s @ curvature @ s / 2
        if (low <= s).all() and (s <= high).all() and value > most:
            best, most = s, value
    return best, most


@pytest.mark.parametrize("seed", range(20))
def test_the_best_step_is_that_of_all_choices_of_bounds(seed):
    given = parabola(seed, 5)
    step, gain = best_step(*given)
    expected, most = brute_force(*given)
    np.testing.assert_allclose(step, expected, atol=1e-9)
    np.testing.assert_allclose(gain, most, rtol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_the_best_step_in_thirty_dimensions_meets_the_conditions_of_a_maximum(seed):
    slope, curvature, low, high = parabola(seed, 30, condition=1e6)
    step, _ = best_step(slope, curvature, low, high)
    uphill = slope - curvature @ step
    assert (low <= step).all()
    assert (step <= high).all()
    assert ((step > low) | (uphill < 1e-9)).all()
    assert ((step < high) | (uphill > -1e-9)).all()
    np.testing.assert_allclose(uphill[(low < step) & (step < high)], 0, atol=1e-9)


class Counted:
    """A function that counts how often it was asked, and where."""

    def __init__(self, function):
        self.function, self.asked = function, []

    def __call__(self, x):
        self.asked.append(x)
        return self.function(x)


def quadratic(curvature, peak):
    """Value and gradient of a parabola."""
    return lambda x: (-(x - peak) @ curvature @ (x - peak) / 2, -curvature @ (x - peak))


def rosenbrock(x):
    """Minus Rosenbrock's function of two numbers; the valley to its peak at (1, 1) is curved."""
    a, b = 1 - x[0], x[1] - x[0] ** 2
    return -(a**2) - 100 * b**2, np.array([2 * a + 400 * x[0] * b, -200 * b])


def search(function, x, radius, enough=1e-10, curvature=None, most=10_000):
    """From a point, with a curvature of 1 or one that is known already."""
    x = np.asarray(x, float)
    curvature = np.eye(len(x)) if curvature is None else curvature
    radii = np.broadcast_to(radius, x.shape)
    return maximise(function, Point.of(function, x), radii, Memory(curvature, float(radii.max())), enough, most)


@pytest.mark.parametrize("seed", range(5))
def test_a_parabolas_maximum_in_a_box_is_that_of_another_method(seed):
    slope, curvature, *_ = parabola(seed, 12)
    function = quadratic(curvature, np.linalg.solve(curvature, slope))
    found = search(function, np.zeros(12), 0.5)
    minus = lambda x: tuple(-each for each in function(x))
    exact = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 10_000, "maxfun": 100_000}
    other = minimize(minus, np.zeros(12), jac=True, method="L-BFGS-B", bounds=[(-0.5, 0.5)] * 12, options=exact)
    assert (np.abs(other.x) == 0.5).any()
    np.testing.assert_allclose(found.point.value, -other.fun, atol=1e-9)
    np.testing.assert_allclose(found.point.x, other.x, atol=1e-3)  # flat by the smallest curvature, a thousandth


def test_a_curved_valley_is_followed_to_its_end_and_to_the_wall_of_a_box():
    found = search(rosenbrock, [-1.2, 1.0], 5.0)
    np.testing.assert_allclose(found.point.x, [1, 1], atol=1e-4)
    assert found.left <= 1e-10
    walled = search(rosenbrock, [-1.2, 1.0], 0.9)  # x <= -0.3, and there y = x² is best
    np.testing.assert_allclose(walled.point.x, [-0.3, 0.1], atol=1e-5)  # y >= 0.1


@pytest.mark.parametrize("bad", [(np.nan, np.zeros(2)), (np.inf, np.zeros(2)), (0.0, np.full(2, np.nan))])
def test_where_the_function_is_not_finite_steps_become_shorter(bad):
    barred = lambda x: bad if x[0] > 0.4 else quadratic(np.eye(2), np.array([0.3, 0.2]))(x)
    found = search(barred, [-3.0, 0.0], 10.0, curvature=0.1 * np.eye(2))
    np.testing.assert_allclose(found.point.x, [0.3, 0.2], atol=1e-4)


def test_a_start_that_is_not_finite_or_alone_is_handed_back():
    nowhere = Counted(lambda x: (np.nan, np.zeros(2)))
    assert np.isnan(search(nowhere, [0.0, 0.0], 1.0).point.value)
    assert len(nowhere.asked) == 1
    alone = Counted(lambda x: (0.0, np.ones(2)) if (x == 0).all() else (np.nan, np.zeros(2)))
    np.testing.assert_array_equal(search(alone, [0.0, 0.0], 1.0).point.x, 0)
    assert len(alone.asked) < 20


def test_frozen_coordinates_stay_exactly_and_none_leaves_the_box():
    function = Counted(rosenbrock)
    found = search(function, [-1.2, 0.7], [0.9, 0.0])
    slope = np.roots([-400, 0, 278, 2])  # of rosenbrock by x where y = 0.7: 2 (1 - x) + 400 x (0.7 - x²)
    np.testing.assert_allclose(found.point.x[0], slope.min(), atol=1e-5)
    asked = np.array(function.asked)
    np.testing.assert_array_equal(asked[:, 1], 0.7)
    assert (np.abs(asked[:, 0] + 1.2) <= 0.9 + 1e-12).all()


def test_curvature_that_was_learned_saves_evaluations_of_a_function_that_has_changed_a_little():
    _, curvature, *_ = parabola(0, 12)
    before = quadratic(100 * curvature, np.full(12, 0.2))
    learned = search(before, np.zeros(12), 1.0, enough=1e-3).memory.curvature
    after = quadratic(101 * curvature, np.full(12, 0.25))
    asked = {}
    for name, known in (("nothing", None), ("curvature", learned)):
        counted = Counted(after)
        found = search(counted, np.full(12, 0.2), 1.0, enough=1e-3, curvature=known)
        assert found.point.value > -0.01
        asked[name] = len(counted.asked)
    assert asked["curvature"] < asked["nothing"] / 2


def test_no_more_evaluations_are_made_than_allowed_unless_none_was_better():
    few = Counted(rosenbrock)
    found = search(few, [-1.2, 1.0], 1.0, most=6)
    assert len(few.asked) == 1 + 6
    assert found.point.value > rosenbrock(np.array([-1.2, 1.0]))[0]
    assert found.left > 1e-3  # and it says so
    steep = Counted(quadratic(1e6 * np.eye(2), np.array([1e-3, 0.0])))
    assert search(steep, [0.0, 0.0], 1.0, most=1).point.value > -0.5
    assert len(steep.asked) > 2


@pytest.mark.parametrize("fallen", [[0.5, 2.0], [-3.0, 1.0]])
def test_a_curvature_that_learns_stays_positive_definite_and_agrees_with_what_was_seen(fallen):
    step = np.array([1.0, 0.5])
    new = curved(np.diag([2.0, 3.0]), step, np.array(fallen))
    assert np.linalg.eigvalsh(new).min() > 0
    np.testing.assert_array_equal(new, new.T)
    before = step @ np.diag([2.0, 3.0]) @ step
    seen = step @ fallen
    np.testing.assert_allclose(step @ new @ step, max(seen, before / 5))
    if seen > before / 5:
        np.testing.assert_allclose(new @ step, fallen)


def test_gradients_that_are_nothing_but_rounding_leave_the_curvature_as_it_was():
    step, curvature = np.array([0.1, -0.2]), np.diag([2.0, 3.0])
    for fallen in (1e18 * np.array([1.0, -1e-3]), np.array([np.inf, 0.0]), np.array([1e200, -1e200])):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(curved(curvature, step, fallen), curvature)
    assert not np.array_equal(curved(curvature, step, np.array([0.5, -1.0])), curvature)


def test_a_step_that_promises_nothing_within_reach_ends_the_search():
    asked = []
    start = Point(np.zeros(1), 1e30, np.array([1e-300]))
    memory = Memory(np.eye(1) * 1e-300, 1e-3)
    evaluate = lambda x: asked.append(x) or (0.0, np.zeros(1))
    found = maximise(evaluate, start, np.array([1.0]), memory, -1.0, 8)
    assert found.point is start
    assert len(asked) <= 1 + 8
