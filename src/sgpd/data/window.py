"""Runs cut into windows of equal length: what a compiled training step eats."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from sgpd.data.gaps import LONG
from sgpd.data.trajectories import Trajectories
from sgpd.errors import BadInput

# Times are rounded when they are written, so 1.5 steps may arrive as 1.5000000001.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Windows:
    """Stacked windows: w windows of n rows of d channels, with m integrator steps between two rows.

    A window with fewer than n rows is padded at its end: times repeat the last one, nothing is observed, steps are 0.
    """

    times: Float[np.ndarray, "w n"]
    states: Float[np.ndarray, "w n d"]  # 0 where nothing was observed
    observed: Bool[np.ndarray, "w n d"]
    steps: Float[np.ndarray, "w n-1 m"]  # lengths; they add up to the interval, zeros at the end fill up to m
    run: Int[np.ndarray, " w"]  # which run a window is from
    row: Int[np.ndarray, " w"]  # and at which row of it the window starts

    def __len__(self) -> int:
        return len(self.times)

    @property
    def steps_per_interval(self) -> int:
        """m: after so many steps a rollout is at the next row."""
        return self.steps.shape[2]

    @property
    def flat_steps(self) -> Float[np.ndarray, "w n_minus_1_times_m"]:
        """The step lengths of each window in one row, as a rollout takes them."""
        return self.steps.reshape(len(self), -1)

    @property
    def lengths(self) -> Int[np.ndarray, " w"]:
        """The number of rows of each window that are not padding."""
        return 1 + np.count_nonzero(self.steps[:, :, 0], axis=1)

    def with_exact_starts(self, pinned: Bool[np.ndarray, " w"]) -> "Windows":
        """The same, where the first states of some windows are exact, and so no observations."""
        observed = self.observed.copy()
        observed[pinned, 0] = False
        return dataclasses.replace(self, observed=observed)

    def take(self, indices: Any) -> "Windows":
        """The windows at these indices, in this order; the shapes n, d and m stay."""
        chosen = np.atleast_1d(np.asarray(indices))
        return Windows(**{field.name: getattr(self, field.name)[chosen] for field in dataclasses.fields(self)})


def windows(
    data: Trajectories,
    length: int,
    stride: int | None = None,
    step: float | int | None = None,
    max_gap: int = LONG,
    start_observed: bool = False,
) -> Windows:
    """Cut each run into windows of `length` rows.

    **Arguments:**

    - `length`: rows in a window, at least 2.
    - `stride`: None gives windows side by side: every row of every run is in exactly one, and those of a piece are
        equally long, padded if need be. A number k gives overlapping windows that start every k rows and are full;
        only a piece shorter than `length` gives one padded window, and a piece of one row gives none.
    - `step`: the step that an integrator should take, by default the usual interval `data.step`. An interval dt is
        stepped in round(dt / step) equal sub-steps, at least one; an interval of up to 1.5 steps is one step, so
        that jitter of the clock does not split it.
    - `max_gap`: an interval longer than this many steps (or usual intervals, where `step` is shorter than those) is a
        gap. It separates two pieces, and no window crosses it.
    - `start_observed`: windows must start at a row without missing values. Overlapping ones that do not are skipped;
        side by side they are refused.
    """
    step = data.step if step is None else float(step)
    _require_options(length, stride, step, max_gap)
    rows = _Rows.of(data)
    intervals = np.diff(rows.times)
    gaps = (np.diff(rows.run) > 0) | (_substeps(intervals, max(step, data.step)) > max_gap)
    starts, ends = np.flatnonzero(np.r_[True, gaps]), np.flatnonzero(np.r_[gaps, True]) + 1
    first = _side_by_side(starts, ends, length) if stride is None else _overlapping(starts, ends, length, stride)
    if start_observed:
        first = _with_complete_start(first, rows, data.run_names, skip=stride is not None)
    if first.size == 0:
        raise BadInput("No window is left", "give a smaller `stride`, a larger `max_gap`, or x0='latent'")
    end = np.minimum(first + length, ends[np.searchsorted(starts, first, side="right") - 1])
    if stride is None:
        end = np.minimum(end, np.append(first[1:], len(rows.times)))
    return _stack(rows, first, end, length, _substeps(intervals, step))


@dataclass(frozen=True, eq=False)
class _Rows:
    """All runs one below the other."""

    times: np.ndarray
    states: np.ndarray
    run: np.ndarray
    row: np.ndarray

    @classmethod
    def of(cls, data: Trajectories) -> "_Rows":
        return cls(
            np.concatenate([run.times for run in data.runs]),
            np.concatenate([run.states for run in data.runs]),
            np.concatenate([np.full(len(run), index) for index, run in enumerate(data.runs)]),
            np.concatenate([np.arange(len(run)) for run in data.runs]),
        )


def _require_options(length: int, stride: int | None, step: float, max_gap: int):
    if length < 2:
        raise BadInput(f"A window needs at least 2 rows, got length={length}", "give a larger `length`")
    if stride is not None and stride < 1:
        raise BadInput(f"Windows start at least 1 row apart, got stride={stride}", "give 1 or more, or None")
    if not 0 < step < np.inf:
        raise BadInput(f"The integrator's step must be positive and finite, got step={step}", "leave it out or mend it")
    if max_gap < 1:
        raise BadInput(f"With max_gap={max_gap} every interval would be a gap", "give 1 or more")


def _substeps(intervals: np.ndarray, step: float) -> np.ndarray:
    """round(interval / step) with halves down, at least 1."""
    return np.clip(np.ceil(intervals / step - 0.5 - ROUNDING), 1, 1e9).astype(int)


def _side_by_side(starts: np.ndarray, ends: np.ndarray, length: int) -> np.ndarray:
    """As few as can be, and all of a piece as long as one another, to within a row: a forecast starts in the last."""
    found = []
    for start, rows in zip(starts, ends - starts, strict=True):
        count = -(-rows // length)
        found.append(start + np.arange(count) * rows // count)
    return np.concatenate(found)


def _overlapping(starts: np.ndarray, ends: np.ndarray, length: int, stride: int) -> np.ndarray:
    pieces = [(start, end) for start, end in zip(starts, ends, strict=True) if end - start > 1]
    first = [np.arange(start, max(start, end - length) + 1, stride) for start, end in pieces]
    return np.concatenate(first) if first else np.zeros(0, int)


def _with_complete_start(first: np.ndarray, rows: _Rows, run_names: tuple[str, ...], skip: bool) -> np.ndarray:
    complete = ~np.isnan(rows.states[first]).any(axis=1)
    if complete.all() or skip:
        return first[complete]
    at = first[~complete][0]
    raise BadInput(
        f"run {run_names[rows.run[at]]}, row {rows.row[at]}: a window starts here, but a value is missing",
        "use x0='latent', or overlapping windows (`stride=`), where such a start is skipped",
    )


def _stack(rows: _Rows, first: np.ndarray, end: np.ndarray, length: int, counts: np.ndarray) -> Windows:
    index = first[:, None] + np.arange(length)
    real = index < end[:, None]
    index = np.minimum(index, end[:, None] - 1)  # padding repeats the last row
    times, states = rows.times[index], rows.states[index]
    observed = ~np.isnan(states) & real[:, :, None]

    count = np.where(real[:, 1:], counts[np.minimum(index[:, :-1], len(counts) - 1)], 0)
    lengths = np.diff(times, axis=1) / np.maximum(count, 1)
    steps = np.where(np.arange(max(count.max(), 1)) < count[:, :, None], lengths[:, :, None], 0.0)
    return Windows(times, np.where(observed, states, 0.0), observed, steps, rows.run[first], rows.row[first])
