"""Steps in one line, cut into chunks of one size, so that programs of that size serve every number of them.

Where a rollout begins, the entry is its start. Programs take a chunk after the other, each as far as it is filled, and
hand on what goes on from one to the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from sgpd.arrays import Numbers
from sgpd.inference.constants import CHUNK


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Where rollouts begin, one after the other, and which of them begin at states that are not known."""

    first: Int[np.ndarray, " s"]
    free: Bool[np.ndarray, " s"]

    def segments(self, low: int, high: int) -> list[tuple[int, slice]]:
        """Which rollouts go through entries low to high, and through which of those."""
        one, end = (np.searchsorted(self.first, [low, high - 1], side="right") - 1).tolist()
        bounds = (np.clip([*self.first[one : end + 1], high], low, high) - low).tolist()
        return [(one + k, slice(*bounds[k : k + 2])) for k in range(end + 1 - one)]


class Chunk(NamedTuple):
    """Entries of the line that a program takes at once, with room for `CHUNK` of them."""

    starts: Float[Numbers, "*draws k d"]  # where rollouts begin
    begins: Bool[Numbers, " k"]
    free: Bool[Numbers, " k"]  # which of those starts are not known
    steps: Float[Numbers, " k"]
    used: Int[Numbers, ""]


def chunks(
    steps: Float[np.ndarray, " n"], rollouts: Rollouts, starts: Float[np.ndarray, "*draws s d"]
) -> Iterator[tuple[slice, Chunk]]:
    """All entries, chunk by chunk."""
    n, draws = len(steps), starts.shape[:-2]
    for low in range(0, n, CHUNK):
        high = min(low + CHUNK, n)
        some = slice(*np.searchsorted(rollouts.first, [low, high]))
        at = rollouts.first[some] - low
        line, begins, free = np.zeros((*draws, CHUNK, starts.shape[-1])), np.zeros(CHUNK, bool), np.zeros(CHUNK, bool)
        line[..., at, :], begins[at], free[at] = starts[..., some, :], True, rollouts.free[some]
        padded = np.zeros(CHUNK)
        padded[: high - low] = steps[low:high]
        yield slice(low, high), Chunk(line, begins, free, padded, np.asarray(high - low))
