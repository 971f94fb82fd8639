"""What no recording may contain. Each refusal is a ValueError that says where, what, and what to do about it."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

Row = int | np.integer
Place = Callable[[Row], str]  # where a row is, in words: "lab.csv, line 214" or "run 0, row 17"


def require_run(times: np.ndarray, states: np.ndarray, names: Sequence[str], label: str, place: Place):
    """Refuse a run of fewer than two rows, times that do not increase, and infinite values."""
    if len(times) < 2:
        raise ValueError(f"{label}: a run needs at least two rows, this one has {len(times)}; leave it out.")
    _require_times(times, place)
    for row, channel in np.argwhere(np.isinf(states))[:1]:
        raise ValueError(
            f"{place(row)}: {names[channel]!r} is {states[row, channel]}; "
            "correct it, or use NaN (in a file: an empty cell) if the value is missing."
        )


def _require_times(times: np.ndarray, place: Place):
    for row in np.flatnonzero(~np.isfinite(times))[:1]:
        raise ValueError(f"{place(row)}: the time is {times[row]}; give this row a finite time, or leave it out.")
    for row in np.flatnonzero(np.diff(times) <= 0)[:1]:
        raise ValueError(
            f"{place(row + 1)}: time {times[row + 1]} does not come after {times[row]}, the time before it in its run; "
            "sort the rows and drop repeated times or, if a new run starts here, tell the runs apart "
            "(`run=` when reading a file, a list of runs otherwise)."
        )


def require_shapes(times: np.ndarray, states: np.ndarray, label: str):
    """Refuse anything but times of shape (rows,) with states of shape (rows, channels)."""
    if times.ndim == 1 and states.ndim == 2 and len(times) == len(states) and states.shape[1] > 0:
        return
    raise ValueError(
        f"{label}: times of shape {times.shape} do not go with states of shape {states.shape}; "
        "give times (rows,) and states (rows, channels), for one channel states[:, None]."
    )


def require_observed(states: Sequence[np.ndarray], names: Sequence[str], label: str):
    """Refuse a channel without a single value in any run."""
    seen = np.any([np.isfinite(x).any(axis=0) for x in states], axis=0)
    for channel in np.flatnonzero(~seen)[:1]:
        raise ValueError(f"{label}: every value of {names[channel]!r} is missing; leave that channel out.")


def require_unique(names: Sequence[str], label: str, remedy: str):
    """Refuse a name that occurs twice."""
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(f"{label}: the name {name!r} occurs {count} times; {remedy}.")


def as_floats(values: object, label: str) -> np.ndarray:
    """A new array of floats, with NaN where a masked array is masked or a list has None."""
    try:
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if array.dtype.kind not in "biufO":  # not text, not dates, not complex numbers
            raise TypeError(f"their type is {array.dtype}")
        return np.array(np.ma.filled(array.astype(float), np.nan))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{label} cannot be taken as an array of numbers ({error}); give numbers, NaN for missing."
        ) from error
