"""Files that are there whole or not at all."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


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
                hidden[path].write_bytes(content)
        for path in files:
            with _errors_name(path):
                os.replace(hidden[path], path)
    finally:
        for left_over in hidden.values():
            left_over.unlink(missing_ok=True)


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    """Errors of the operating system name the file that was meant: a write knows none, a hidden name says little."""
    try:
        yield
    except OSError as problem:
        raise OSError(problem.errno, problem.strerror, str(path)) from problem
