"""Text files as tables: separated by commas, semicolons, tabs or blanks, with names in a first line or a comment."""

import dataclasses
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sgpd.data.reading.headers import COMMENT, Dialect, Header, find_header, sniff, split
from sgpd.data.reading.tables import Column, Table, text_column
from sgpd.data.refusals import in_file, require_unique
from sgpd.errors import BadInput

if TYPE_CHECKING:
    import pandas

BLANK = b" \t,;"
BOM = b"\xef\xbb\xbf"
DECIMAL_HINT = "if the numbers have decimal commas, separate the cells by semicolons and add `--decimal ,`"


@dataclass(frozen=True, eq=False)
class _Lines:
    """The lines of a file, and which of them (counted from 0) are rows, comments, or empty."""

    text: list[bytes]
    rows: list[int]
    comments: list[int]
    empty: int

    @classmethod
    def of(cls, content: bytes) -> "_Lines":
        text = content.splitlines()
        filled = [k for k, line in enumerate(text) if line.strip(BLANK)]
        marks = COMMENT.encode()
        any_mark = any(mark in content for mark in (b"#", b"%"))  # most files have none: one look instead of many
        comments = [k for k in filled if text[k].lstrip()[:1] in marks] if any_mark else []
        inside = filled[-1] + 1 - len(filled) if filled else 0
        if comments:
            seen = set(comments)
            filled = [k for k in filled if k not in seen]
        return cls(text, filled, comments, inside)

    def at(self, index: int) -> str:
        return self.text[index].decode()


def read_text(path: Path, columns: Sequence[str] | None = None, decimal: str = ".") -> Table:
    """Read a text file in UTF-8. Rows must have one cell for each column; an empty cell, NA or nan is missing."""
    file = str(path)
    lines = _Lines.of(_content(path))
    if not lines.rows and not lines.comments:
        raise in_file(file).refuse("the file is empty", "check that the recording was saved")
    dialect, header = _layout(file, lines, columns, decimal)
    rows = lines.rows[1:] if header.is_row else lines.rows
    _require_width(file, lines, rows, header, dialect)
    require_unique(
        [name for name in header.names if name], in_file(file, header.line), "give every column its own name"
    )
    return Table(
        file,
        _columns(b"\n".join([lines.text[k] for k in rows]), header, dialect),
        lines=np.array(rows, int) + 1,
        skipped=_skipped(lines, header, columns),
        guesses=_guesses(header),
    )


def read_header(file: str, head: bytes, decimal: str = ".") -> Header:
    """The header alone, from the first lines of a file."""
    return _layout(file, _Lines.of(head.removeprefix(BOM)), None, decimal)[1]


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise in_file(str(path)).refuse("this is UTF-16 text", "save it as text in UTF-8")
    if b"\0" in content:
        line = content[: content.index(b"\0")].count(b"\n") + 1
        raise in_file(str(path), line).refuse("there is a NUL byte", "this is no text file; save it as text in UTF-8")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise in_file(str(path), line).refuse(
            f"byte {content[error.start]:#x} is not UTF-8", "save it as text in UTF-8"
        ) from error
    return content.removeprefix(BOM)


def _layout(file: str, lines: _Lines, columns: Sequence[str] | None, decimal: str) -> tuple[Dialect, Header]:
    if not lines.rows:
        raise in_file(file).refuse("there are comments but no rows", "check that the recording was saved")
    first = lines.rows[0]
    head = [lines.at(k) for k in lines.rows[:2]]
    separator = sniff(head, decimal)
    before = [k for k in lines.comments if k < first]
    comment = (before[-1] + 1, lines.at(before[-1])) if before else None
    width = max(len(split(line, separator)) for line in head)  # the other line may be the ragged one
    dialect = Dialect(separator, decimal)
    header = find_header(file, (first + 1, head[0]), width, comment, dialect, columns)
    if header.is_row and len(lines.rows) == 1:
        raise in_file(file).refuse("there are columns but no rows", "check that the recording was saved")
    return dialect, header


def _require_width(file: str, lines: _Lines, rows: list[int], header: Header, dialect: Dialect):
    """Refuse the first row with more or fewer cells than there are names, and a quote that is left open."""
    text, width, separator = lines.text, len(header.names), dialect.separator
    if separator is None:
        widths = [len(text[k].split()) for k in rows]
    else:
        character = separator.encode()
        widths = [text[k].count(character) + 1 for k in rows]
    if any(b'"' in line for line in text):
        widths = [
            _quoted_width(file, lines, k, separator) if b'"' in text[k] else n
            for k, n in zip(rows, widths, strict=True)
        ]
    for at in np.flatnonzero(np.array(widths) != width)[:1]:
        raise _ragged(file, rows[at] + 1, widths[at], header, dialect.decimal)


def _quoted_width(file: str, lines: _Lines, index: int, separator: str | None) -> int:
    if lines.text[index].count(b'"') % 2:
        raise in_file(file, index + 1).refuse("a quote is not closed on this line", "close it, or remove it")
    return len(split(lines.at(index), separator))


def _ragged(file: str, line: int, cells: int, header: Header, decimal: str) -> BadInput:
    width = len(header.names)
    message = f"there {'is 1 cell' if cells == 1 else f'are {cells} cells'}, but {header.source} {width} columns"
    hint = "give every row one cell for each column, an empty one where a value is missing"
    if cells == 2 * width and decimal == ".":
        hint = DECIMAL_HINT
    elif cells > width:
        hint = "give every row one cell for each column, or name all columns with `--columns`"
    return in_file(file, line).refuse(message, hint)


def _columns(content: bytes, header: Header, dialect: Dialect) -> dict[str, Column]:
    """The columns with a name; in a header that names only the last ones, also the others, as column1, column2 ..."""
    frame = _parse(content, len(header.names), dialect)
    columns = {}
    for k, name in enumerate(header.names):
        if name or header.partial:
            cells = lambda k=k: _parse(content, len(header.names), dialect, only=k)[k].to_numpy(object)
            column = _column(frame.iloc[:, k], dialect.decimal)
            columns[name or f"column{k + 1}"] = dataclasses.replace(column, cells=cells, named=bool(name))
    return columns


def _parse(content: bytes, width: int, dialect: Dialect, only: int | None = None) -> "pandas.DataFrame":
    """All cells, as numbers where a whole column is numbers; or one column as text."""
    import pandas as pd

    old = tuple(int(part) for part in pd.__version__.split(".")[:2]) < (3, 1)
    exact = {"float_precision": "round_trip"} if old else {}  # later versions always give back every digit
    some = {} if only is None else {"usecols": [only], "dtype": str}
    return pd.read_csv(
        io.BytesIO(content),
        header=None,
        names=range(width),
        index_col=False,
        sep=r"\s+" if dialect.separator is None else dialect.separator,
        decimal=dialect.decimal,
        skipinitialspace=True,
        low_memory=False,
        **exact,
        **some,
    )


def _column(series: "pandas.Series", decimal: str) -> Column:
    if series.dtype.kind in "iuf":
        return Column(series.to_numpy(float), np.zeros(len(series), bool), series.to_numpy)
    text = series.astype(str if series.dtype.kind == "b" else object).to_numpy(object)  # True is no number
    if decimal == ",":
        swap = str.maketrans({",": ".", ".": "?"})  # 1.5 is no number where the comma is the decimal sign
        text = np.array([cell.translate(swap) if isinstance(cell, str) else cell for cell in text], object)
    return text_column(text)


def _skipped(lines: _Lines, header: Header, columns: Sequence[str] | None) -> tuple[str, ...]:
    found = [f"column {k} (no name)" for k, name in enumerate(header.names, 1) if not name and not header.partial]
    if columns is not None and header.is_row:
        found.append(f"the names in line {lines.rows[0] + 1} (--columns is used)")
    comments = len(lines.comments) - (columns is None and not header.is_row)
    found += [f"{comments} comment line{'s' * (comments > 1)}"] if comments else []
    return (*found, *([f"{lines.empty} empty line{'s' * (lines.empty > 1)}"] if lines.empty else []))


def _guesses(header: Header) -> tuple[str, ...]:
    if not header.partial:
        return ()
    named = [name for name in header.names if name]
    whose = f"the last {len(named)}" if len(named) > 1 else "the last"
    return (
        f"{header.source} only {len(named)} of {len(header.names)} columns ({', '.join(named)}), taken as {whose}; "
        "change with --columns",
    )
