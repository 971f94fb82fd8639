"""What a model keeps, followed along a recording: friction in the recording shows as a trend of the energy.

The diagnosis of a fit judges the trend by its standard error, and the report draws the same.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import on_device
from sgpd.data import Run
from sgpd.data.smoothing import smooth_run
from sgpd.wording import share
from sgpd.xla.batches import in_rows

BLOCKS = 12  # of a run, over which a quantity is averaged


class Course(NamedTuple):
    """A quantity along a run, its averages over blocks of as many rows each, and their straight trend."""

    times: np.ndarray
    values: np.ndarray
    middle: np.ndarray  # mean time of each block
    mean: np.ndarray  # mean value of each block
    slope: float  # of the trend, from block to block
    error: float  # standard error of the slope; NaN where there are too few blocks

    @classmethod
    def of(cls, times: np.ndarray, values: np.ndarray) -> "Course":
        """Averages over twelfths, or over at least three rows; rows that are left over at the end do not count."""
        count = min(BLOCKS, max(len(times) // 3, 1))
        size = len(times) // count
        middle, mean = (each[: size * count].reshape(count, size).mean(axis=1) for each in (times, values))
        return cls(times, values, middle, mean, *slope_of(mean))

    @property
    def line(self) -> tuple[np.ndarray, np.ndarray]:
        """Times and values of the trend, from the first to the last row. It is straight where rows are even in time."""
        half = len(self.mean) / 2
        at = np.concatenate([[-half], np.arange(len(self.mean)) - half + 0.5, [half]])
        return np.concatenate([self.times[:1], self.middle, self.times[-1:]]), self.mean.mean() + self.slope * at

    @property
    def change(self) -> float:
        """By which share of its first value the trend falls or rises."""
        first, last = self.line[1][[0, -1]]
        return float((last - first) / (abs(first) + np.finfo(float).tiny))

    def sentence(self, quantity: str, lasting: str) -> str:
        """The same in words."""
        word = "falls" if self.change < 0 else "rises"
        return f"{quantity} {word} by {share(abs(self.change))} of its first value in {lasting}, by the straight trend."


def slope_of(values: np.ndarray) -> tuple[float, float]:
    """Slope of a straight line through equally spaced values, and its standard error."""
    if len(values) < 2:
        return 0.0, float("nan")
    t = np.arange(len(values)) - (len(values) - 1) / 2
    slope = t @ values / (t @ t)
    left = values - values.mean() - slope * t
    error = np.sqrt(left @ left / (len(values) - 2) / (t @ t)) if len(values) > 2 else float("nan")
    return float(slope), float(error)


def along_recording(quantity: Callable, run: Run) -> np.ndarray:
    """A function of the state along the recorded values, as splines see them that know nothing of the structure: the
    model's own smoothed states keep it by construction, whatever the recording does.
    """
    return in_rows(lambda states: _at_each(quantity, on_device(states)), smooth_run(run).states)


@eqx.filter_jit
def _at_each(quantity: Callable, states: Float[Array, "n d"]) -> Float[Array, " n"]:
    return jax.vmap(quantity)(states)
