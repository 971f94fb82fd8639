"""The sign test: whether positions follow their momenta.

Recordings mostly list the position first, a state here is (p, q), and a model that is fitted with the two swapped
does not fail: it learns -H. But dq/dt = dH/dp goes up with p wherever the kinetic energy is convex, and dp/dt = -dH/dq
goes down with q around a minimum of the energy, so that the correlation tells which is which.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sgpd.data.gaps import SHORT
from sgpd.data.trajectories import Run, Trajectories

WIDTHS = (1, 2, 4, 8, 16)  # rows to take a difference over: noise asks for more, fast motion for fewer
CLEAR = 3.0  # standard errors
WEAK = 0.1  # a correlation below this tells nothing, however many rows there are


@dataclass(frozen=True)
class Sign:
    """The correlation of d(position)/dt with a momentum, and its distance from 0 in standard errors."""

    momentum: str
    position: str
    correlation: float  # NaN where there are too few rows
    distance: float

    @property
    def clear(self) -> bool:
        """Whether the correlation is not 0 by chance."""
        return abs(self.distance) > CLEAR and abs(self.correlation) > WEAK

    @property
    def negative(self) -> bool:
        """Whether the two are probably swapped."""
        return self.clear and self.correlation < 0

    @property
    def positive(self) -> bool:
        """Whether the position clearly follows the momentum."""
        return self.clear and self.correlation > 0

    def __str__(self) -> str:
        rate, value = f"d{self.position}/dt", f"correlation {_shown(self.correlation)}"
        if self.momentum.startswith(f"d{self.position}"):  # not "dq/dt follows dq"
            rate = f"the slope of {self.position}"
        if np.isnan(self.correlation):
            return f"too few rows to test that {rate} follows {self.momentum}"
        if self.clear:
            return f"{rate} {'follows' if self.positive else 'runs against'} {self.momentum}, {value}"
        return f"{rate} against {self.momentum}: {value}, too weak to tell"


def sign_test(data: Trajectories, momenta: Sequence[str], positions: Sequence[str]) -> tuple[Sign, ...]:
    """For each pair the correlation of the position's slope with the mean momentum, within runs, across no gap.

    The slope over k rows is compared with the mean momentum over the same rows, so that noise is averaged alike in
    both; of several k, the one that tells most is taken.
    """
    return tuple(_sign(data, momentum, position) for momentum, position in zip(momenta, positions, strict=True))


def _sign(data: Trajectories, momentum: str, position: str) -> Sign:
    p, q = data.names.index(momentum), data.names.index(position)
    best = Sign(momentum, position, float("nan"), 0.0)
    for width in WIDTHS:
        pairs = [_slopes(run, p, q, width, SHORT * data.step) for run in data.runs if len(run) > width]
        slope, mean = np.concatenate([np.zeros((2, 0)), *pairs], axis=1)
        count = slope.size / width  # windows overlap: so many of them are independent
        if count < 4 or np.ptp(slope) == 0 or np.ptp(mean) == 0:
            continue
        # Scaled first: the squares of very large or very small numbers are no numbers.
        correlation = np.corrcoef(slope / np.abs(slope).max(), mean / np.abs(mean).max())[0, 1]
        distance = np.arctanh(np.clip(correlation, -1 + 1e-12, 1 - 1e-12)) * np.sqrt(count - 3)
        if np.isnan(best.correlation) or abs(distance) > abs(best.distance):
            best = Sign(momentum, position, float(correlation), float(distance))
    return best


def _slopes(run: Run, p: int, q: int, width: int, gap: float) -> np.ndarray:
    """Over each `width` rows: the slope of the position, and the mean of the momentum (2, n)."""
    intervals = np.diff(run.times)
    area = np.where(intervals <= gap, intervals, np.nan) * (run.states[1:, p] + run.states[:-1, p]) / 2
    duration = run.times[width:] - run.times[:-width]
    with np.errstate(over="ignore"):  # a slope beyond all numbers is passed over
        slope = (run.states[width:, q] - run.states[:-width, q]) / duration
        mean = np.lib.stride_tricks.sliding_window_view(area, width).sum(axis=1) / duration
    seen = np.isfinite(slope) & np.isfinite(mean)
    return np.stack([slope[seen], mean[seen]])


def _shown(correlation: float) -> str:
    """With its sign and three digits; not rounded to 1, which only an exact copy has."""
    return f"{np.sign(correlation) * min(abs(round(correlation, 3)), 0.999):+.3f}"
