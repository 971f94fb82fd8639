"""Which character separates the cells of a text file, and which of its lines names the columns."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from sgpd.data.refusals import in_file

COMMENT = "#%"


@dataclass(frozen=True)
class Dialect:
    """How a text file writes its numbers."""

    separator: str | None  # of the cells; None means blanks
    decimal: str


@dataclass(frozen=True)
class Header:
    """The names of the columns, "" where there is none, and where they come from."""

    names: tuple[str, ...]
    line: int | None  # None where the user has named the columns
    is_row: bool = False  # the names stand in the first line that is no comment
    partial: bool = False  # only the last columns are named

    @property
    def source(self) -> str:
        """Who names the columns, in words."""
        return "`--columns` names" if self.line is None else f"line {self.line} names"


def split(line: str, separator: str | None) -> list[str]:
    """The cells of a line; None means blanks."""
    if '"' in line:
        text, character = (line.replace("\t", " ").strip(), " ") if separator is None else (line, separator)
        return [cell.strip() for cell in next(csv.reader([text], delimiter=character, skipinitialspace=True), [])]
    return line.split() if separator is None else [cell.strip() for cell in line.split(separator)]


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether a cell reads as a number."""
    try:
        float(text.replace(decimal, "."))
    except ValueError:
        return False
    return "_" not in text


def sniff(lines: Sequence[str], decimal: str) -> str | None:
    """The separator of the first lines of a file, None for blanks: one that splits them alike, else one they have."""
    candidates = [
        character
        for character in ";\t,"
        if character != decimal and not _several_numbers(split(lines[-1], character), decimal)
    ]
    for character in candidates:
        counts = {len(split(line, character)) for line in lines}
        if len(counts) == 1 and counts != {1}:
            return character
    return next((character for line in reversed(lines) for character in candidates if character in line), None)


def _several_numbers(cells: Sequence[str], decimal: str) -> bool:
    """Whether a cell holds more than one number: then blanks separate too, and a tab is only one of them."""
    parts = [cell.split() for cell in cells]
    return any(len(words) > 1 and all(is_number(word, decimal) for word in words) for words in parts)


def find_header(
    file: str,
    first: tuple[int, str],
    width: int,
    comment: tuple[int, str] | None,
    dialect: Dialect,
    columns: Sequence[str] | None,
) -> Header:
    """The names of `width` columns: those asked for, those of the first line, or those of the comment before it."""
    cells = _names(first[1], dialect.separator, width)
    numbers = [is_number(cell, dialect.decimal) for cell in cells]
    if columns is not None:
        # A row may begin with the name of its run, so only a line without any number is taken for names.
        return Header(tuple(columns), None, is_row=not any(numbers))
    if not all(numbers):
        return Header(tuple(cells), first[0], is_row=True)
    if comment is not None:
        names = _names(comment[1].lstrip().lstrip(COMMENT), dialect.separator, width)
        if 0 < len(names) <= width and all(names) and not any(is_number(name, dialect.decimal) for name in names):
            unnamed = ("",) * (width - len(names))
            return Header(unnamed + tuple(names), comment[0], partial=bool(unnamed))
    raise in_file(file, first[0]).refuse(
        "there are no column names", "name the columns with `--columns t,p,q`, or add a first line such as t,p,q"
    )


def _names(line: str, separator: str | None, width: int) -> list[str]:
    names, words = split(line, separator), split(line, None)
    return words if len(names) != width and (len(words) == width or len(names) == 1) else names
