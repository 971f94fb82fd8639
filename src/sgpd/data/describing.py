"""A recording in words: its spacing, its gaps, what is missing; and a small card for notebooks."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from sgpd.data.gaps import MISSING, longest_bridged

if TYPE_CHECKING:
    from sgpd.data.trajectories import Trajectories

EVEN = 0.1  # rows whose distance is within so much of the usual one are evenly spaced
TURNS = (2 * np.pi, 360.0)


@dataclass(frozen=True)
class Spacing:
    """The shortest and the longest time between two rows, gaps aside, and the number and length of the gaps."""

    shortest: float
    longest: float
    even: bool
    gaps: int
    longest_gap: float  # 0 where there is none


def spacing(data: "Trajectories") -> Spacing:
    """How the rows lie in time."""
    intervals = np.concatenate([np.diff(run.times) for run in data.runs])
    usual = float(np.median(intervals))
    even = bool(np.mean(np.abs(intervals / usual - 1) <= EVEN) > 0.5)
    gap = intervals > (MISSING * usual if even else longest_bridged(usual))
    rest = intervals[~gap]
    return Spacing(float(rest.min()), float(rest.max()), even, int(gap.sum()), float(intervals[gap].max(initial=0.0)))


def data_sentence(data: "Trajectories") -> str:
    """Spacing, gaps and missing values in one sentence."""
    return f"{_between(data)}, {_gaps(data)}, {_missing(data)}"


def _between(data: "Trajectories") -> str:
    found, unit = spacing(data), f" {data.time_unit}" if data.time_unit else ""
    low, high = f"{found.shortest:.3g}", f"{found.longest:.3g}"
    between = low if low == high else f"{low} to {high}"
    return f"{between}{unit} between rows{'' if found.even else ' (uneven)'}"


def _gaps(data: "Trajectories") -> str:
    found = spacing(data)
    if not found.gaps:
        return "no gaps"
    longest = amount(found.longest_gap, data.time_unit, digits=3)
    return f"{count(found.gaps, 'gap')} ({'of' if found.gaps == 1 else 'the longest'} {longest})"


def _missing(data: "Trajectories") -> str:
    if data.complete:
        return "no missing values"
    counts = np.isnan(np.concatenate([run.states for run in data.runs])).sum(axis=0)
    by_name = ", ".join(f"{name} {number:,}" for name, number in zip(data.names, counts, strict=True) if number)
    total = count(data.missing, "missing value")
    return f"{total}, {share(data.missing, data.rows * data.dimension)} ({by_name})"


def wrapped_channels(data: "Trajectories") -> list[str]:
    """Channels that look like an angle cut at a full turn: they stay within one turn and jump by almost all of it."""
    found = []
    for channel, name in enumerate(data.names):
        jumps = np.abs(np.concatenate([np.diff(run.states[:, channel]) for run in data.runs]))
        values = np.concatenate([run.states[:, channel] for run in data.runs])
        width = np.nanmax(values) - np.nanmin(values)
        for turn in TURNS:
            between = (jumps > turn / 2) & (jumps < 0.75 * turn)  # a motion so fast has such steps, too
            if 0.9 * turn < width < 1.01 * turn and (jumps >= 0.75 * turn).any() and not between.any():
                found.append(name)
    return found


def share(part: int, whole: int) -> str:
    """A percentage that is never rounded to 0 % or 100 %."""
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return "< 0.1%"
    if 99.9 < percent < 100:
        return "> 99.9%"
    return f"{percent:.3g}%"


def count(number: int, noun: str) -> str:
    """1 row, 1,819 rows."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def amount(time: float, unit: str, digits: int = 4) -> str:
    """29.01 s, or time units where no unit is known."""
    return f"{time:.{digits}g} {unit or 'time units'}"


def card(data: "Trajectories") -> str:
    """Four rows of HTML that read in a light and in a dark notebook."""
    channels = [f"{name} [{unit}]" if unit else name for name, unit in zip(data.names, data.units, strict=True)]
    shown = channels if len(channels) <= 12 else [*channels[:11], f"and {len(channels) - 11} more"]
    size = f"{count(data.rows, 'row')} in {count(len(data), 'run')}, {amount(data.duration, data.time_unit)}"
    rows = {
        "recording": size + (" at most" if len(data) > 1 else ""),
        "spacing": f"{_between(data)}, {_gaps(data)}",
        "missing": _missing(data),
        "state": ", ".join(shown),
    }
    style = 'style="text-align:left;padding:0.1em 0.8em 0.1em 0;color:currentColor;background:transparent"'
    cells = "".join(
        f'<tr><th scope="row" {style}>{word}</th><td {style}>{escape(text)}</td></tr>' for word, text in rows.items()
    )
    return f'<table style="border:1px solid currentColor;background:transparent"><tbody>{cells}</tbody></table>'
