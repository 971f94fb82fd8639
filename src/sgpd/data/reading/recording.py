"""The data door: files become a recording, and every guess on the way is said together with how to overrule it."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sgpd.data.describing import amount, count, data_sentence, wrapped_channels
from sgpd.data.reading.files import read_table
from sgpd.data.reading.options import ReadingOptions
from sgpd.data.reading.pairing import settle_pairs
from sgpd.data.reading.roles import Roles, find_roles
from sgpd.data.reading.tables import Table
from sgpd.data.refusals import (
    in_file,
    require_free_names,
    require_observed,
    require_run,
    require_unique,
    require_varying,
    unknown_column,
)
from sgpd.data.trajectories import Run, Trajectories
from sgpd.errors import BadInput


@dataclass(frozen=True, eq=False)
class Reading:
    """A recording, what there is to say about it, and the files that it is from."""

    data: Trajectories
    said: tuple[tuple[str, str], ...]  # (word, sentence): read, guessed, skipped, note, data
    files: tuple[str, ...]


def read_recording(paths: str | Path | Sequence[str | Path], options: ReadingOptions | None = None, **given) -> Reading:
    """Read one file or several, of which each holds one run or, with a column that tells them apart, more.

    What is known of the columns is said as `ReadingOptions`, or by its names: those of `Trajectories.read`. With
    `roles="pq"`, or where `momentum` or `position` is given, the state is put together from momenta, then positions;
    what is not given is guessed by name, then by order, and tested by its sign. `state` is taken as it is.
    """
    asked = ReadingOptions(**given) if options is None else options
    tables = [read_table(path, asked.columns, asked.decimal) for path in _paths(paths)]
    files = tuple(table.file for table in tables)
    require_unique(files, in_file(files[0]), "give every file once")
    found = find_roles(tables[0], asked)
    for table in tables[1:]:
        _require_same_columns(table, tables[0])
    data = _recording(tables, found, asked.units)
    data, about_pairs = settle_pairs(data, found.pairings, asked, in_file(files[0]))
    require_free_names(data.names, in_file(files[0]))
    skipped = _skipped(tables, found, data)
    said = [("read", _read_sentence(data, files, len(skipped)))]
    said += [("guessed", guess) for guess in found.guesses]
    said += about_pairs
    said += [("note", f"{name} jumps by a full turn; unwrap it") for name in wrapped_channels(data)]
    said += [("skipped", ", ".join(skipped))] if skipped else []
    return Reading(data, (*said, ("data", data_sentence(data))), files)


def _paths(paths: str | Path | Sequence[str | Path]) -> list[str | Path]:
    found = [paths] if isinstance(paths, str | Path) else list(paths)
    if not found:
        raise BadInput("no file is given", "name at least one")
    return found


def _require_same_columns(table: Table, first: Table):
    for name in [*first.columns, *table.columns]:
        if name not in table.columns or name not in first.columns:
            without, other = (table, first) if name in first.columns else (first, table)
            raise without.where.refuse(
                f"there is no column {name!r}, which {other.file} has", "give files with the same columns", name
            )


def _recording(tables: Sequence[Table], roles: Roles, units: Sequence[str] | Mapping[str, str] | None) -> Trajectories:
    runs, names = [], []
    for table in tables:
        parts = _runs(table, roles)
        runs += parts.values()
        names += _run_names(table, list(parts), alone=len(tables) == 1, labelled=roles.run is not None)
    if len(set(names)) < len(names):  # a/lab.csv and b/lab.csv
        names = [name for table in tables for name in _run_names(table, list(_runs(table, roles)), path=True)]
    states, where = [run.states for run in runs], in_file(tables[0].file)
    require_observed(states, roles.state, where)
    require_varying(states, roles.state, where)
    time = roles.time if tables[0].column(roles.time).named else "t"
    channel_units, time_unit = _units(tables[0], roles, time, units)
    return Trajectories(tuple(runs), roles.state, channel_units, tuple(names), time, time_unit)


def _runs(table: Table, roles: Roles) -> dict[str, Run]:
    """The runs of one file. What is wrong with them is refused in terms of its lines."""
    times = table.numbers(roles.time)
    if len(times) == 0:
        raise table.where.refuse("there are columns but no rows", "check that the recording was saved")
    for name in roles.state if roles.run is None else (roles.run, *roles.state):
        _require_rows(table, name, roles.time)
    states = np.stack([table.numbers(name) for name in roles.state], axis=1)
    rows_of = {"": np.arange(len(times))} if roles.run is None else table.runs(roles.run)
    for name, rows in rows_of.items():
        label = (
            table.where if roles.run is None else dataclasses.replace(table.where, text=f"{table.file}, run {name!r}")
        )
        require_run(times[rows], states[rows], roles.state, label, lambda row, rows=rows: table.place(rows[row]))
    return {name: Run(times[rows], states[rows]) for name, rows in rows_of.items()}


def _require_rows(table: Table, name: str, time: str):
    rows, expected = len(table.column(name)), len(table.column(time))
    if rows != expected:
        raise table.where.refuse(
            f"{name!r} has {rows} rows, but the time {time!r} has {expected}",
            "choose columns of equal length with --time and --state",
            name,
        )


def _run_names(
    table: Table, labels: Sequence[str], alone: bool = False, labelled: bool = True, path: bool = False
) -> list[str]:
    """The labels of one file's runs; with several files, the file's name is their first part."""
    if alone:
        return list(labels) if labelled else ["0"]
    file = str(Path(table.file).with_suffix("")) if path else Path(table.file).stem
    return [file] if len(labels) == 1 else [f"{file}/{label}" for label in labels]


def _units(
    table: Table, roles: Roles, time: str, units: Sequence[str] | Mapping[str, str] | None
) -> tuple[tuple[str, ...], str]:
    """Units of the channels and of the time: as asked for, else as they stand in the file's names."""
    if units is not None and not isinstance(units, Mapping):
        return tuple(units), table.column(roles.time).unit
    given = {table.members(name)[0]: unit for name, unit in (units or {}).items()}
    for name in given:
        if name not in (time, roles.time, *roles.state):
            raise unknown_column(name, [time, *roles.state], table.where)
    found = tuple(given.get(name, table.column(name).unit) for name in roles.state)
    return found, given.get(roles.time, given.get(time, table.column(roles.time).unit))


def _skipped(tables: Sequence[Table], roles: Roles, data: Trajectories) -> list[str]:
    """What the files hold that is not in the recording, each with the reason."""
    first = tables[0]
    skipped = []
    for name, column in first.columns.items():
        if name not in (roles.time, roles.run, *data.names):
            skipped.append(f"column {name}" if column.numeric else f"column {name} (text)")
    for table in tables:
        where = "" if len(tables) == 1 else f" of {table.file}"
        skipped += [f"{what}{where}" for what in table.skipped]
    return skipped


def _read_sentence(data: Trajectories, files: Sequence[str], skipped: int) -> str:
    names = (
        Path(files[0]).name if len(files) == 1 else f"{Path(files[0]).name} and {count(len(files) - 1, 'more file')}"
    )
    left = f"{count(skipped, 'item')} left out" if skipped else "nothing left out"
    size = f"{count(data.rows, 'row')}, {count(len(data), 'run')}, {amount(data.duration, data.time_unit)}"
    return f"{names}: {size}, {left}"
