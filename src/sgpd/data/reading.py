"""From a table to runs: which column is the time, which are the state, which one tells the runs apart."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sgpd.data.refusals import require_observed, require_run, require_unique
from sgpd.data.tables import Table, read_table

TIME_NAMES = ("t", "time")
RUN_NAME = "run"


@dataclass(frozen=True, eq=False)
class Recording:
    """What a file says: for each run its times (n,) and states (n, d), and the names of runs and channels."""

    times: list[np.ndarray]
    states: list[np.ndarray]
    names: tuple[str, ...]
    run_names: tuple[str, ...]


@dataclass(frozen=True)
class Roles:
    """Which column plays which part."""

    time: str
    state: tuple[str, ...]
    run: str | None


def read_recording(
    path: str | Path, time: str | None = None, state: str | Sequence[str] | None = None, run: str | None = None
) -> Recording:
    """Read a file and take it apart into runs. What is wrong with it is refused in terms of its lines."""
    table = read_table(path)
    roles = _roles(table, time, state, run)
    times = table.numbers(roles.time)
    if len(times) == 0:
        raise ValueError(f"{table.file}: there are columns but no rows; check that the recording was saved.")
    for name in roles.state:
        _require_rows(table, name, roles.time)
    states = np.stack([table.numbers(name) for name in roles.state], axis=1)

    groups = _rows_of_runs(table, roles)
    for name, rows in groups.items():
        label = table.file if roles.run is None else f"{table.file}, run {name!r}"
        require_run(times[rows], states[rows], roles.state, label, lambda row, rows=rows: table.place(rows[row]))
    require_observed([states], roles.state, table.file)
    return Recording(
        [times[rows] for rows in groups.values()],
        [states[rows] for rows in groups.values()],
        roles.state,
        tuple(groups) if roles.run is not None else (),
    )


def _roles(table: Table, time: str | None, state: str | Sequence[str] | None, run: str | None) -> Roles:
    if time is None:
        time = next((name for name in TIME_NAMES if name in table.columns), next(iter(table.columns), "t"))
    if run is None and RUN_NAME in table.columns and time != RUN_NAME:
        run = RUN_NAME
    if state is None:
        names = [name for name, column in table.columns.items() if column.numeric and name not in (time, run)]
    else:
        names = [state] if isinstance(state, str) else list(state)
        names = [part for name in names for part in _members(table, name)]
    if not names:
        raise ValueError(
            f"{table.file}: there is no column of numbers besides the time {time!r}; name the columns of the state "
            f"with `state=`, separate cells by commas (the columns are: {', '.join(table.columns)})."
        )
    used = [time, *names] if run is None else [time, run, *names]
    require_unique(used, table.file, "give the time, the run and each channel a column of their own")
    return Roles(time, tuple(names), run)


def _members(table: Table, name: str) -> list[str]:
    """A column's own name, or the names of the columns that it stands for."""
    return [name] if name in table.columns else table.groups.get(name, [name])


def _require_rows(table: Table, name: str, time: str):
    rows, expected = len(table.column(name).cells), len(table.column(time).cells)
    if rows != expected:
        raise ValueError(
            f"{table.file}: {name!r} has {rows} rows, but the time {time!r} has {expected}; "
            "choose columns of equal length with `time=` and `state=`."
        )


def _rows_of_runs(table: Table, roles: Roles) -> dict[str, np.ndarray]:
    """The rows of each run, runs by first appearance, rows in file order."""
    if roles.run is None:
        return {"": np.arange(len(table.column(roles.time).cells))}
    _require_rows(table, roles.run, roles.time)
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(table.labels(roles.run)):
        rows.setdefault(label, []).append(row)
    return {label: np.array(found) for label, found in rows.items()}
