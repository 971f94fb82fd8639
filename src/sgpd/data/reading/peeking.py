"""The names of a file's columns from its beginning alone, for shells that complete them: nothing is checked."""

import zipfile
from pathlib import Path

import numpy as np

from sgpd.data.reading.files import TEXT, UNIT
from sgpd.data.reading.text import read_header

HEAD = 1 << 16  # bytes of a text file


def peek_names(path: Path, decimal: str = ".") -> list[str]:
    """What `--time`, `--state` and the like may name. Units in brackets are left out, as when the file is read."""
    suffix = path.suffix.lower()
    names = _READERS[suffix](path) if suffix in _READERS else _text(path, decimal) if suffix in TEXT else []
    return [match["name"] if (match := UNIT.fullmatch(name)) else name for name in names]


def _text(path: Path, decimal: str) -> list[str]:
    with path.open("rb") as file:
        head = file.read(HEAD)
    whole = head[: head.rfind(b"\n")] if len(head) == HEAD else head
    header = read_header(str(path), whole, decimal)
    return [name or f"column{k}" for k, name in enumerate(header.names, 1) if name or header.partial]


def _npz(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if _is_table(archive, name)]


def _is_table(archive: zipfile.ZipFile, name: str) -> bool:
    """Whether an entry has rows, by its header."""
    with archive.open(name) as entry:
        version = np.lib.format.read_magic(entry)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        return len(read(entry)[0]) in (1, 2)


def _parquet(path: Path) -> list[str]:
    from pyarrow.parquet import read_schema

    return read_schema(path).names


def _feather(path: Path) -> list[str]:
    import pyarrow.ipc

    with path.open("rb") as file:
        return pyarrow.ipc.open_file(file).schema.names


_READERS = {".npz": _npz, ".parquet": _parquet, ".feather": _feather}
