"""What a section of the page is made of."""

from dataclasses import dataclass
from typing import NamedTuple

from sgpd.checks.verdicts import Verdict
from sgpd.plots.marks import Plot


class Reading(NamedTuple):
    """How to read a figure: the four questions that every one answers, and the figure's place in the documentation."""

    shown: str
    good: str
    bad: str
    do: str


@dataclass(frozen=True, eq=False)
class Figure:
    """One plot, or several to choose from by a menu, with a caption and how to read it."""

    id: str
    title: str
    plots: tuple[Plot, ...]
    caption: str
    reading: Reading
    menu: str = ""  # what the menu chooses

    @property
    def plots_by_id(self) -> dict[str, Plot]:
        """Under the names by which the page's script finds their places."""
        return {f"plot-{self.id}-{index}": plot for index, plot in enumerate(self.plots)}


@dataclass(frozen=True)
class Table:
    """Rows under headers. A cell that is a verdict is drawn with its shape."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    id: str = ""


@dataclass(frozen=True)
class Box:
    """Why there is no figure here, and how to get it."""

    text: str
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Prose:
    """A paragraph; `code` is shown as typed, with a button that copies it."""

    text: str
    code: str = ""


Block = Figure | Table | Box | Prose


@dataclass(frozen=True, eq=False)
class Section:
    """A numbered part of the page."""

    id: str
    title: str
    blocks: tuple[Block, ...]
