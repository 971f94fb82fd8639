"""What a user may say of a file: one place for all who pass it on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Names = str | Sequence[str] | None
LISTS = ("columns", "momentum", "position", "state")  # options that are names of several columns


@dataclass(frozen=True)
class ReadingOptions:
    """What is said of the columns. What is left out is guessed, and the guess is said."""

    columns: Names = None  # names of all columns of a text file, instead of those in its header
    time: str | None = None
    momentum: Names = None
    position: Names = None
    state: Names = None  # instead of the two above: the state as it is
    run: str | None = None  # the column that tells runs apart
    units: Sequence[str] | Mapping[str, str] | None = None
    decimal: str = "."
    roles: Literal["any", "pq"] = "any"  # "pq": the state is made of momenta and positions

    def __post_init__(self):
        for name in LISTS:
            object.__setattr__(self, name, _tuple(getattr(self, name)))

    @property
    def pairs(self) -> bool:
        """Whether momenta and positions are needed."""
        return self.roles == "pq"


def _tuple(names: Names) -> tuple[str, ...] | None:
    if names is None:
        return None
    return (names,) if isinstance(names, str) else tuple(names)
