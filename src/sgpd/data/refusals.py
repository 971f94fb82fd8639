"""What no recording may contain. Each refusal says where, what, and what to do about it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from sgpd.errors import BadInput

Row = int | np.integer
RESERVED = ("run", "time", "path", "lead", "energy")  # columns of a forecast that are not the state's
LARGEST = 1e150  # a standard deviation beyond this overflows when it is squared


@dataclass(frozen=True)
class Where:
    """A place in a file or in a recording, in words and, where it is in a file, for programs."""

    text: str
    file: str | None = None
    line: int | None = None

    def refuse(self, message: str, hint: str, column: str | None = None) -> BadInput:
        """The refusal of what stands here."""
        return BadInput(f"{self.text}: {message}", hint, file=self.file, line=self.line, column=column)


Place = Callable[[Row], Where]  # where a row is


def in_file(file: str, line: int | None = None) -> Where:
    """A file, or a line of it."""
    return Where(file if line is None else f"{file}, line {line}", file, line)


def require_run(times: np.ndarray, states: np.ndarray, names: Sequence[str], label: Where, place: Place):
    """Refuse a run of fewer than two rows, times that do not increase, and values that are no use as numbers."""
    if len(times) < 2:
        raise label.refuse(f"a run needs at least two rows, this one has {len(times)}", "leave it out")
    _require_times(times, place)
    for row, channel in np.argwhere(np.isinf(states))[:1]:
        name = names[int(channel)]
        hint = "correct it, or use NaN (in a file: an empty cell) if the value is missing"
        raise place(row).refuse(f"{name!r} is {states[row, channel]}", hint, name)


def _require_times(times: np.ndarray, place: Place):
    for row in np.flatnonzero(~np.isfinite(times))[:1]:
        raise place(row).refuse(f"the time is {times[row]}", "give this row a finite time, or leave it out")
    with np.errstate(over="ignore"):
        differences = np.diff(times)
    for row in np.flatnonzero(differences <= 0)[:1]:
        raise place(row + 1).refuse(
            f"time {times[row + 1]} does not come after {times[row]}, the time before it in its run",
            "sort the rows and drop repeated times or, if a new run starts here, tell the runs apart "
            "(`--run` or `run=` when reading a file, a list of runs otherwise)",
        )
    if times[-1] / 2 - times[0] / 2 > LARGEST / 2:
        raise place(0).refuse(
            f"times from {times[0]:g} to {times[-1]:g} are too far apart to compute with",
            "give the time in a larger unit",
        )


def require_shapes(times: np.ndarray, states: np.ndarray, label: str):
    """Refuse anything but times of shape (rows,) with states of shape (rows, channels)."""
    if times.ndim == 1 and states.ndim == 2 and len(times) == len(states) and states.shape[1] > 0:
        return
    raise BadInput(
        f"{label}: times of shape {times.shape} do not go with states of shape {states.shape}",
        "give times (rows,) and states (rows, channels), for one channel states[:, None]",
    )


def require_observed(states: Sequence[np.ndarray], names: Sequence[str], label: Where):
    """Refuse a channel without a single value in any run, and one whose values lie too far apart."""
    for channel, name in enumerate(names):
        seen = [x[np.isfinite(x[:, channel]), channel] for x in states]
        if not any(x.size for x in seen):
            raise label.refuse(f"every value of {name!r} is missing", "leave that channel out", name)
        low, high = min(x.min() for x in seen if x.size), max(x.max() for x in seen if x.size)
        if high / 2 - low / 2 > LARGEST / 2:
            raise label.refuse(
                f"{name!r} goes from {low:g} to {high:g}, too far for its differences to be squared",
                "correct the outlier, or give it in a larger unit",
                name,
            )


def require_varying(states: Sequence[np.ndarray], names: Sequence[str], label: Where):
    """Refuse a channel that has the same value in every row: there is nothing to learn about it."""
    for channel, name in enumerate(names):
        seen = np.concatenate([x[~np.isnan(x[:, channel]), channel] for x in states])
        if (seen == seen[0]).all():
            raise label.refuse(
                f"every value of {name!r} is {seen[0]:g}",
                "leave that channel out: name the others with --state, or with --momentum and --position",
                name,
            )


def require_unique(names: Sequence[str], label: Where, remedy: str):
    """Refuse a name that occurs twice."""
    for name, count in Counter(names).items():
        if count > 1:
            raise label.refuse(f"the name {name!r} occurs {count} times", remedy, name)


def require_free_names(names: Sequence[str], label: Where):
    """Refuse names of the state that a forecast needs for its own columns."""
    for name in names:
        if name.lower() in RESERVED:
            raise label.refuse(
                f"a channel of the state is called {name!r}, as a column of every forecast",
                "rename it in the file, or leave it out: name the others with --state, or with --momentum and "
                "--position",
                name,
            )


def unknown_column(name: str, known: Iterable[str], label: Where) -> BadInput:
    """The refusal of a name that no column has, with the one that was probably meant."""
    choices = list(known)
    close = get_close_matches(name, choices, n=1)
    guess = f"did you mean {close[0]!r}? " if close else ""
    return label.refuse(f"there is no column {name!r}", f"{guess}the columns are: {', '.join(choices)}", name)


def as_floats(values: object, label: str) -> np.ndarray:
    """A new array of floats, with NaN where a masked array is masked or a list has None."""
    try:
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if array.dtype.kind not in "biufO":  # not text, not dates, not complex numbers
            raise TypeError(f"their type is {array.dtype}")
        return np.array(np.ma.filled(array.astype(float), np.nan))
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"{label} cannot be taken as an array of numbers ({error})", "give numbers, NaN for missing"
        ) from error
