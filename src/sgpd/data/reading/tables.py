"""A file as named columns, before anyone has said what the columns mean."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sgpd.data.refusals import Row, Where, in_file, unknown_column
from sgpd.errors import BadInput

DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of one column, as numbers and as they stand in the file."""

    numbers: np.ndarray  # NaN where a cell is empty or not a number
    wrong: np.ndarray  # bool: the cell holds something that is not a number
    cells: Callable[[], np.ndarray]  # as text; asked for names of runs and for refusals only
    numeric: bool = True  # meant as numbers, if perhaps with some wrong or empty cells
    named: bool = True  # by the file or by the user; else "column3" and the like
    unit: str = ""

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns in file order. `lines` says on which line of the file each row is, if the format has lines."""

    file: str
    columns: dict[str, Column]
    lines: np.ndarray | None = None
    groups: dict[str, list[str]] = field(default_factory=dict)  # names that stand for several columns
    skipped: tuple[str, ...] = ()  # what the file holds besides, in words
    guesses: tuple[str, ...] = ()  # what was guessed about its columns, in words

    @property
    def where(self) -> Where:
        """The file as a place."""
        return in_file(self.file)

    def place(self, row: Row) -> Where:
        """Where a row is."""
        if self.lines is not None:
            return in_file(self.file, int(self.lines[row]))
        return Where(f"{self.file}, row {row}", self.file)

    def column(self, name: str) -> Column:
        """The column of that name; refused with the names there are."""
        if name not in self.columns:
            raise unknown_column(name, [*self.columns, *self.groups], self.where)
        return self.columns[name]

    def members(self, name: str) -> list[str]:
        """A column's own name, or the names of the columns that it stands for."""
        return [name] if name in self.columns else self.groups.get(name, [name])

    def numbers(self, name: str) -> np.ndarray:
        """A column as floats, NaN where a cell is empty; text is refused with its line."""
        column = self.column(name)
        wrong = np.flatnonzero(column.wrong)
        if wrong.size:
            raise self._not_a_number(name, wrong, str(column.cells()[wrong[0]]))
        return column.numbers

    def _not_a_number(self, name: str, wrong: np.ndarray, cell: str) -> BadInput:
        where = self.place(wrong[0])
        more = f" (and {wrong.size - 1:,} more)" if wrong.size > 1 else ""
        if DECIMAL_COMMA.fullmatch(cell.strip()):
            hint = "this looks like decimal commas; add `--decimal ,`"
        elif wrong.size == len(self.column(name)):
            hint = f"name other columns, or save {name!r} as numbers (a time as seconds since the start)"
        else:
            hint = "correct it, or empty the cell if the value is missing"
        shown = cell if len(cell) <= 40 else cell[:37] + "..."
        return Where(f"{where.text}, column {name!r}", where.file, where.line).refuse(
            f"{shown!r} is not a number{more}", hint, name
        )

    def runs(self, name: str) -> dict[str, np.ndarray]:
        """The rows of each run that a column names, runs by first appearance; an empty cell is refused."""
        import pandas as pd

        column = self.column(name)
        for row in np.flatnonzero(np.isnan(column.numbers) & ~column.wrong)[:1]:
            where = self.place(row)
            raise Where(f"{where.text}, column {name!r}", where.file, where.line).refuse(
                "the run has no name", "fill the cell or drop the row", name
            )
        # Few names, many rows: find the different cells first, then say what each is called.
        codes, cells = pd.factorize(column.cells())
        codes, names = pd.factorize(np.array([label(cell) for cell in cells], object)[codes])
        ends = np.cumsum(np.bincount(codes, minlength=len(names)))[:-1]
        return dict(zip(map(str, names), np.split(np.argsort(codes, kind="stable"), ends), strict=True))


def label(cell: object) -> str:
    """The name of a run: as it stands, but 0.0000e+000 is 0."""
    text = str(cell).strip()
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if re.search(r"[.eE]", text) and number.is_integer() else text


def text_column(cells: np.ndarray) -> Column:
    """Cells of text, None or NaN where empty: numbers where they are numbers."""
    import pandas as pd

    # Text repeats itself (names of runs, notes), so each different cell is looked at once; -1 marks an empty one.
    codes, different = pd.factorize(cells)
    values = np.array(pd.to_numeric(pd.Series(different, dtype=object), errors="coerce"), float)
    numbers, wrong = np.append(values, np.nan)[codes], np.append(np.isnan(values), False)[codes]
    meant = not wrong.any() or (~np.isnan(values)).any() or all(map(DECIMAL_COMMA.fullmatch, map(str, different[:9])))
    return Column(numbers, wrong, lambda: cells, numeric=bool(meant))
