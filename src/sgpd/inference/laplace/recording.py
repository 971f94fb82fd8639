"""A recording as one line, cut into chunks of one size, so that the same compiled programs fit every recording.

All pieces stand one after the other in the line. An entry is a step of the integrator; one that ends at a row of the
recording carries what was observed there. Programs take a chunk after the other, each as far as it is filled, and hand
on what goes on from one to the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from sgpd.data import Trajectories, Windows
from sgpd.inference.constants import START_STD
from sgpd.inference.laplace.constants import CHUNK

Numbers = Array | np.ndarray


@dataclass(frozen=True, eq=False)
class Recording:
    """What a fit knows of a recording: n entries, of which r pieces of at most m rows are made."""

    states: Float[np.ndarray, "n d"]
    observed: Bool[np.ndarray, "n d"]
    steps: Float[np.ndarray, " n"]  # that lead to an entry; 0 where a piece begins
    place: Int[np.ndarray, "r m"]  # of a row in the line; a row of padding stands where the last of its piece does
    real: Bool[np.ndarray, "r m"]  # what is no padding
    pinned: Bool[np.ndarray, " r"]  # pieces whose first state is exact
    center: Float[np.ndarray, "*r d"]  # of the prior of starts
    start_std: Float[np.ndarray, " d"]

    @classmethod
    def of(cls, data: Trajectories, pieces: Windows, pinned: Bool[np.ndarray, " r"]) -> "Recording":
        """From windows so long that each is a whole piece. A pinned state is no longer an observation."""
        real = np.arange(pieces.states.shape[1]) < pieces.lengths[:, None]
        taken = (pieces.steps > 0) & real[:, 1:, None]
        entries = np.where(real, np.concatenate([real[:, :1], taken.sum(axis=2)], axis=1), 0)
        place = np.cumsum(entries.reshape(-1)).reshape(real.shape) - 1
        steps = np.zeros(int(entries.sum()))
        piece, row, index = np.nonzero(taken)
        count = taken.sum(axis=2)
        steps[place[piece, row + 1] - count[piece, row] + 1 + index] = pieces.steps[piece, row, index]
        std = np.where(data.std > 0, data.std, 1.0)
        line = lambda values: _in_line(values, place[real], real, len(steps))
        observed = line(pieces.with_exact_starts(pinned).observed)
        return cls(line(pieces.states), observed, steps, place, real, pinned, data.center, START_STD * std)

    def in_line(self, values: Float[np.ndarray, "r m *rest"]) -> Float[np.ndarray, "n *rest"]:
        """What is given row by row, entry by entry; 0 where there is no row."""
        return _in_line(values, self.place[self.real], self.real, len(self))

    def in_pieces(self, values: np.ndarray) -> np.ndarray:
        """What is given entry by entry, row by row."""
        return values[self.place]

    def __len__(self) -> int:
        return len(self.steps)

    def randomised(self, noise: np.ndarray, for_states: np.ndarray, for_starts: np.ndarray) -> "Recording":
        """With so many standard deviations of noise added to the states, and of their prior to the starts of pieces."""
        center = np.broadcast_to(self.center, for_starts.shape) + self.start_std * for_starts
        return replace(self, states=self.states + noise * for_states, center=center)


def _in_line(values: np.ndarray, at: np.ndarray, real: np.ndarray, length: int) -> np.ndarray:
    line = np.zeros((length, *values.shape[2:]), values.dtype)
    line[at] = values[real]
    return line


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Where rollouts begin, one after the other, and which of them begin at states that are not known."""

    first: Int[np.ndarray, " s"]
    free: Bool[np.ndarray, " s"]

    @classmethod
    def every(cls, rows: int, recording: Recording) -> "Rollouts":
        """Anew every so many rows of a piece."""
        begins = recording.real & (np.arange(recording.real.shape[1]) % rows == 0)
        pinned = np.zeros(begins.shape, bool)
        pinned[:, 0] = recording.pinned
        return cls(recording.place[begins], ~pinned[begins])

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
