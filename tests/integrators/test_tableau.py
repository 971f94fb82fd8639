"""What can be verified from coefficients alone: order, consistency, symplecticity, composition."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import RK45

from sgpd.integrators import PartitionedTableau, get, names
from sgpd.integrators import Splitting as _Splitting
from sgpd.integrators import Tableau as _Tableau

YOSHIDA = [1 / (2 - 2 ** (1 / 3)), -(2 ** (1 / 3)) / (2 - 2 ** (1 / 3)), 1 / (2 - 2 ** (1 / 3))]
SYMPLECTIC = {
    *("implicit-midpoint", "gauss-4", "gauss-6", "lobatto-iiia-iiib-4"),
    *("symplectic-euler", "symplectic-euler-q", "stormer-verlet", "ruth-3", "yoshida-4", "yoshida-6"),
}


def Tableau(name, a, b, order):
    return _Tableau(name, np.array(a), np.array(b), order)


def Splitting(name, kicks, drifts, order):
    return _Splitting(name, np.array(kicks), np.array(drifts), order)


@pytest.mark.parametrize("name", [name for name in names() if get(name).order < 6])
def test_the_stated_order_of_a_method_is_its_highest_and_the_next_is_refused_with_a_sentence(name):
    method = get(name)
    with pytest.raises(ValueError) as refusal:
        replace(method.tableau, order=method.order + 1)
    assert f"{name}: states order {method.order + 1}" in str(refusal.value)
    assert f"correct the coefficients or state order {method.order}" in str(refusal.value)


@pytest.mark.parametrize("name", ["gauss-6", "yoshida-6"])
def test_a_method_of_order_six_keeps_it_no_longer_when_a_coefficient_is_off_by_a_millionth(name):
    tableau = get(name).tableau
    field = "drifts" if name == "yoshida-6" else "b"
    off = getattr(tableau, field).copy()
    off[:2] += [1e-6, -1e-6]
    with pytest.raises(ValueError, match="states order 6, but its coefficients"):
        replace(tableau, **{field: off})


def test_orders_below_one_are_refused():
    with pytest.raises(ValueError, match="states order 0"):
        Tableau("nothing", [[0]], [1], 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tableau("mine", [[0, 0], [1, 0]], [0.5, 0.4], 1),
        lambda: Splitting("mine", [0.5, 0.4], [1, 0], 1),
        lambda: Splitting("mine", [1.0], [0.9], 1),
        lambda: Splitting("mine", [np.nan], [1.0], 1),
    ],
)
def test_weights_that_do_not_sum_to_one_are_refused(make):
    with pytest.raises(ValueError, match=r"mine: weights must sum to 1 \(consistency\), got"):
        make()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Tableau("mine", [[0, 0]], [1], 1), r"mine: `a` must be square .* got \(1, 2\) and \(1,\)"),
        (lambda: Tableau("mine", [[0]], [0.5, 0.5], 1), r"mine: `a` must be square"),
        (lambda: Tableau("mine", [[np.nan]], [1], 1), "mine: all coefficients must be finite"),
        (lambda: Splitting("mine", [0.5, 0.5], [1], 1), "mine: needs as many kicks as drifts"),
        (
            lambda: PartitionedTableau("mine", get("euler").tableau, get("heun").tableau, 1),
            "mine: both methods need as many stages, got 1 and 2",
        ),
    ],
)
def test_coefficients_of_the_wrong_shape_are_refused_with_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_two_methods_of_order_two_can_make_a_pair_of_order_one_only():
    midpoint, heun = get("midpoint").tableau, get("heun").tableau
    with pytest.raises(ValueError, match="only up to order 1"):
        PartitionedTableau("mixed", midpoint, heun, 2)
    assert not PartitionedTableau("mixed", midpoint, heun, 1).symplectic


def test_euler_and_implicit_euler_make_a_symplectic_pair_though_neither_is_symplectic():
    explicit, implicit = get("euler").tableau, get("implicit-euler").tableau
    assert PartitionedTableau("symplectic euler", implicit, explicit, 1).symplectic


def test_exactly_the_methods_known_to_be_symplectic_say_so():
    assert {name for name in names() if get(name).symplectic} == SYMPLECTIC


def test_gauss_methods_have_the_nodes_and_weights_of_gauss_legendre_quadrature():
    for name, stages in [("implicit-midpoint", 1), ("gauss-4", 2), ("gauss-6", 3)]:
        tableau = get(name).tableau
        nodes, weights = np.polynomial.legendre.leggauss(stages)
        np.testing.assert_allclose(tableau.c, (1 + nodes) / 2, atol=1e-15)
        np.testing.assert_allclose(tableau.b, weights / 2, atol=1e-15)


def test_dopri5_has_the_coefficients_of_scipy():
    tableau = get("dopri5").tableau
    np.testing.assert_allclose(tableau.a[:, :5], RK45.A, atol=1e-15)
    np.testing.assert_allclose(tableau.b, RK45.B, atol=1e-15)


def test_three_midpoint_steps_of_yoshidas_lengths_make_a_symplectic_method_of_order_four_and_no_more():
    midpoint = get("implicit-midpoint").tableau
    triple = midpoint.compose("triple jump", YOSHIDA, 4)
    assert (triple.stages, triple.implicit, triple.symplectic) == (3, True, True)
    with pytest.raises(ValueError, match="only up to order 4"):
        midpoint.compose("triple jump", YOSHIDA, 5)


def test_composing_a_method_that_is_not_symplectic_makes_none_that_is():
    assert not get("trapezoidal").tableau.compose("triple jump", YOSHIDA, 4).symplectic


def test_a_splitting_is_not_changed_by_what_happens_to_the_array_it_was_made_from():
    kicks = np.array([0.5, 0.5])
    verlet = Splitting("verlet", kicks, np.array([1.0, 0.0]), 2)
    kicks[:] = 7
    assert verlet.kicks.tolist() == [0.5, 0.5]
