"""Files as tables of named columns, before anyone has said what the columns mean."""

import csv
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sgpd.data.refusals import Row, require_unique
from sgpd.outcome import unknown_name


@dataclass(frozen=True, eq=False)
class Column:
    """The cells of one column, as numbers and as they stand in the file."""

    numbers: np.ndarray  # NaN where a cell is empty or not a number
    cells: np.ndarray
    wrong: np.ndarray  # bool: the cell holds something that is not a number

    @property
    def numeric(self) -> bool:
        """Whether this is a column of numbers, if perhaps with some wrong or empty cells: not every cell is text."""
        return bool((~np.isnan(self.numbers)).any() or not self.wrong.any())


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns in file order. `lines` says on which line of the file each row is, if the format has lines."""

    file: str
    columns: dict[str, Column]
    lines: np.ndarray | None = None
    groups: dict[str, list[str]] = field(default_factory=dict)  # names that stand for several columns

    def place(self, row: Row) -> str:
        """Where a row is, in words."""
        where = f"row {row}" if self.lines is None else f"line {self.lines[row]}"
        return f"{self.file}, {where}"

    def column(self, name: str) -> Column:
        """The column of that name; refused with the names there are."""
        if name not in self.columns:
            raise unknown_name(f"column in {self.file}", name, [*self.columns, *self.groups])
        return self.columns[name]

    def numbers(self, name: str) -> np.ndarray:
        """A column as floats, NaN where a cell is empty; text is refused with its line."""
        column = self.column(name)
        wrong = np.flatnonzero(column.wrong)
        if wrong.size == 0:
            return column.numbers
        more = f" (and {wrong.size - 1} more)" if wrong.size > 1 else ""
        raise ValueError(
            f"{self.place(wrong[0])}, column {name!r}: {str(column.cells[wrong[0]])!r} is not a number{more}; correct "
            "it, or empty the cell if the value is missing, or choose other columns with `time=` and `state=`."
        )

    def labels(self, name: str) -> list[str]:
        """A column as text; an empty cell is refused."""
        column = self.column(name)
        empty = np.isnan(column.numbers) & ~column.wrong
        for row in np.flatnonzero(empty)[:1]:
            raise ValueError(f"{self.place(row)}, column {name!r}: the run has no name; fill the cell or drop the row.")
        return [str(cell) for cell in column.cells]


def read_table(path: str | Path) -> Table:
    """Read a file; its suffix says how."""
    path = Path(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"{path}: files ending in {path.suffix!r} cannot be read; save as {' or '.join(READERS)}.")
    return reader(path)


def _read_csv(path: Path) -> Table:
    """Comma-separated, UTF-8, with a first line of column names. Empty lines and unnamed columns are left out."""
    names = _header(path)
    frame = _frame(path, len(names))
    filled = np.flatnonzero(frame.notna().any(axis=1))
    columns = {name: _from_text(frame[k].to_numpy(object)[filled]) for k, name in enumerate(names) if name}
    return Table(str(path), columns, lines=filled + 2)


def _header(path: Path) -> list[str]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            names = [name.strip() for name in next(csv.reader(file), [])]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: this is not UTF-8 text ({error}); save it as CSV in UTF-8.") from error
    if not any(names) or all(_is_number(name) for name in names):
        raise ValueError(f"{path}, line 1: there are no column names; add a first line such as t,p,q.")
    require_unique([name for name in names if name], f"{path}, line 1", "give every column its own name")
    return names


def _frame(path: Path, width: int):
    """All cells as text, in columns 0, 1, ...; an empty line is a row of empty cells, so that lines can be counted."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                path,
                header=0,
                names=range(width),
                index_col=False,
                dtype=str,
                encoding="utf-8-sig",
                skip_blank_lines=False,
                skipinitialspace=True,
            )
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: this is not UTF-8 text ({error}); save it as CSV in UTF-8.") from error
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        reason = str(error).rpartition("error: ")[2].strip().rstrip(".")
        raise ValueError(
            f"{path}: rows and column names do not match ({reason}); give every row as many cells as line 1 has names."
        ) from error


def _from_text(cells: np.ndarray) -> Column:
    import pandas as pd

    numbers = np.array(pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce"), float)
    return Column(numbers, cells, wrong=np.isnan(numbers) & ~pd.isna(cells))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_npz(path: Path) -> Table:
    """Arrays of shape (n,) or (n, 1) are columns, x of shape (n, d) is the columns x1 ... xd; others are left out."""
    columns, groups = [], {}
    for name, array in _arrays(path):
        parts = _split(name, array)
        columns += parts
        if len(parts) > 1:
            groups[name] = [part for part, _ in parts]
    require_unique([name for name, _ in columns], str(path), "give every array, and every column of one, its own name")
    return Table(str(path), {name: _from_array(values) for name, values in columns}, groups=groups)


def _arrays(path: Path) -> list[tuple[str, np.ndarray]]:
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            return [(name, archive[name]) for name in archive]
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path}: this is not an NPZ file of plain arrays ({error}); save it by numpy.savez, without object arrays."
        ) from error


def _split(name: str, array: np.ndarray) -> list[tuple[str, np.ndarray]]:
    if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1):
        return [(name, array.reshape(-1))]
    if array.ndim == 2:
        return [(f"{name}{k}", values) for k, values in enumerate(array.T, start=1)]
    return []


def _from_array(values: np.ndarray) -> Column:
    if values.dtype.kind in "iuf":
        return Column(values.astype(float), values, np.zeros(len(values), bool))
    return Column(np.full(len(values), np.nan), values, np.ones(len(values), bool))


READERS: dict[str, Callable[[Path], Table]] = {".csv": _read_csv, ".npz": _read_npz}
