"""Rows of the table of ratios."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from timing import Timing, clocked

HEADER = ("measured", "sgpd", "peer", "peer / sgpd", "asked for", "")


class Sizes(NamedTuple):
    """How much is measured; by default what docs/performance.md shows."""

    repeats: int = 7
    paths: tuple[int, ...] = (1, 64, 1024)  # rolled out together, beside PyTorch and alone
    steps: int = 100  # of a rollout
    recordings: int = 3  # that are learned from


class Row(NamedTuple):
    """One pair, measured in turns in one process; without a peer, sgpd alone."""

    what: str
    ours: Timing
    theirs: Timing | None = None
    limit: float | None = None  # the ratio that is asked for
    remark: str = ""
    paired: bool = True  # whether the two were measured in the same turns

    @property
    def ratio(self) -> Timing | None:
        """How many times longer the peer takes."""
        if self.theirs is None:
            return None
        if self.paired:
            return self.theirs.over(self.ours)
        ours, theirs = self.ours, self.theirs
        return Timing(theirs.median / ours.median, theirs.low / ours.high, theirs.high / ours.low)

    @property
    def cells(self) -> list[str]:
        """The row as the table shows it."""
        ratio = self.ratio
        asked = "" if self.limit is None else f"≥ {self.limit:g}"
        if ratio is not None and self.limit is not None and ratio.median < self.limit:
            asked += ", **not reached**"
        theirs = "" if self.theirs is None else seconds(self.theirs)
        quotient = "" if ratio is None else f"{ratio.median:.3g} ({ratio.low:.3g} to {ratio.high:.3g})"
        return [self.what, seconds(self.ours), theirs, quotient, asked, self.remark]

    def to_dict(self) -> dict:
        """The row as JSON keeps it."""
        ratio = self.ratio
        return {
            "what": self.what,
            "ours": self.ours._asdict(),
            "theirs": None if self.theirs is None else self.theirs._asdict(),
            "ratio": None if ratio is None else ratio._asdict(),
            "limit": self.limit,
            "remark": self.remark,
        }


def seconds(timing: Timing) -> str:
    """Median and quartiles in a readable unit."""
    unit, size = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3)) if timing.median >= s), ("µs", 1e-6))
    return f"{timing.median / size:.3g} {unit} ({timing.low / size:.3g} to {timing.high / size:.3g})"


def markdown(rows: Sequence[Row]) -> str:
    """All rows; times and ratios are medians with quartiles."""
    lines = [list(HEADER), ["---"] * len(HEADER), *(row.cells for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def choose_threads(job: Callable[[], object], most: int) -> int:
    """Let PyTorch use as many threads as make this job fastest: 1, or all cores. (sgpd uses one.)"""
    taken = {}
    for count in (1, most):
        torch.set_num_threads(count)
        job()
        taken[count] = clocked(job)
    fastest = min(taken, key=lambda count: taken[count])
    torch.set_num_threads(fastest)
    return fastest
