"""The names of a file's columns from its beginning alone, for shells that complete them: nothing is checked."""

from pathlib import Path

from sgpd.data.reading.files import BINARY, TEXT, UNIT
from sgpd.data.reading.text import read_header

HEAD = 1 << 16  # bytes of a text file


def peek_names(path: Path, decimal: str = ".") -> list[str]:
    """What `--time`, `--state` and the like may name. Units in brackets are left out, as when the file is read."""
    suffix = path.suffix.lower()
    names = BINARY[suffix].peek(path) if suffix in BINARY else _text(path, decimal) if suffix in TEXT else []
    return [match["name"] if (match := UNIT.fullmatch(name)) else name for name in names]


def _text(path: Path, decimal: str) -> list[str]:
    with path.open("rb") as file:
        head = file.read(HEAD)
    whole = head[: head.rfind(b"\n")] if len(head) == HEAD else head
    header = read_header(str(path), whole, decimal)
    return [name or f"column{k}" for k, name in enumerate(header.names, 1) if name or header.partial]
