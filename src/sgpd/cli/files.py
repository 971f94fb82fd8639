"""Tables to files, by suffix: CSV, TSV, Parquet, NPZ; whole or not at all, with what is known about them."""

import io
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sgpd.errors import BadInput
from sgpd.writing import json_text, write_together

if TYPE_CHECKING:
    import pandas as pd


def require_table_file(path: Path, flag: str = "--out"):
    """Refuse a file that cannot be written, before any work."""
    if path.suffix.lower() not in _WRITERS:
        what = f"{flag} {path}: files ending in {path.suffix!r} are not written"
        raise BadInput(what, f"use one of {', '.join(_WRITERS)}", str(path))
    other = f"choose another {flag}"
    if path.is_dir():
        raise BadInput(f"{flag} {path}: there is a folder of that name", other, str(path))
    there = next(parent for parent in path.absolute().parents if parent.exists())
    if not there.is_dir():
        raise BadInput(f"{flag} {path}: {there} is a file, not a folder", other, str(path))
    if not os.access(there, os.W_OK | os.X_OK):
        raise BadInput(f"{flag} {path}: there is no permission to write in {there}", other, str(path))


def write_table(path: Path, frame: "pd.DataFrame", about: dict):
    """Write a table; what there is to say about it goes beside a text file (forecast.csv.json), and into the others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files = {path: _WRITERS[path.suffix.lower()](frame, about)}
    if about and path.suffix.lower() in (".csv", ".tsv"):
        files[path.with_name(f"{path.name}.json")] = f"{json_text(about)}\n".encode()
    write_together(files)


def _csv(frame: "pd.DataFrame", about: dict) -> bytes:
    return frame.to_csv(index=False, lineterminator="\n").encode()


def _tsv(frame: "pd.DataFrame", about: dict) -> bytes:
    return frame.to_csv(index=False, sep="\t", lineterminator="\n").encode()


def _parquet(frame: "pd.DataFrame", about: dict) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(frame, preserve_index=False)
    metadata = {**(table.schema.metadata or {}), b"sgpd": json_text(about, indent=None).encode()}
    file = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), file)
    return file.getvalue()


def _npz(frame: "pd.DataFrame", about: dict) -> bytes:
    file = io.BytesIO()
    arrays = {str(name): _plain(frame[name].to_numpy()) for name in frame.columns}
    if about:
        arrays["meta"] = np.array(json_text(about, indent=None))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:  # numpy.savez has no room for a column "file"
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)
    return file.getvalue()


def _plain(values: np.ndarray) -> np.ndarray:
    """Text as text, not as Python objects."""
    return values.astype(str) if values.dtype.kind == "O" else values


_WRITERS = {".csv": _csv, ".tsv": _tsv, ".parquet": _parquet, ".npz": _npz}
