"""The best starts of rollouts of a field that is known already: each a small least-squares problem of its own.

The rest of a long recording starts here: kernels, noise and field are those of excerpts, but every piece has a first
state that only its own rows tell. Rollouts are made longer from stage to stage, as in the fit itself.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from sgpd.inference.laplace.constants import START_ITERATIONS
from sgpd.inference.laplace.linear_model import LinearModel, ShootingState


def found_starts(
    model: LinearModel, u: Float[np.ndarray, " p"], observed: Float[np.ndarray, "n d"], lengths: Sequence[int]
) -> ShootingState:
    """With rollouts of so many rows, then of the next, from about where the rows are."""
    rows = observed
    for length in lengths:
        rollouts = model.recording.rollouts(length)
        at, rows = _improved(model, ShootingState(u, rows[rollouts.first], rollouts))
    return at


def _improved(model: LinearModel, at: ShootingState) -> tuple[ShootingState, Float[np.ndarray, "n d"]]:
    """Levenberg-Marquardt for all starts side by side: a step that makes a rollout worse is taken back there."""
    best, damping = _tried(model, at), np.full(len(at.starts), 1e-3)
    for _ in range(START_ITERATIONS):
        trial = _tried(model, at._replace(starts=best.starts + _step(model, at, best, damping)))
        better = trial.cost < best.cost
        along = np.repeat(better, np.diff([*at.rollouts.first, len(best.rows)]))
        chosen = _Tried(better[:, None], better, along[:, None], along[:, None, None])
        best = _Tried(*(np.where(*each) for each in zip(chosen, trial, best, strict=True)))
        damping = np.where(better, damping / 10, damping * 10)
    return at._replace(starts=best.starts), best.rows


class _Tried(NamedTuple):
    """Starts, what each costs, and the rollouts from them."""

    starts: Float[np.ndarray, "s d"]
    cost: Float[np.ndarray, " s"]
    rows: Float[np.ndarray, "n d"]
    by_start: Float[np.ndarray, "n d d"]


def _tried(model: LinearModel, at: ShootingState) -> _Tried:
    rows, by_start = model.rows(at)
    return _Tried(at.starts, _costs(model, at, rows), rows, by_start)


def _costs(model: LinearModel, at: ShootingState, rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " s"]:
    """Squares of residuals, and how far a start is from its prior mean; infinite where that is not a number."""
    recording = model.recording
    error = np.where(recording.observed, (rows - recording.states) / model.noise, 0.0)
    away = (at.starts - recording.center) / recording.start_std
    cost = np.add.reduceat((error**2).sum(axis=1), at.rollouts.first) + (away**2).sum(axis=1)
    return np.where(np.isfinite(cost), cost, np.inf)


def _step(model: LinearModel, at: ShootingState, best: _Tried, damping: Float[np.ndarray, " s"]) -> np.ndarray:
    """(Xᵀ X + prior + damping) v = Xᵀ t, start by start, in units of the noise."""
    recording, first, d = model.recording, at.rollouts.first, len(model.noise)
    seen = recording.observed  # elsewhere a rollout may be anything
    by_v = np.where(seen[:, :, None], best.by_start * model.noise / model.noise[:, None], 0.0)
    target = np.where(seen, (recording.states - best.rows) / model.noise, 0.0)
    matrix = np.add.reduceat(np.einsum("nci,ncj->nij", by_v, by_v), first) + np.diag(model.prior)
    matrix = matrix * (1 + damping[:, None, None] * np.eye(d))
    away = (recording.center - best.starts) / model.noise
    right = np.add.reduceat(np.einsum("nci,nc->ni", by_v, target), first) + model.prior * away
    sound = at.rollouts.free & np.isfinite(right).all(axis=1) & np.isfinite(matrix).all(axis=(1, 2))
    matrix, right = np.where(sound[:, None, None], matrix, np.eye(d)), np.where(sound[:, None], right, 0.0)
    return model.noise * np.linalg.solve(matrix, right[:, :, None])[:, :, 0]
