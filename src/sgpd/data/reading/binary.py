"""Files of typed arrays as tables: NPZ, Parquet, Feather."""

import re
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sgpd.data.reading.tables import Column, Table, text_column
from sgpd.data.refusals import in_file, require_unique

if TYPE_CHECKING:
    import pyarrow

INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls an index without a name


def read_npz(path: Path) -> Table:
    """Arrays of shape (n,) or (n, 1) are columns, x of shape (n, d) is the columns x1 ... xd; others are left out."""
    columns, groups, skipped = [], {}, []
    for name, array in _arrays(path):
        parts = _split(name, array)
        columns += parts
        if len(parts) > 1:
            groups[name] = [part for part, _ in parts]
        if not parts:
            skipped.append(f"entry {name} ({'a single value' if array.ndim == 0 else f'shape {array.shape}'})")
    remedy = "give every array, and every column of one, its own name"
    require_unique([name for name, _ in columns], in_file(str(path)), remedy)
    return Table(
        str(path), {name: _from_array(values) for name, values in columns}, groups=groups, skipped=tuple(skipped)
    )


def _arrays(path: Path) -> list[tuple[str, np.ndarray]]:
    damage = (ValueError, EOFError, KeyError, OSError, RuntimeError, zipfile.BadZipFile, zlib.error)
    with path.open("rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it is a single array")
            return [(name, archive[name]) for name in archive]
        except damage as error:
            reason = "it holds pickled objects" if "allow_pickle" in str(error) else _reason(error)
            raise in_file(str(path)).refuse(
                f"this is not an NPZ file of plain arrays ({reason})", "save it by numpy.savez, without object arrays"
            ) from error


def _reason(error: Exception) -> str:
    """The first line of what a library says, short enough for a sentence."""
    return str(error).strip().partition("\n")[0][:120].rstrip(". ")


def _split(name: str, array: np.ndarray) -> list[tuple[str, np.ndarray]]:
    if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1):
        return [(name, array.reshape(-1))]
    if array.ndim == 2:
        return [(f"{name}{k}", values) for k, values in enumerate(array.T, start=1)]
    return []


def _from_array(values: np.ndarray) -> Column:
    if values.dtype.kind in "iuf":
        return Column(values.astype(float), np.zeros(len(values), bool), lambda: values)
    text = lambda: values.astype(str).astype(object)
    return Column(np.full(len(values), np.nan), np.ones(len(values), bool), text, numeric=False)


def peek_npz(path: Path) -> list[str]:
    """The names of its arrays that have rows, by their headers alone."""
    with zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if _has_rows(archive, name)]


def _has_rows(archive: zipfile.ZipFile, name: str) -> bool:
    with archive.open(name) as entry:
        version = np.lib.format.read_magic(entry)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        return len(read(entry)[0]) in (1, 2)


def read_parquet(path: Path) -> Table:
    """A Parquet file; a null is a missing value."""
    from pyarrow.parquet import ParquetFile

    return _read_arrow(path, "a Parquet", lambda: ParquetFile(path).read())


def peek_parquet(path: Path) -> list[str]:
    """The names of its columns."""
    from pyarrow.parquet import read_schema

    return read_schema(path).names


def read_feather(path: Path) -> Table:
    """A Feather file; a null is a missing value."""
    from pyarrow.feather import read_table

    return _read_arrow(path, "a Feather", lambda: read_table(path, memory_map=False))


def peek_feather(path: Path) -> list[str]:
    """The names of its columns."""
    import pyarrow.ipc

    with path.open("rb") as file:
        return pyarrow.ipc.open_file(file).schema.names


def _read_arrow(path: Path, kind: str, read) -> Table:
    import pyarrow as pa

    try:
        arrays = read()
    except (pa.ArrowException, OSError) as error:
        raise in_file(str(path)).refuse(
            f"this is not {kind} file, or it is damaged ({_reason(error)})", "save it again"
        ) from error
    where = in_file(str(path))
    require_unique(arrays.column_names, where, "give every column its own name")
    columns, skipped = {}, []
    for name in arrays.column_names:
        column = _from_arrow(arrays.column(name))
        if column is None or INDEX.fullmatch(name):
            skipped.append(f"column {name} ({'an index' if column else arrays.column(name).type})")
        else:
            columns[name] = column
    return Table(str(path), columns, skipped=tuple(skipped))


def _from_arrow(array: "pyarrow.ChunkedArray") -> Column | None:
    """A column of numbers or of text; None for lists, structs, bytes."""
    import pyarrow as pa

    kind = array.type
    if pa.types.is_dictionary(kind):
        return _from_arrow(array.cast(kind.value_type))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        numbers = np.array(array.cast(pa.float64()).to_numpy(zero_copy_only=False), float)
        return Column(numbers, np.zeros(len(numbers), bool), lambda: numbers.astype(str).astype(object))
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return None
    return text_column(array.cast(pa.string()).to_pandas().to_numpy(object))
