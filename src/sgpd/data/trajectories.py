"""Recordings: one or several runs of one system, at any times, with values missing where they are missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from sgpd.data.describing import amount, card, count
from sgpd.data.refusals import Where, as_floats, require_observed, require_run, require_shapes, require_unique
from sgpd.errors import BadInput, unknown_name
from sgpd.renamed import renamed_attribute

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class Run:
    """One recording without interruption by a restart. The arrays are read-only copies."""

    times: Float[np.ndarray, " n"]
    states: Float[np.ndarray, "n d"]  # NaN where a value is missing

    def __post_init__(self):
        times, states = as_floats(self.times, "The times"), as_floats(self.states, "The states")
        require_shapes(times, states, "A run")
        for name, array in (("times", times), ("states", states)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def observed(self) -> Bool[np.ndarray, "n d"]:
        """Which values are there."""
        return ~np.isnan(self.states)


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Runs of one system, all with the same channels.

    Times increase strictly within a run; they need not be evenly spaced, nor the same in two runs. A value that is
    missing is NaN. What breaks these rules is refused when the object is made, with the run and the row (counted
    from 0, like the runs).
    """

    runs: tuple[Run, ...]
    names: tuple[str, ...]  # of the channels
    units: tuple[str, ...]  # of the channels, "" where unknown
    run_names: tuple[str, ...] = ()  # "0", "1", ... where none are given
    time_name: str = "t"
    time_unit: str = ""  # "" where unknown

    def __post_init__(self):
        if not self.run_names:
            object.__setattr__(self, "run_names", tuple(str(index) for index in range(len(self.runs))))
        _require_names(self)
        for name, run in zip(self.run_names, self.runs, strict=True):
            if run.states.shape[1] != self.dimension:
                raise BadInput(
                    f"run {name}: there are {run.states.shape[1]} channels, but {self.dimension} names "
                    f"({', '.join(self.names)})",
                    "give every run the same channels and each channel one name",
                )
            place = lambda row, name=name: Where(f"run {name}, row {row}")
            require_run(run.times, run.states, self.names, Where(f"run {name}"), place)
        require_observed([run.states for run in self.runs], self.names, Where("the recording"))

    @classmethod
    def from_arrays(
        cls,
        times: Any,
        states: Any,
        names: Sequence[str] | None = None,
        units: Sequence[str] | Mapping[str, str] | None = None,
    ) -> "Trajectories":
        """Take arrays: times (n,) and states (n, d) of one run, or a sequence of each with one entry for each run.

        A value is missing where a state is NaN or, in a `numpy.ma` array, masked. The channels are called x1 ... xd
        unless `names` says otherwise; `units` has one for each channel, or maps names to units.
        """
        if not _several(times):
            times, states = [times], [states]
        if len(times) != len(states):
            raise BadInput(
                f"There are times of {len(times)} runs, but states of {len(states)}", "give both for each run"
            )
        runs = tuple(_run(index, t, x) for index, (t, x) in enumerate(zip(times, states, strict=True)))
        names = tuple(names) if names is not None else tuple(f"x{k + 1}" for k in range(runs[0].states.shape[1]))
        return cls(runs, names, _units(names, units))

    @classmethod
    def read(
        cls,
        path: str | Path | Sequence[str | Path],
        time: str | None = None,
        state: str | Sequence[str] | None = None,
        run: str | None = None,
        units: Sequence[str] | Mapping[str, str] | None = None,
        *,
        momentum: str | Sequence[str] | None = None,
        position: str | Sequence[str] | None = None,
        columns: str | Sequence[str] | None = None,
        decimal: str = ".",
        roles: Literal["any", "pq"] = "any",
    ) -> "Trajectories":
        """Read a recording from a file, or from several of which each holds one run or more.

        CSV, TSV and text separated by blanks, Parquet, Feather, and NPZ files of arrays of equal length are read. An
        empty cell, NA or nan is a missing value. `sgpd.data.read_recording` also says what was guessed and left out.

        **Arguments:**

        - `time`: the column of times; by default the one called t or time, else the first that increases.
        - `state`: the columns of the state, in the order that the state shall have; by default all others that hold
            numbers, in file order. In an NPZ file, x of shape (n, d) is the columns x1 ... xd, and `x` stands for all.
        - `run`: the column that names the run of each row; by default the one called run (or trial, trajectory,
            episode), if there is one. Rows of a run need not be adjacent; they keep their order.
        - `units`: one for each channel, or a mapping from names to units, in which the time may be, too.
        - `momentum`, `position`: instead of `state`: the state is the momenta, then the positions, as Hamiltonian and
            separable structures need it.
        - `columns`: names for the columns of a text file, instead of those in its header.
        - `decimal`: "," in files with decimal commas.
        - `roles`: "pq" guesses which columns are momenta and which positions, and tests the guess by its sign.
        """
        from sgpd.data.reading.options import ReadingOptions
        from sgpd.data.reading.recording import read_recording

        options = ReadingOptions(columns, time, momentum, position, state, run, units, decimal, roles)
        return read_recording(path, options).data

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def dimension(self) -> int:
        """The number of channels."""
        return len(self.names)

    @property
    def rows(self) -> int:
        """The number of rows of all runs together."""
        return sum(len(run) for run in self.runs)

    @property
    def step(self) -> float:
        """The usual time between two rows: the median over all runs."""
        return float(np.median(np.concatenate([np.diff(run.times) for run in self.runs])))

    @property
    def duration(self) -> float:
        """The time from the first to the last row of the longest run."""
        return float(max(run.times[-1] - run.times[0] for run in self.runs))

    @property
    def missing(self) -> int:
        """The number of values that are missing."""
        return int(sum(np.isnan(run.states).sum() for run in self.runs))

    @property
    def complete(self) -> bool:
        """Whether no value is missing."""
        return self.missing == 0

    @property
    def center(self) -> Float[np.ndarray, " d"]:
        """The mean of each channel over what was observed."""
        return np.nanmean(np.concatenate([run.states for run in self.runs]), axis=0)

    @property
    def std(self) -> Float[np.ndarray, " d"]:
        """The standard deviation of each channel over what was observed."""
        return np.nanstd(np.concatenate([run.states for run in self.runs]), axis=0)

    spread = renamed_attribute("Trajectories", "spread", "std")

    def to_dataframe(self) -> "pandas.DataFrame":
        """One row for each row of the recording: run, time, then the channels; it can be saved and read back."""
        import pandas as pd

        names = [name for name, run in zip(self.run_names, self.runs, strict=True) for _ in range(len(run))]
        times = np.concatenate([run.times for run in self.runs])
        states = np.concatenate([run.states for run in self.runs])
        return pd.DataFrame({"run": names, self.time_name: times} | dict(zip(self.names, states.T, strict=True)))

    def __repr__(self) -> str:
        parts = [
            count(len(self), "run"),
            count(self.rows, "row"),
            amount(self.duration, self.time_unit),
            f"step {self.step:.4g}",
            f"channels {' '.join(self.names)}",
        ]
        if not self.complete:
            parts.append(f"{count(self.missing, 'value')} missing")
        return f"Trajectories({', '.join(parts)})"

    def _repr_html_(self) -> str:
        return card(self)


def _require_names(data: Trajectories):
    if not data.runs:
        raise BadInput("There is no run in this recording", "give at least one")
    require_unique(data.names, Where("the recording"), "give every channel its own name")
    require_unique(data.run_names, Where("the recording"), "give every run its own name")
    for what, given, expected in (
        ("units", len(data.units), data.dimension),
        ("names of runs", len(data.run_names), len(data.runs)),
    ):
        if given != expected:
            raise BadInput(f"There are {given} {what} where {expected} are needed", "give one for each, or none")


def _several(times: Any) -> bool:
    """Whether these are the times of several runs: their entries are no numbers but arrays."""
    if isinstance(times, list | tuple):
        return any(np.ndim(entry) > 0 for entry in times)
    return np.ndim(times) > 1


def _run(index: int, times: Any, states: Any) -> Run:
    times, states = as_floats(times, f"run {index}: the times"), as_floats(states, f"run {index}: the states")
    require_shapes(times, states, f"run {index}")
    return Run(times, states)


def _units(names: Sequence[str], units: Sequence[str] | Mapping[str, str] | None) -> tuple[str, ...]:
    if units is None:
        return ("",) * len(names)
    if not isinstance(units, Mapping):
        return tuple(units)
    for name in units:
        if name not in names:
            raise unknown_name("channel", name, names)
    return tuple(units.get(name, "") for name in names)
