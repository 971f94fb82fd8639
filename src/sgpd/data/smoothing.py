"""What a recording shows without a model: states and derivatives by splines, and how noisy each channel is."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from sgpd.data import Run, Trajectories
from sgpd.data.gaps import SHORT, longest_bridged

ROWS = 1000  # at most so many rows for the regression


class Smoothed(NamedTuple):
    """States and derivatives of all runs, one below the other, as splines see them."""

    states: np.ndarray  # (n, d)
    derivatives: np.ndarray


_smoothed_runs: WeakKeyDictionary[Run, Smoothed] = WeakKeyDictionary()


def smooth_run(run: Run) -> Smoothed:
    """A smoothing spline through each channel between two gaps, its stiffness by generalised cross-validation.

    A fit asks for it several times, so it is remembered as long as the run is.
    """
    if run not in _smoothed_runs:
        _smoothed_runs[run] = _smooth_stretches(run)
    return _smoothed_runs[run]


def _smooth_stretches(run: Run) -> Smoothed:
    intervals = np.diff(run.times)
    ends = np.flatnonzero(intervals > longest_bridged(float(np.median(intervals)))) + 1
    stretches = zip(np.split(run.times, ends), np.split(run.states, ends), strict=True)
    parts = [_smooth_stretch(Run(times, states)) for times, states in stretches]
    return Smoothed(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _smooth_stretch(run: Run) -> Smoothed:
    from scipy.interpolate import make_smoothing_spline  # slow to import

    states, derivatives = np.empty_like(run.states), np.empty_like(run.states)
    for k in range(run.states.shape[1]):
        seen = run.observed[:, k]
        t, x = run.times[seen], run.states[seen, k]
        if len(t) < 5:  # too few for a spline: straight lines
            states[:, k] = np.interp(run.times, t, x) if len(t) else 0.0
            derivatives[:, k] = np.gradient(states[:, k], run.times) if len(run) > 1 else 0.0
            continue
        interval = (t[-1] - t[0]) / (len(t) - 1)  # in this unit the search for the stiffness is well scaled
        spline = make_smoothing_spline((t - t[0]) / interval, x)
        at = (run.times - t[0]) / interval
        states[:, k], derivatives[:, k] = spline(at), spline.derivative()(at) / interval
    return Smoothed(states, derivatives)


def smooth(data: Trajectories) -> Smoothed:
    """All runs smoothed, thinned to at most `ROWS` rows."""
    parts = [smooth_run(run) for run in data.runs]
    stacked = Smoothed(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    keep = np.unique(np.linspace(0, len(stacked.states) - 1, ROWS).astype(int))
    return Smoothed(stacked.states[keep], stacked.derivatives[keep])


def noise_std(data: Trajectories) -> np.ndarray:
    """The noise of each channel: the third difference of white noise has variance 20 σ², that of motion is small."""
    floor = 1e-6 * np.where(data.std > 0, data.std, 1.0)
    thirds = [_third_differences(run, SHORT * data.step) for run in data.runs if len(run) > 3]
    differences = np.concatenate(thirds) if thirds else np.empty((0, data.dimension))
    enough = (~np.isnan(differences)).sum(axis=0) > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        rms = np.sqrt(np.nansum(differences**2, axis=0) / (~np.isnan(differences)).sum(axis=0) / 20)
    return np.maximum(np.where(enough, rms, 0.01 * data.std), floor)


def _third_differences(run: Run, gap: float) -> np.ndarray:
    """Without those across a gap, where the motion is no longer small."""
    longest = np.lib.stride_tricks.sliding_window_view(np.diff(run.times), 3).max(axis=1)
    return np.where(longest[:, None] <= gap, np.diff(run.states, n=3, axis=0), np.nan)
