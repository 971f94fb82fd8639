"""What a fit finds out about itself, as named numbers."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class FitFacts:
    """Of the default engine."""

    log_evidence: float
    parameters: int
    effective_parameters: float
    converged: bool  # kernels and noise
    steps_converged: float  # share of the best rollout's steps; explicit ones always do
    worst_residual: float  # of any stage of them
    autocorrelation_times: tuple[float, ...]  # of residuals, in rows, by channel; 1 where they are white
    draws: str  # how they are made: "gaussian", "weighed", "randomised", "unsearched" or "failed"
    drawn: int  # from the Gaussian, to judge it
    importance_sample_size: float  # effective, of those
    stored_draws: int
    failed_draws: int
    features: tuple[int, ...]  # random ones of a draw, for each group of latents
    features_dropped: bool  # no draw with as many as asked for fitted the recording
    inducing: tuple[int, ...] = ()  # points of a latent, for each group
    inducing_first: tuple[int, ...] = ()  # at first; more where these were too few
    determined: tuple[float, ...] = ()  # share of the values there that the recording determines, for each group
    growth: str = ""  # why no more: "enough", "most", "work", "worse"; nothing if the first ones were enough


@dataclass(frozen=True)
class Selection:
    """Which epoch of a training was selected, its rollout error, and the random numbers of the draws behind that."""

    epoch: int
    rollout_error: float
    key: tuple[int, ...]


@dataclass(frozen=True)
class Round:
    """One round of the default engine's tuning; how its steps went is known of the last one."""

    restart: int  # rows between restarts
    round: int
    objective: float  # log evidence and log prior
    steps_converged: float | None = None
    worst_residual: float | None = None


@dataclass(frozen=True)
class Epoch:
    """One epoch of the variational engine: means over its steps. During a training, an array with one number a seed."""

    epoch: int
    objective: Any
    expected_log_density: Any
    kl: Any
    worst_residual: Any
    steps_converged: Any

    def of_seed(self, index: int) -> "Epoch":
        """That of one seed."""
        numbers = {name: float(v[index]) for name, v in asdict(self).items() if name != "epoch"}
        return Epoch(self.epoch, **numbers)


History = tuple[Round | Epoch, ...]


def history_of(lines: list[dict]) -> History:
    """From plain data, of this version or of one before."""
    named = [{"steps_converged" if name == "converged" else name: v for name, v in line.items()} for line in lines]
    return tuple(Epoch(**line) if "epoch" in line else Round(**line) for line in named)


def plain(history: History) -> list[dict]:
    """As plain data; what is not known is left out."""
    return [{name: np.asarray(v).tolist() for name, v in asdict(line).items() if v is not None} for line in history]
