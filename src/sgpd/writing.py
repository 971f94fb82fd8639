"""Files that are there whole or not at all, also after a power cut; and what is written for other programs as JSON."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np


def json_text(content: Mapping, indent: int | None = 2) -> str:
    """JSON for people and machines. NaN and infinities are null: Python would write them, but they are no JSON."""
    return json.dumps(_plain(content), indent=indent, ensure_ascii=False, allow_nan=False)


def _plain(value):
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not np.isfinite(value) else value


def write_whole(path: str | Path, content: bytes):
    """Write beside the file under a hidden name, then put it in its place."""
    write_together({Path(path): content})


def write_together(files: Mapping[Path, bytes]):
    """Several files that belong together: none takes its place before all are on the disk.

    Where the disk is full, or a file cannot be written, what was there stays, and the error names the file.
    """
    hidden = {path: path.with_name(f".{path.name}.{os.getpid()}") for path in files}
    try:
        for path, content in files.items():
            with _errors_name(path):
                _onto_disk(hidden[path], content)
        for path in files:
            with _errors_name(path):
                os.replace(hidden[path], path)
        for folder in {path.parent for path in files}:
            sync_folder(folder)
    finally:
        for left_over in hidden.values():
            left_over.unlink(missing_ok=True)


def _onto_disk(path: Path, content: bytes):
    """All of it, before the call returns: else a name may reach the disk before what it names."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path):
    """The names in a folder, too, onto the disk; Windows has no such call and needs none."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:  # a file system that cannot: the files themselves are safe
        pass
    finally:
        os.close(descriptor)


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    """Errors of the operating system name the file that was meant: a write knows none, a hidden name says little."""
    try:
        yield
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, str(path)) from problem
