"""The default fit of the paper's pendulum recording, with nothing else imported: a fresh process starts here."""

import warnings
from functools import cache

import numpy as np

import sgpd
from sgpd.paper.measuring import DRAWS, l2_error
from sgpd.paper.truths import record, solve


@cache
def pendulum_recording(seed: int) -> sgpd.Trajectories:
    """The paper's sampling and noise, around the exact solution."""
    system = sgpd.systems.get("pendulum")
    return record(system, solve(system, "exact")[1], seed)


def fit_pendulum(seed: int) -> sgpd.Model:
    """The default fit, told that the first state is exact, as in the paper."""
    return fit_recording(pendulum_recording(seed), seed)


def fit_recording(data: sgpd.Trajectories, seed: int) -> sgpd.Model:
    """The same, of a recording that is at hand."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sgpd.SgpdWarning)
        return sgpd.fit(data, "separable", x0="known", seed=seed)


def pendulum_error(model: sgpd.Model, seed: int) -> float:
    """The paper's metric: the L2 error of the mean of five rollouts over 40 s."""
    times, truth = solve(sgpd.systems.get("pendulum"), "exact")
    forecast = model.predict(truth[0], times=times, paths=64, seed=seed)
    paths = forecast.paths[:DRAWS][forecast.ok[:DRAWS]]
    return l2_error(paths.mean(axis=0), truth) or np.nan
