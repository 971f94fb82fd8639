"""Which column plays which part: asked for, or guessed and said."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sgpd.data.reading.naming import RUNS, TIMES, matched, meaning
from sgpd.data.reading.options import ReadingOptions
from sgpd.data.reading.tables import Column, Table
from sgpd.data.refusals import Where, require_unique
from sgpd.errors import BadInput


@dataclass(frozen=True)
class Pairing:
    """Momenta with their positions; `how` they were found: asked, name, order."""

    momenta: tuple[str, ...]
    positions: tuple[str, ...]
    how: str


@dataclass(frozen=True)
class Roles:
    """The columns that are read, and the ways in which momenta and positions may be among them."""

    time: str
    run: str | None
    state: tuple[str, ...]
    pairings: tuple[Pairing, ...] = ()
    guesses: tuple[str, ...] = ()


def find_roles(table: Table, asked: ReadingOptions) -> Roles:
    """Give every column its part."""
    run, run_guess = _run(table, asked)
    time, time_guess = _time(table, asked, run)
    rest = [name for name, column in table.columns.items() if column.numeric and name not in (time, run)]
    pairings: tuple[Pairing, ...] = ()
    if asked.state is not None:
        _require_one_way(asked, table.where)
        state = tuple(part for name in asked.state for part in table.members(name))
    elif asked.pairs or asked.momentum is not None or asked.position is not None:
        pairings = _pairings(table, rest, asked)
        state = pairings[0].momenta + pairings[0].positions
    else:
        state = tuple(rest)
    if not state:
        raise table.where.refuse(
            f"there is no column of numbers besides the time {time!r}",
            f"name the columns of the state with --state; the columns are: {', '.join(table.columns)}",
        )
    used = [time, *state] if run is None else [time, run, *state]
    require_unique(used, table.where, "give the time, the run and each channel a column of their own")
    guesses = tuple(guess for guess in (*table.guesses, run_guess, time_guess) if guess)
    return Roles(time, run, state, pairings, guesses)


def _require_one_way(asked: ReadingOptions, where: Where):
    if asked.momentum is not None or asked.position is not None:
        raise where.refuse(
            "--state is given together with --momentum or --position",
            "give the state in one way: --state, or --momentum and --position",
        )


def _run(table: Table, asked: ReadingOptions) -> tuple[str | None, str]:
    if asked.run is not None:
        return _single(table, asked.run), ""
    taken = {asked.time, *(asked.momentum or ()), *(asked.position or ()), *(asked.state or ())}
    free = [name for name in table.columns if name not in taken]
    for name in free:
        if name.lower() in RUNS:
            return name, f"run = {name} (by name); change with --run"
    for name in free:
        if not table.columns[name].named and _tells_runs(table.columns[name]):
            numbers = table.columns[name].numbers
            kind = "constant" if (numbers == numbers[0]).all() else "constant in blocks"
            return name, f"run = {_spoken(table, name)} ({kind}, no name); change with --run or --columns"
    return None, ""


def _tells_runs(column: Column) -> bool:
    """Whole numbers, each in one block of rows."""
    numbers = column.numbers
    if len(numbers) == 0 or not np.isfinite(numbers).all() or (numbers != np.round(numbers)).any():
        return False
    blocks = 1 + np.count_nonzero(np.diff(numbers))
    return bool(blocks == len(np.unique(numbers)) and 2 * blocks <= len(numbers))


def _time(table: Table, asked: ReadingOptions, run: str | None) -> tuple[str, str]:
    if asked.time is not None:
        return _single(table, asked.time), ""
    for wanted in TIMES:
        for name in table.columns:
            if name.lower() == wanted and name != run:
                return name, f"time = {name} (by name); change with --time"
    taken = {run, *(asked.momentum or ()), *(asked.position or ()), *(asked.state or ())}
    free = [name for name in table.columns if name not in taken]
    rows = list(table.runs(run).values()) if run is not None else [slice(None)]
    unnamed = [name for name in free if not table.columns[name].named]
    for name in [*unnamed, *(name for name in free if name not in unnamed)]:
        numbers = table.columns[name].numbers
        if len(numbers) > 1 and all((np.diff(numbers[each]) > 0).all() for each in rows):
            why = "increasing, no name" if name in unnamed else "the first column that increases"
            flags = "--time or --columns" if name in unnamed else "--time"
            return name, f"time = {_spoken(table, name)} ({why}); change with {flags}"
    for name in free:
        if table.columns[name].numeric:
            table.numbers(name)  # text among the numbers is the likelier cause, and is refused here
    raise table.where.refuse(
        "no column is called t or time, and none increases from row to row",
        "name the column of times with --time, and the one that tells the runs apart with --run",
    )


def _single(table: Table, name: str) -> str:
    """The one column that a name stands for."""
    names = table.members(name)
    table.column(names[0] if len(names) == 1 else name)
    return names[0]


def _spoken(table: Table, name: str) -> str:
    return name if table.columns[name].named else f"column {list(table.columns).index(name) + 1}"


def _pairings(table: Table, rest: Sequence[str], asked: ReadingOptions) -> tuple[Pairing, ...]:
    """The momenta and positions; several possible ways only where neither names nor flags tell."""
    momenta, positions = (
        None if names is None else [part for name in names for part in table.members(name)]
        for names in (asked.momentum, asked.position)
    )
    for name in [*(momenta or ()), *(positions or ())]:
        table.column(name)
    if momenta is not None and positions is not None:
        _require_equal(momenta, positions, table.where)
        return (Pairing(tuple(momenta), tuple(positions), "asked"),)
    free = [name for name in rest if name not in [*(momenta or ()), *(positions or ())]]
    named = [name for name in free if meaning(name).moves], [name for name in free if meaning(name).part == "position"]
    other = [name for name in free if not meaning(name).part]
    if momenta is not None:
        return (_completed(momenta, _fitting(len(momenta), named[1], other, free), table.where),)
    if positions is not None:
        return (_completed(_fitting(len(positions), named[0], other, free), positions, table.where),)
    return _guessed(*named, other, table.where)


def _fitting(count: int, *choices: Sequence[str]) -> list[str]:
    """The first choice of so many columns."""
    return next((list(names) for names in choices if len(names) == count), list(choices[0]))


def _completed(momenta: Sequence[str], positions: Sequence[str], where: Where) -> Pairing:
    """One side is asked for, the other guessed."""
    if not momenta:
        raise _positions_only(positions, where)
    _require_equal(momenta, positions, where)
    return Pairing(matched(momenta, positions), tuple(positions), "name")


def _guessed(
    momenta: Sequence[str], positions: Sequence[str], other: Sequence[str], where: Where
) -> tuple[Pairing, ...]:
    if not momenta and len(other) == len(positions) and other:
        return (Pairing(tuple(other), tuple(positions), "order"),)
    if not momenta and not positions and other and len(other) % 2 == 0:
        return _orders(other)
    if not momenta:
        raise _positions_only(positions or other, where)
    if not positions and len(other) == len(momenta):
        positions = other
    _require_equal(momenta, positions, where)
    return (Pairing(matched(momenta, positions), tuple(positions), "name"),)


def _orders(names: Sequence[str]) -> tuple[Pairing, ...]:
    """Positions before momenta, as in most recordings; after them; and each beside its own."""
    half = len(names) // 2
    sides = [(names[half:], names[:half]), (names[:half], names[half:])]
    sides += [(names[1::2], names[::2]), (names[::2], names[1::2])] if half > 1 else []
    return tuple(Pairing(tuple(momenta), tuple(positions), "order") for momenta, positions in sides)


def _positions_only(positions: Sequence[str], where: Where) -> BadInput:
    return where.refuse(
        f"there is no momentum or velocity, only {', '.join(positions)}; this structure needs one for each position",
        "add a column with the velocity of each position, or say which columns they are with --momentum and --position",
    )


def _require_equal(momenta: Sequence[str], positions: Sequence[str], where: Where):
    if len(momenta) != len(positions):
        sides = [
            f"{len(names)} {one if len(names) == 1 else more} ({', '.join(names) or 'none'})"
            for names, one, more in ((momenta, "momentum", "momenta"), (positions, "position", "positions"))
        ]
        raise where.refuse(
            f"the state would have {' but '.join(sides)}",
            "name one position for each momentum with --momentum and --position, in the same order",
        )
