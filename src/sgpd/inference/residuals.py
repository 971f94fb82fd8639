"""What a fit leaves over of its recording: whether neighbouring residuals correlate, and over how many rows.

Rows whose residuals go together say the same thing again. A likelihood that takes them for independent makes bands
that are too narrow, so τ of them are counted as one: their autocorrelation time.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgpd.data import Windows
from sgpd.inference.constants import FEW, SIGNIFICANT, WINDOW

Pieces = list[np.ndarray]  # stretches of one channel, each without its missing values


class Neighbours(NamedTuple):
    """How neighbouring residuals correlate, by channel; NaN where there are too few pairs."""

    correlation: Float[np.ndarray, " d"]
    limit: Float[np.ndarray, " d"]  # what white residuals do not exceed

    @property
    def alike(self) -> np.ndarray:
        """Which channels' residuals are not white."""
        return self.correlation > self.limit


def neighbours(recording: Windows, rows: Float[np.ndarray, "r n d"]) -> Neighbours:
    """Of the recording less the rows of a rollout; values with missing ones between them are neighbours too."""
    found = [_neighbours(pieces) for pieces in _left_over(recording, rows)]
    return Neighbours(*map(np.array, zip(*found, strict=True)))


def _neighbours(pieces: Pieces) -> tuple[float, float]:
    correlation, pairs = autocorrelation(pieces, 1)
    if pairs.sum() < FEW or np.isnan(correlation).any():
        return np.nan, np.nan
    return float(correlation[0]), float(SIGNIFICANT / np.sqrt(pairs[0]))


def autocorrelation(pieces: Pieces, most: int) -> tuple[np.ndarray, np.ndarray]:
    """ρₖ of all pieces together at lags k = 1, 2, ..., `most`, and the number of pairs behind each; NaN where all is 0.

    Mean product over mean square: residuals that lie to one side correlate. A lag counts recorded values.
    """
    products, pairs = _lagged(pieces, most)
    square = np.mean(np.concatenate(pieces) ** 2) if sum(map(len, pieces)) else 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        return (products / pairs / square if square > 0 else np.full(len(pairs), np.nan)), pairs


def _lagged(pieces: Pieces, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At each lag as far as there are pairs: the sum of their products, and their number."""
    lags = np.arange(1, min(most, max(map(len, pieces), default=0) - 1) + 1)
    products, pairs = np.zeros(len(lags)), np.zeros(len(lags))
    for z in pieces:
        for k in lags[: len(z) - 1] if len(z) else ():
            products[k - 1] += z[k:] @ z[:-k]
        pairs += np.maximum(len(z) - lags, 0)
    return products, pairs


def autocorrelation_times(recording: Windows, rows: Float[np.ndarray, "r n d"]) -> Float[np.ndarray, " d"]:
    """τ = 1 + 2 Σ |ρₖ|: the autocorrelation time of each channel, in rows; 1 where residuals are white.

    A motion of frequency ω is seen through residuals whose spectrum there is 1 + 2 Σ ρₖ cos ωk times that of white
    ones: τ at most. From a few hundred rows the estimate is too large rather than too small.
    """
    chance = lambda pairs, n: np.sqrt(2 / np.pi * pairs) / n  # the mean of |ρ| where there is no correlation
    times = [autocorrelation_time(pieces, np.abs, chance) for pieces in _left_over(recording, rows)]
    return np.where(neighbours(recording, rows).alike, times, 1.0)


def _left_over(recording: Windows, rows: Float[np.ndarray, "r n d"]) -> list[Pieces]:
    """Residuals, channel by channel."""
    left, seen = recording.states - rows, recording.observed
    channels = zip(left.transpose(2, 0, 1), seen.transpose(2, 0, 1), strict=True)
    return [[z[there] for z, there in zip(*channel, strict=True)] for channel in channels]


def effective_sample_size(z: np.ndarray) -> float:
    """The effective sample size of these standardised errors (n, d), for the coverage of a band.

    n / τ with τ = 1 + 2 Σ ρₖ²: whether |z| is large correlates like ρ², whatever the sign of ρ. The channel with the
    fewest counts.
    """
    chance = lambda pairs, n: pairs / n**2  # the mean of ρ² where there is no correlation
    columns = [column[~np.isnan(column)] for column in z.T]
    return float(min(len(column) / autocorrelation_time([column], np.square, chance) for column in columns))


def autocorrelation_time(pieces: Pieces, size: Callable, chance: Callable) -> float:
    """τ = 1 + 2 Σ (size(ρₖ) - chance), with correlations of all pieces together.

    The sum goes on until `WINDOW` τ lags, so that it does not gather the errors of correlations that are 0 (Sokal's
    rule).
    """
    products, pairs = _lagged(pieces, max(map(len, pieces)))
    lags = np.arange(1, len(pairs) + 1)
    square = sum(z @ z for z in pieces)
    if len(lags) == 0 or square == 0:
        return 1.0
    tau = np.maximum(1 + 2 * np.cumsum(size(products / square) - chance(pairs, sum(map(len, pieces)))), 1.0)
    return float(tau[np.append(np.flatnonzero(lags >= WINDOW * tau), len(lags) - 1)[0]])
