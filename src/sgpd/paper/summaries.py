"""Numbers over seeds, and how they are printed. A seed without a number is counted, never dropped in silence."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sgpd.paper.results import Result

ABSENT = "-"


def number(value: float | None, digits: int = 3) -> str:
    """A number in a few significant digits; what is not there is a dash."""
    return ABSENT if value is None else f"{value:.{digits}g}"


def mean_and_std(mean: float | None, std: float | None) -> str:
    """`0.421 (0.1)`, the paper's way."""
    return ABSENT if mean is None else f"{number(mean)} ({number(std, 2)})"


@dataclass(frozen=True)
class Summary:
    """One quantity over the seeds that were run; those without a value have failed, or cannot have one."""

    values: tuple[float, ...]
    run: int

    @property
    def mean(self) -> float | None:
        return float(np.mean(np.divide(self.values, self._scale)) * self._scale) if self.values else None

    @property
    def std(self) -> float | None:
        """Over seeds, with the divisor n - 1."""
        return (
            float(np.std(np.divide(self.values, self._scale), ddof=1) * self._scale) if len(self.values) > 1 else None
        )

    @property
    def _scale(self) -> float:
        """So that no square overflows, however far a method went astray."""
        return float(np.max(np.abs(self.values))) or 1.0

    @property
    def worst(self) -> float | None:
        return max(self.values, default=None)

    @property
    def failed(self) -> int:
        return self.run - len(self.values)

    def __str__(self) -> str:
        return mean_and_std(self.mean, self.std)

    def seeds(self, wanted: int) -> str:
        """`3 of 5 seeds; 2 failed`."""
        if not self.run:
            return ABSENT
        open_seeds = wanted - self.run
        parts = [f"{len(self.values)} of {max(wanted, self.run)} seeds"]
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{open_seeds} not run"] if open_seeds > 0 else []
        return "; ".join(parts)

    def range(self, digits: int = 3) -> str:
        """`12 (10 to 15)`: mean, smallest, largest."""
        if not self.values:
            return ABSENT
        low, high = number(min(self.values), digits), number(max(self.values), digits)
        return f"{number(self.mean, digits)} ({low} to {high})"


def summary(values: Iterable[float | None]) -> Summary:
    """Summarise values of which some may be missing."""
    every = list(values)
    return Summary(tuple(float(value) for value in every if value is not None), len(every))


def over_seeds(results: list[Result], key: str) -> Summary:
    """Summarise one column of some rows."""
    return summary(result.row.get(key) for result in results)
