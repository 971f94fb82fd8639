"""A recording as one line: all pieces one after the other.

An entry is a step of the integrator; one that ends at a row of the recording carries what was observed there. Programs
go through the line chunk by chunk (`inference/rolling.py`).
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from sgpd.data import Trajectories, Windows
from sgpd.inference.chunks import Rollouts
from sgpd.inference.constants import START_STD


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

    def rollouts(self, rows: int) -> Rollouts:
        """That begin anew every so many rows of a piece."""
        begins = self.real & (np.arange(self.real.shape[1]) % rows == 0)
        pinned = np.zeros(begins.shape, bool)
        pinned[:, 0] = self.pinned
        return Rollouts(self.place[begins], ~pinned[begins])

    def of_pieces(self, chosen: Int[np.ndarray, " c"]) -> "Recording":
        """Some of the pieces."""
        first, last = self.place[chosen, 0], self.place[chosen, -1]
        lengths = last - first + 1
        shift = np.cumsum(lengths) - lengths - first
        entries = np.repeat(-shift, lengths) + np.arange(lengths.sum())
        states, observed, steps = (each[entries] for each in (self.states, self.observed, self.steps))
        place, center = (
            self.place[chosen] + shift[:, None],
            self.center if self.center.ndim == 1 else self.center[chosen],
        )
        real, pinned = self.real[chosen], self.pinned[chosen]
        return Recording(states, observed, steps, place, real, pinned, center, self.start_std)

    def randomised(self, noise: np.ndarray, for_states: np.ndarray, for_starts: np.ndarray) -> "Recording":
        """With so many standard deviations of noise added to the states, and of their prior to the starts of pieces."""
        center = np.broadcast_to(self.center, for_starts.shape) + self.start_std * for_starts
        return replace(self, states=self.states + noise * for_states, center=center)


def _in_line(values: np.ndarray, at: np.ndarray, real: np.ndarray, length: int) -> np.ndarray:
    line = np.zeros((length, *values.shape[2:]), values.dtype)
    line[at] = values[real]
    return line
