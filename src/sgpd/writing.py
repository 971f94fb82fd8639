"""Files that are there whole or not at all."""

import os
from pathlib import Path


def write_whole(path: str | Path, content: bytes):
    """Write beside the file under a hidden name, then put it in its place."""
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
