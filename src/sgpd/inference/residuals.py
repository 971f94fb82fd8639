"""What a fit leaves over of its recording: whether neighbouring residuals are alike, and what a row is then worth.

Rows whose residuals go together say the same thing again. A likelihood that takes each for a look of its own makes
bands that are too narrow, so τ of them are counted as one.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgpd.inference.linear import Recording

SIGNIFICANT = 4.0  # standard errors of a correlation between neighbouring residuals
FEW = 10  # pairs of neighbours, below which their correlation says nothing
WINDOW = 5


class Neighbours(NamedTuple):
    """How neighbouring residuals correlate, by channel; NaN where there are too few pairs."""

    correlation: Float[np.ndarray, " d"]
    limit: Float[np.ndarray, " d"]  # what white residuals do not exceed

    @property
    def alike(self) -> np.ndarray:
        """Which channels' residuals are not white."""
        return self.correlation > self.limit


def neighbours(recording: Recording, rows: Float[np.ndarray, "r n d"]) -> Neighbours:
    """Of the recording less the rows of a rollout."""
    seen = np.asarray(recording.observed)
    left = np.where(seen, np.asarray(recording.states) - rows, 0.0)
    both = seen[:, 1:] & seen[:, :-1]
    counts, squares = both.sum(axis=(0, 1)), (left**2).sum(axis=(0, 1)) / np.maximum(seen.sum(axis=(0, 1)), 1)
    products = (left[:, 1:] * left[:, :-1] * both).sum(axis=(0, 1)) / np.maximum(counts, 1)
    told = (counts >= FEW) & (squares > 0)
    return Neighbours(
        np.where(told, products / np.where(told, squares, 1.0), np.nan),
        np.where(told, SIGNIFICANT / np.sqrt(np.maximum(counts, 1)), np.nan),
    )


def rows_a_look(recording: Recording, rows: Float[np.ndarray, "r n d"]) -> Float[np.ndarray, " d"]:
    """τ = 1 + 2 Σ |ρₖ|: how many rows of each channel are worth one look at the field; 1 where residuals are white.

    A motion of frequency ω is seen through residuals whose spectrum there is 1 + 2 Σ ρₖ cos ωk times that of white
    ones: τ at most. What is taken off is √(2/π (1 - k/n)/n), the mean of |ρ| where there is no correlation.
    """
    seen = np.asarray(recording.observed)
    left = np.asarray(recording.states) - rows
    chance = lambda k, n: np.sqrt(2 / np.pi * (1 - k / n) / n)
    looks = [
        sum(_looks(piece[there], np.abs, chance) for piece, there in zip(left[..., k], seen[..., k], strict=True))
        for k in range(rows.shape[-1])
    ]
    return np.where(neighbours(recording, rows).alike, seen.sum(axis=(0, 1)) / np.maximum(looks, 1.0), 1.0)


def independent_looks(z: np.ndarray) -> float:
    """How many independent values these standardised errors (n, d) are worth for the coverage of a band.

    n / τ with τ = 1 + 2 Σ ρₖ²: whether |z| is large correlates like ρ², whatever the sign of ρ. What is taken off is
    (1 - k/n)/n, the mean of ρ² where there is no correlation. The channel with the fewest counts.
    """
    chance = lambda k, n: (1 - k / n) / n
    return min(_looks(column[~np.isnan(column)], np.square, chance) for column in z.T)


def _looks(z: np.ndarray, size: Callable, chance: Callable) -> float:
    """n / τ with τ = 1 + 2 Σ (size(ρₖ) - chance(k, n)).

    The sum goes on until `WINDOW` τ lags, so that it does not gather the errors of correlations that are 0 (Sokal's
    rule).
    """
    n = len(z)
    if n < 2 or not z.any():
        return float(n)
    correlation = np.correlate(z, z, "full")[n:] / (z @ z)  # lags 1 ... n-1
    lags = np.arange(1, n)
    tau = np.maximum(1 + 2 * np.cumsum(size(correlation) - chance(lags, n)), 1.0)
    return float(n / tau[np.append(np.flatnonzero(lags >= WINDOW * tau), n - 2)[0]])
