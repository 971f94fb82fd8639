"""The maximum of a smooth function in a box, where evaluations are dear and the function comes back a little changed.

Around a point x the function is taken for a parabola, of the exact gradient g and a curvature H that is learned:

    m(s) = g·s - s·H s / 2        H: minus the second derivatives, always positive definite

The step s is the best of m in the box and no further than the reach, which grows where m told the gain well and shrinks
where it did not. The search ends by what m still promises in the whole box, not by small progress: poor steps are a
reason to go on. Curvature and reach are handed back, for a function that differs little from this one.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float

Vector: TypeAlias = Float[np.ndarray, " h"]
Matrix: TypeAlias = Float[np.ndarray, "h h"]
Evaluate: TypeAlias = Callable[[Vector], tuple[float, Vector]]  # value and gradient

WORST_CONDITION = 1e14  # of a curvature by which steps can be computed
SMALLEST_REACH = 1e-6  # what is nowhere finite or better so close by has no maximum that could be found


class Point(NamedTuple):
    """Where the function is known."""

    x: Vector
    value: float
    gradient: Vector

    @classmethod
    def of(cls, evaluate: Evaluate, x: Vector) -> "Point":
        """Evaluated there."""
        return cls(x, *evaluate(x))

    @property
    def finite(self) -> bool:
        """Whether it can be used."""
        return bool(np.isfinite(self.value) and np.isfinite(self.gradient).all())


class Memory(NamedTuple):
    """What a search has learned."""

    curvature: Matrix
    reach: float  # of one step, in every coordinate

    def after(self, here: Point, there: Point, promised: float) -> "Memory":
        """With what a trial has told, whether it was better or not."""
        step = there.x - here.x
        length = float(np.abs(step).max())
        if not there.finite:
            return self._replace(reach=length / 4)
        told, reach = (there.value - here.value) / promised, self.reach
        if told < 0.25:
            reach = length / 3
        elif told > 0.75 and length > 0.99 * reach:
            reach = 2 * reach
        return Memory(curved(self.curvature, step, here.gradient - there.gradient), reach)


class Maximum(NamedTuple):
    """The best point that was found."""

    point: Point  # the very start if nothing is better
    memory: Memory
    left: float  # what the parabola promises beyond, within the box


def maximise(evaluate: Evaluate, start: Point, radii: Vector, memory: Memory, enough: float, most: int) -> Maximum:
    """The best of |x - start| <= radii, to `enough`, or as far as `most` evaluations get that have found a better one.

    Coordinates of radius 0 stay as they are.
    """
    here, tried = start, 0
    reach = memory.reach if memory.reach > SMALLEST_REACH else np.inf  # the last function's cliffs are not this one's
    memory = memory._replace(reach=min(reach, float(radii.max())))
    if not start.finite:
        return Maximum(start, memory, 0.0)
    while True:
        low, high = start.x - radii - here.x, start.x + radii - here.x
        step, left = best_step(here.gradient, memory.curvature, low, high)
        spent = tried >= most and here is not start
        if left <= enough or spent or memory.reach < SMALLEST_REACH:
            return Maximum(here, memory, left)
        promised = left
        if np.abs(step).max() > memory.reach:
            low, high = np.maximum(low, -memory.reach), np.minimum(high, memory.reach)
            step, promised = best_step(here.gradient, memory.curvature, low, high)
        if not promised > 0:  # the curvature is so ill-conditioned that no step can be told from none
            return Maximum(here, memory, left)
        there, tried = Point.of(evaluate, here.x + step), tried + 1
        memory = memory.after(here, there, promised)
        if there.finite and there.value > here.value:
            here = there


def best_step(slope: Vector, curvature: Matrix, low: Vector, high: Vector) -> tuple[Vector, float]:
    """The maximum of m(s) = slope·s - s·H s / 2 for low <= s <= high, which hold 0, and m there.

    Newton's method for the coordinates that no bound holds, its steps projected to the box (Bertsekas 1982).
    """
    gain = lambda s: float(slope @ s - s @ curvature @ s / 2)
    s = np.zeros_like(slope)
    for _ in range(10 * len(s)):  # by far more than ever needed: each holds or frees bounds, and the last one is exact
        uphill = slope - curvature @ s
        free = ((s > low) | (uphill > 0)) & ((s < high) | (uphill < 0))
        move = np.zeros_like(s)
        move[free] = np.linalg.solve(curvature[np.ix_(free, free)], uphill[free])
        if uphill @ move <= 1e-9 * gain(s):  # twice what there is to gain
            break
        trials = (np.clip(s + share * move, low, high) for share in 0.5 ** np.arange(20))
        s = next((trial for trial in trials if gain(trial) > gain(s)), s)
    return s, gain(s)


def curved(curvature: Matrix, step: Vector, fallen: Vector) -> Matrix:
    """The curvature by which the gradient falls as it did over a step (BFGS); where it fell too little, not quite so.

    Powell's damping: along the step at least a fifth of the curvature stays, so that it is positive definite. What has
    changed beyond that by rounding alone, as where rollouts are so unstable that gradients mean nothing, is not taken.
    """
    expected = curvature @ step
    before, seen = step @ expected, step @ fallen
    if seen < before / 5:
        # y ← t y + (1 - t) H s,  t so that s·y = s·H s / 5
        share = 0.8 * before / (before - seen)
        fallen = share * fallen + (1 - share) * expected
    # H ← H - H s (H s)ᵀ / s·H s + y yᵀ / s·y
    learned = curvature - np.outer(expected, expected) / before + np.outer(fallen, fallen) / (step @ fallen)
    usable = np.isfinite(learned).all() and np.linalg.cond(learned) < WORST_CONDITION
    return learned if usable else curvature
