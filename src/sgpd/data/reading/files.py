"""From a path to a table: whether the file is there, which format it has, and units that stand in its names."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from sgpd.data.reading.binary import peek_feather, peek_npz, peek_parquet, read_feather, read_npz, read_parquet
from sgpd.data.reading.tables import Table
from sgpd.data.reading.text import read_text
from sgpd.data.refusals import in_file, require_unique
from sgpd.errors import BadInput

TEXT = (".csv", ".tsv", ".txt", ".dat", "")


class Format(NamedTuple):
    """How a file of typed arrays is read, and how its names alone are."""

    read: Callable[[Path], Table]
    peek: Callable[[Path], list[str]]


BINARY = {
    ".npz": Format(read_npz, peek_npz),
    ".parquet": Format(read_parquet, peek_parquet),
    ".feather": Format(read_feather, peek_feather),
}
UNIT = re.compile(r"(?P<name>.+?)\s+[\[(](?!\d+[\])])(?P<unit>[^\[\]()]+)[\])]")  # x [mm], omega (rad/s); not x [1]


def read_table(path: str | Path, columns: Sequence[str] | None = None, decimal: str = ".") -> Table:
    """Read a file; its suffix says how. `columns` names the columns of a text file, instead of its own header."""
    path = Path(path)
    if decimal not in (".", ","):
        raise BadInput(
            f"the decimal sign {decimal!r} is neither a point nor a comma", "give `--decimal ,` or leave it out"
        )
    if not path.exists():
        raise _not_found(path)
    if path.is_dir():
        raise in_file(str(path)).refuse("this is a folder", f"name the files in it, such as {path}/*.csv")
    try:
        return _with_units(_read(path, columns, decimal))
    except OSError as error:
        raise in_file(str(path)).refuse(f"the file cannot be read ({error.strerror or error})", "check it") from error


def _read(path: Path, columns: Sequence[str] | None, decimal: str) -> Table:
    suffix = path.suffix.lower()
    if suffix in TEXT:
        if columns is not None:
            columns = [name.strip() for name in columns]
            require_unique(columns, in_file("--columns"), "give every column its own name")
        return read_text(path, columns, decimal)
    if suffix not in BINARY:
        known = ", ".join([*filter(None, TEXT), *BINARY])
        raise in_file(str(path)).refuse(f"files ending in {path.suffix!r} cannot be read", f"save as one of {known}")
    if columns is not None:
        raise in_file(str(path)).refuse(
            "`--columns` names the columns of text files, and this file has names",
            "leave it out, and choose by --time, --momentum, --position or --state",
        )
    return BINARY[suffix].read(path)


def _not_found(path: Path) -> BadInput:
    folder = path.parent
    there = [entry.name for entry in folder.iterdir() if entry.is_file()] if folder.is_dir() else []
    close = get_close_matches(path.name, there, n=1)
    if close:
        hint = f"did you mean {str(folder / close[0])!r}?"
    else:
        hint = "check the name and the folder" if folder.is_dir() else f"there is no folder {str(folder)!r}"
    return in_file(str(path)).refuse("there is no such file", hint)


def _with_units(table: Table) -> Table:
    """Columns called "x [mm]" are called x and have the unit mm, unless two would then have the same name."""
    found = {name: UNIT.fullmatch(name) for name in table.columns}
    short = {name: match["name"] if match else name for name, match in found.items()}
    if len(set(short.values())) < len(short):
        return table
    columns = {
        short[name]: dataclasses.replace(column, unit=match["unit"].strip()) if (match := found[name]) else column
        for name, column in table.columns.items()
    }
    full = {name: [short[name]] for name, match in found.items() if match}
    return dataclasses.replace(table, columns=columns, groups=table.groups | full)
