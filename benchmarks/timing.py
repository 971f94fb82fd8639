"""Times measured side by side, for the benchmarks of this folder."""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

ENOUGH = 0.05  # seconds: what a clock tells of a shorter time is mostly chance
PAUSE = 0.3  # seconds before a job: threads that the one before has left spinning for more work come to rest


class Timing(NamedTuple):
    """Seconds of one call (or a ratio of such): the median of the repeats and their quartiles."""

    median: float
    low: float
    high: float
    taken: tuple[float, ...] = ()  # every repeat, in turn

    @classmethod
    def of(cls, taken) -> "Timing":
        """The median and quartiles of some repeats."""
        low, median, high = np.quantile(taken, [0.25, 0.5, 0.75])
        return cls(float(median), float(low), float(high), tuple(map(float, taken)))

    def __truediv__(self, other: "Timing") -> float:
        return self.median / other.median

    def over(self, other: "Timing") -> "Timing":
        """The ratios turn by turn: what slows a machine down for a while slows both halves of a turn."""
        return Timing.of(np.divide(self.taken, other.taken))

    def times(self, factor: float) -> "Timing":
        """As many calls in a row."""
        return Timing.of(factor * np.asarray(self.taken))


def side_by_side(jobs: Mapping[str, Callable[[], Any]], repeats: int = 7) -> dict[str, Timing]:
    """Times of several jobs, taken in turns (so that a noisy machine is noisy to all), every other one backwards."""
    seconds, order = {name: [] for name in jobs}, list(jobs)
    for _ in range(repeats):
        for name in order:
            seconds[name].append(clocked(jobs[name]))
        order.reverse()
    return {name: Timing.of(taken) for name, taken in seconds.items()}


def clocked(job: Callable[[], Any]) -> float:
    """Seconds of one call, until its arrays are there, after a rest and a call that does not count.

    Of a short job, the mean of as many calls as fit into `ENOUGH`.
    """
    time.sleep(PAUSE)
    jax.block_until_ready(job())
    begin, calls = time.perf_counter(), 0
    while time.perf_counter() - begin < ENOUGH:
        jax.block_until_ready(job())
        calls += 1
    return (time.perf_counter() - begin) / calls
