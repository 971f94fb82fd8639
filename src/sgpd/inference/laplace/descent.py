"""The best field and starts under given kernels and noise: Levenberg-Marquardt on the linear models of its iterates."""

from typing import NamedTuple

import numpy as np

from sgpd.inference.laplace.constants import DAMPING, ENOUGH, ITERATIONS, STIFF
from sgpd.inference.laplace.linear_model import Linearised, LinearModel, ShootingState


class Until(NamedTuple):
    """When a descent has ended: when its last step has lowered the cost by less than a share of it, or by less."""

    share: float = ENOUGH
    less: float = 0.0
    iterations: int = ITERATIONS

    def met(self, before: float, after: float) -> bool:
        """Whether that step was the last."""
        return before - after < max(self.share * before, self.less)


class Descent(NamedTuple):
    """Where a descent has ended."""

    at: ShootingState
    found: Linearised
    ended: bool  # by itself, not by the number of its iterations


def descend(model: LinearModel, at: ShootingState, until: Until = Until(), damping: float = DAMPING) -> Descent:
    """A step that lowers the cost is taken and trusted more, another is shortened."""
    with np.errstate(over="ignore", invalid="ignore"):  # of rollouts that run away; then the cost is refused
        return _descended(model, at, until, damping)


def _descended(model: LinearModel, at: ShootingState, until: Until, damping: float) -> Descent:
    here = model.linearise(at)
    for _ in range(until.iterations):
        try:
            new = model.improved(at, here.equations, damping)
            there = model.linearise(new)
        except np.linalg.LinAlgError:
            there = None
        if there is None or not there.cost < here.cost:  # also where it is not a number
            damping *= 10
            if damping > STIFF:
                return Descent(at, here, False)
            continue
        met = until.met(here.cost, there.cost)
        here, at, damping = there, new, damping / 5
        if met:
            return Descent(at, here, True)
    return Descent(at, here, False)
