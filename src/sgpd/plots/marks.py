"""A figure as data: what is drawn, once, for the interactive plot and for its printed twin."""

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np

# Lines that are seen on white and on near-black (contrast at least 3); INK is the text's colour in either theme.
BLUE, VERMILION, GREEN, PURPLE, INK = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "ink"
CYCLE = (BLUE, VERMILION, GREEN, PURPLE)
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "diamond", "square", "triangle-up")

MOST_POINTS = 2000  # of one line
MOST_PATHS = 20
FREE_SCALE = "free scale"  # the toggle that lets vertical axes grow beyond their panel's range

Dash = Literal["solid", "dash", "dot", "dashdot"]


@dataclass(frozen=True, eq=False)
class Line:
    """A curve. `group` belongs to a toggle."""

    x: np.ndarray
    y: np.ndarray
    label: str = ""
    colour: str = BLUE
    dash: Dash = "solid"
    width: float | int = 1.5
    opacity: float | int = 1.0
    group: str = ""


@dataclass(frozen=True, eq=False)
class Dots:
    """Points."""

    x: np.ndarray
    y: np.ndarray
    label: str = ""
    colour: str = INK
    symbol: str = "circle"
    size: float | int = 4
    opacity: float | int = 1.0
    group: str = ""


@dataclass(frozen=True, eq=False)
class Band:
    """The area between two curves."""

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray
    label: str = ""
    colour: str = BLUE
    opacity: float = 0.2
    group: str = ""


@dataclass(frozen=True, eq=False)
class Arrows:
    """Short arrows from (x, y) to (x + dx, y + dy)."""

    x: np.ndarray
    y: np.ndarray
    dx: np.ndarray
    dy: np.ndarray
    label: str = ""
    colour: str = PURPLE
    group: str = ""


@dataclass(frozen=True, eq=False)
class Levels:
    """A function over a plane, z[i, j] at (x[j], y[i]), in filled contours; paler where `reached` is false."""

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    reached: np.ndarray
    label: str = ""

    @property
    def range(self) -> tuple[float, float]:
        """Of the colours: from the lowest value to the highest that was reached; all that is higher looks alike."""
        return float(self.z.min()), float(self.z[self.reached].max(initial=self.z.min()))


Mark = Line | Dots | Band | Arrows | Levels


@dataclass(frozen=True)
class Rule:
    """A straight line across a panel, with a word."""

    at: float
    text: str = ""
    axis: Literal["x", "y"] = "x"


@dataclass(frozen=True)
class Shade:
    """A greyed range of the horizontal axis: what was not tested or not recorded."""

    since: float
    until: float


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes."""

    x: str
    y: str
    marks: tuple[Mark, ...]
    title: str = ""
    rules: tuple[Rule, ...] = ()
    shades: tuple[Shade, ...] = ()
    log: bool = False
    span: tuple[float, float] | None = None  # of the vertical axis until the scale is set free
    x_span: tuple[float, float] | None = None  # of the horizontal one


@dataclass(frozen=True, eq=False)
class Plot:
    """Panels, and the words for those who do not see them."""

    panels: tuple[Panel, ...]
    alt: str
    name: str = ""  # in the menu, where a figure has several plots
    columns: int = 1
    toggles: tuple[str, ...] = ()  # groups of marks that are hidden until a button shows them
    height: int = 300  # of one row of panels, in pixels


def thinned(count: int, most: int = MOST_POINTS) -> np.ndarray:
    """The indices of at most so many points, evenly spread, first and last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def stretches(times: np.ndarray, gap: float) -> list[slice]:
    """The parts of a curve between gaps, so that nothing is drawn across them."""
    ends = [0, *(np.flatnonzero(np.diff(times) > gap) + 1), len(times)]
    return [slice(int(a), int(b)) for a, b in itertools.pairwise(ends)]


def padded(values: np.ndarray, share: float) -> tuple[float, float]:
    """The range of the finite values, wider by a share of itself on either side."""
    finite = np.asarray(values)[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    margin = share * (high - low) if high > low else 0.5 * abs(high) or 1.0
    return low - margin, high + margin


def labelled(name: str, unit: str) -> str:
    """An axis title: the name, and the unit where there is one."""
    return f"{name} [{unit}]" if unit else name
