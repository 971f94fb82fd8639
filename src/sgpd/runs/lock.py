"""One process a folder: a lock of the operating system, which ends with its process however that ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from sgpd.errors import BadInput


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock. The file stays; only the lock on it counts."""
    lock = _lock(path)
    try:
        lock.acquire()
    except Timeout:
        raise busy(path.parent) from None
    try:
        yield
    finally:
        lock.release()


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock."""
    if not path.is_file():
        return False
    try:
        with _lock(path):
            return False
    except (Timeout, OSError):  # a folder that cannot be written to is no place to work in either
        return True


def _lock(path: Path) -> BaseFileLock:
    # A soft lock, a file that is there or not, would outlive a process that is killed.
    return FileLock(path, blocking=False, fallback_to_soft=False, preserve_lock_file=True)


def busy(folder: Path) -> BadInput:
    """The refusal."""
    return BadInput(
        f"{folder}: another process is working in this folder",
        "wait until it has ended, or choose another --out",
        str(folder),
    )
