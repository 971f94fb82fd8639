"""Intervals from draws."""

import numpy as np

HALVINGS = 60  # of the bracket around a quantile: to rounding


def interval_of(draws: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) between which a further draw would lie with probability `level`, given n draws along the first axis.

    So these are quantiles at (n + 1) times a probability, wider than those that hold a share of the n draws; from too
    few draws they are the lowest and the highest.
    """
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0, method="weibull")
    return low, high


def observed_interval(draws: np.ndarray, noise: float | np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The same for a recorded value: a draw at random plus noise, i.e. quantiles of a mixture of Gaussians."""
    from scipy.special import ndtr  # slow to import

    ends = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        low, high = draws.min(axis=0) - 10 * noise, draws.max(axis=0) + 10 * noise
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = ndtr((middle - draws) / noise).mean(axis=0) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        ends.append((low + high) / 2)
    return ends[0], ends[1]
