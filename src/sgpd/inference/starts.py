"""Where rollouts start: which first states are exact, and where splines see the others."""

import numpy as np

from sgpd.data import Trajectories, Windows
from sgpd.data.smoothing import smooth_run
from sgpd.errors import BadInput


def pinned_starts(cut: Windows, x0: str) -> np.ndarray:
    """Which windows start at a state that is taken as exact."""
    pinned = np.full(len(cut), x0 == "observed") | ((cut.row == 0) & (x0 == "known"))
    if x0 == "known" and not cut.observed[pinned, 0].all():
        raise BadInput("x0='known' needs first rows without missing values", "complete them, or use x0='latent'")
    return pinned & cut.observed[:, 0].all(axis=1)


def observed_rows(pieces: Windows, center: np.ndarray) -> np.ndarray:
    """The recording as it is, piece by piece, with straight lines through what is missing: much faster than splines."""
    rows = pieces.states.copy()
    for index, channel in np.argwhere(~pieces.observed.all(axis=1)):
        seen = pieces.observed[index, :, channel]
        times, values = pieces.times[index], pieces.states[index, :, channel]
        rows[index, :, channel] = np.interp(times, times[seen], values[seen]) if seen.any() else center[channel]
    return rows


def smoothed_rows(data: Trajectories, pieces: Windows, pinned: np.ndarray) -> np.ndarray:
    """The recording as splines see it, piece by piece, with exact starts where they are known."""
    rows = np.empty(pieces.states.shape)
    for run in range(len(data.runs)):
        smoothed = smooth_run(data.runs[run]).states
        for index in np.flatnonzero(pieces.run == run):
            rows[index] = smoothed[np.minimum(pieces.row[index] + np.arange(pieces.states.shape[1]), len(smoothed) - 1)]
    rows[pinned, 0] = pieces.states[pinned, 0]
    return rows
