"""The methods that can be asked for by name. Coefficients from Hairer, Nørsett, Wanner (Solving ODEs I and II) and
Hairer, Lubich, Wanner (Geometric Numerical Integration) unless said; orders are verified when a tableau is made."""

from collections.abc import Callable
from functools import cache
from math import sqrt

import numpy as np

from sgpd.errors import unknown_name
from sgpd.integrators.methods import Integrator, PartitionedRungeKutta, RungeKutta, SplitStep
from sgpd.integrators.tableau import PartitionedTableau, Splitting, Tableau

_Maker = Callable[[str], Integrator]


def _runge_kutta(order: int, a, b) -> _Maker:
    return lambda name: RungeKutta(Tableau(name, np.array(a), np.array(b), order))


def _gauss_4() -> _Maker:
    r = sqrt(3) / 6
    return _runge_kutta(4, [[1 / 4, 1 / 4 - r], [1 / 4 + r, 1 / 4]], [1 / 2, 1 / 2])


def _gauss_6() -> _Maker:
    r = sqrt(15)
    a = [
        [5 / 36, 2 / 9 - r / 15, 5 / 36 - r / 30],
        [5 / 36 + r / 24, 2 / 9, 5 / 36 - r / 24],
        [5 / 36 + r / 30, 2 / 9 + r / 15, 5 / 36],
    ]
    return _runge_kutta(6, a, [5 / 18, 4 / 9, 5 / 18])


def _radau_iia_5() -> _Maker:
    r = sqrt(6)
    a = [
        [(88 - 7 * r) / 360, (296 - 169 * r) / 1800, (-2 + 3 * r) / 225],
        [(296 + 169 * r) / 1800, (88 + 7 * r) / 360, (-2 - 3 * r) / 225],
        [(16 - r) / 36, (16 + r) / 36, 1 / 9],
    ]
    return _runge_kutta(5, a, a[-1])


def _dopri5() -> _Maker:
    a = [
        [0, 0, 0, 0, 0, 0],
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
    ]
    return _runge_kutta(5, a, [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84])


def _splitting(order: int, kicks, drifts) -> _Maker:
    return lambda name: SplitStep(Splitting(name, np.array(kicks), np.array(drifts), order))


def _yoshida(order: int, *outer: float) -> _Maker:
    """Störmer-Verlet steps of lengths outer, middle, reversed outer (Yoshida 1990)."""
    weights = [*outer, 1 - 2 * sum(outer), *reversed(outer)]
    verlet = Splitting("stormer-verlet", np.array([0.5, 0.5]), np.array([1, 0]), 2)
    return lambda name: SplitStep(verlet.compose(name, weights, order))


def _lobatto_pair(name: str) -> Integrator:
    """Momenta by Lobatto IIIB, positions by IIIA: with two stages it would be Störmer-Verlet, a kick first."""
    b = np.array([1 / 6, 2 / 3, 1 / 6])
    iiia = Tableau("lobatto-iiia-4", np.array([[0, 0, 0], [5 / 24, 1 / 3, -1 / 24], b]), b, 4)
    iiib = Tableau("lobatto-iiib-4", np.array([[1 / 6, -1 / 6, 0], [1 / 6, 1 / 3, 0], [1 / 6, 5 / 6, 0]]), b, 4)
    return PartitionedRungeKutta(PartitionedTableau(name, p=iiib, q=iiia, order=4))


_METHODS: dict[str, _Maker] = {
    # explicit, any field
    "euler": _runge_kutta(1, [[0]], [1]),
    "midpoint": _runge_kutta(2, [[0, 0], [1 / 2, 0]], [0, 1]),
    "heun": _runge_kutta(2, [[0, 0], [1, 0]], [1 / 2, 1 / 2]),
    "ralston": _runge_kutta(2, [[0, 0], [2 / 3, 0]], [1 / 4, 3 / 4]),
    "rk3": _runge_kutta(3, [[0, 0, 0], [1 / 2, 0, 0], [-1, 2, 0]], [1 / 6, 2 / 3, 1 / 6]),
    "rk4": _runge_kutta(
        4, [[0, 0, 0, 0], [1 / 2, 0, 0, 0], [0, 1 / 2, 0, 0], [0, 0, 1, 0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6]
    ),
    "dopri5": _dopri5(),
    # implicit, any field
    "implicit-euler": _runge_kutta(1, [[1]], [1]),
    "implicit-midpoint": _runge_kutta(2, [[1 / 2]], [1]),
    "trapezoidal": _runge_kutta(2, [[0, 0], [1 / 2, 1 / 2]], [1 / 2, 1 / 2]),
    "radau-ia-3": _runge_kutta(3, [[1 / 4, -1 / 4], [1 / 4, 5 / 12]], [1 / 4, 3 / 4]),
    "radau-iia-3": _runge_kutta(3, [[5 / 12, -1 / 12], [3 / 4, 1 / 4]], [3 / 4, 1 / 4]),
    "radau-iia-5": _radau_iia_5(),
    "gauss-4": _gauss_4(),
    "gauss-6": _gauss_6(),
    "lobatto-iiic-4": _runge_kutta(
        4, [[1 / 6, -1 / 3, 1 / 6], [1 / 6, 5 / 12, -1 / 12], [1 / 6, 2 / 3, 1 / 6]], [1 / 6, 2 / 3, 1 / 6]
    ),
    # implicit, partitioned, any field on states (p, q)
    "lobatto-iiia-iiib-4": _lobatto_pair,
    # explicit, split fields
    "symplectic-euler": _splitting(1, [1], [1]),
    "symplectic-euler-q": _splitting(1, [0, 1], [1, 0]),
    "stormer-verlet": _splitting(2, [1 / 2, 1 / 2], [1, 0]),
    "ruth-3": _splitting(3, [7 / 24, 3 / 4, -1 / 24], [2 / 3, -2 / 3, 1]),
    "yoshida-4": _yoshida(4, 1 / (2 - 2 ** (1 / 3))),
    # Yoshida's solution A, with more digits than he printed
    "yoshida-6": _yoshida(6, 0.78451361047755726382, 0.23557321335935813368, -1.17767998417887100695),
}


def names() -> list[str]:
    """The names of all methods."""
    return list(_METHODS)


@cache
def get(name: str) -> Integrator:
    """The method of that name; the same object every time, so that compiled programs are found again."""
    if name not in _METHODS:
        raise unknown_name("integrator", name, _METHODS)
    return _METHODS[name](name)
