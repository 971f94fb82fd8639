"""Where the rollouts of a fit start."""

from dataclasses import dataclass

import numpy as np

from sgpd.data import Windows


@dataclass(frozen=True, eq=False)
class Pieces:
    """Where the fit starts a rollout, and how it goes on from there: w pieces of recorded runs, padded to n rows."""

    run: np.ndarray  # (w,), which run of the recording a piece lies in
    row: np.ndarray  # (w,), at which row of its run a piece starts
    times: np.ndarray  # (w, n)
    steps: np.ndarray  # (w, n-1, m), 0 where there is none

    @classmethod
    def of(cls, cut: Windows, chosen: np.ndarray | None = None) -> "Pieces":
        """Those of a fit's windows, or some of them."""
        cut = cut if chosen is None else cut.take(chosen)
        return cls(cut.run, cut.row, cut.times, cut.steps)

    def of_run(self, run: int) -> np.ndarray:
        """The indices of the pieces of one run of the recording, first to last; none where no piece lies in it."""
        found = np.flatnonzero(self.run == run)
        return found[np.argsort(self.row[found])]

    def length(self, piece: int) -> int:
        """Rows that are not padding."""
        return 1 + int(np.count_nonzero(self.steps[piece, :, 0]))

    def lead(self, piece: int) -> np.ndarray:
        """The steps from a piece's start to its end."""
        steps = self.steps[piece].reshape(-1)
        return steps[steps > 0]
