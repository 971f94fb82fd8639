"""Numbers over trials, and how they are printed. A trial without a number is counted, never dropped in silence."""

from collections.abc import Iterable, Sequence
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
    """One quantity over the trials that were run; those without a value have failed, or cannot have one."""

    values: tuple[float, ...]
    run: int
    recordings: tuple[int, ...] = ()  # of the values

    @property
    def mean(self) -> float | None:
        return float(np.mean(np.divide(self.values, self._scale)) * self._scale) if self.values else None

    @property
    def std(self) -> float | None:
        """Over trials, with the divisor n - 1."""
        return _std(self.values, self._scale)

    @property
    def recording_std(self) -> float | None:
        """Of the means of the recordings: what another recording changes."""
        return _std([float(np.mean(group)) for group in self._groups], self._scale)

    @property
    def training_std(self) -> float | None:
        """Of trainings on one recording (the variances of all recordings, averaged): what another training changes."""
        found = [std for group in self._groups if (std := _std(group, self._scale)) is not None]
        return float(np.sqrt(np.mean(np.divide(found, self._scale) ** 2)) * self._scale) if found else None

    @property
    def _groups(self) -> list[list[float]]:
        """The values of each recording."""
        groups: dict[int, list[float]] = {}
        for recording, value in zip(self.recordings, self.values, strict=True):
            groups.setdefault(recording, []).append(value)
        return list(groups.values())

    def quantile(self, share: float) -> float:
        """So much of the values lies below."""
        return float(np.quantile(self.values, share))

    @property
    def _scale(self) -> float:
        """So that no square overflows, however far a method went astray."""
        return float(np.max(np.abs(self.values), initial=0.0)) or 1.0

    @property
    def worst(self) -> float | None:
        return max(self.values, default=None)

    @property
    def failed(self) -> int:
        return self.run - len(self.values)

    def __str__(self) -> str:
        return mean_and_std(self.mean, self.std)

    def trials(self, wanted: int) -> str:
        """`3 of 5 trials; 2 failed`."""
        if not self.run:
            return ABSENT
        open_trials = wanted - self.run
        parts = [f"{len(self.values)} of {max(wanted, self.run)} trials"]
        parts += [f"{self.failed} failed"] if self.failed else []
        parts += [f"{open_trials} not run"] if open_trials > 0 else []
        return "; ".join(parts)

    def range(self, digits: int = 3) -> str:
        """`12 (10 to 15)`: mean, smallest, largest."""
        if not self.values:
            return ABSENT
        low, high = number(min(self.values), digits), number(max(self.values), digits)
        return f"{number(self.mean, digits)} ({low} to {high})"


def _std(values: Sequence[float], scale: float) -> float | None:
    return float(np.std(np.divide(values, scale), ddof=1) * scale) if len(values) > 1 else None


def summary(values: Iterable[float | None], recordings: Iterable[int] | None = None) -> Summary:
    """Summarise values of which some may be missing."""
    every = list(values)
    of = list(range(len(every)) if recordings is None else recordings)
    pairs = [(float(value), recording) for value, recording in zip(every, of, strict=True) if value is not None]
    return Summary(tuple(value for value, _ in pairs), len(every), tuple(recording for _, recording in pairs))


def over_trials(results: list[Result], key: str) -> Summary:
    """Summarise one column of some rows."""
    return summary((result.row.get(key) for result in results), (result.row["recording"] for result in results))
