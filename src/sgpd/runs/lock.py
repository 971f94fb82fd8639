"""One process a folder: a lock of the operating system, which ends with its process however that ends."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sgpd.errors import BadInput

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO):
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(file: IO):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock. The file stays; only the lock on it counts."""
    with path.open("a") as file:
        try:
            _try_lock(file)
        except OSError:
            raise busy(path.parent) from None
        yield


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock."""
    if not path.is_file():
        return False
    try:
        with path.open("r+") as file:
            _try_lock(file)
    except OSError:
        return True
    return False


def busy(folder: Path) -> BadInput:
    """The refusal."""
    return BadInput(
        f"{folder}: another process is working in this folder",
        "wait until it has ended, or choose another --out",
        str(folder),
    )
