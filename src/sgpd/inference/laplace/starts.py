"""The best starts of rollouts of a field that is known already: each a small least-squares problem of its own.

The rest of a long recording starts here: kernels, noise and field are those of excerpts, but every piece has a first
state that only its own rows tell. Rollouts are made longer from stage to stage, as in the fit itself.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from sgpd.inference.laplace.constants import START_ITERATIONS
from sgpd.inference.laplace.linear_model import LinearModel, ShootingState


def found_starts(
    model: LinearModel, u: Float[np.ndarray, " p"], smoothed: Float[np.ndarray, "n d"], lengths: Sequence[int]
) -> ShootingState:
    """With rollouts of so many rows, then of the next, from where splines see the rows."""
    rows = smoothed
    for length in lengths:
        rollouts = model.recording.rollouts(length)
        at, rows = _improved(model, ShootingState(u, rows[rollouts.first], rollouts))
    return at


def _improved(model: LinearModel, at: ShootingState) -> tuple[ShootingState, Float[np.ndarray, "n d"]]:
    """Levenberg-Marquardt for all starts side by side: a step that makes a rollout worse is taken back there."""
    best, damping, candidate = None, np.full(len(at.starts), 1e-3), at
    for _ in range(START_ITERATIONS):
        rows, by_start = model.rows(candidate)
        cost = _costs(model, candidate, rows)
        if best is None:
            best = [candidate.starts, cost, rows, by_start]
        else:
            better = cost < best[1]
            along = np.repeat(better, np.diff([*at.rollouts.first, len(rows)]))
            chosen = (better[:, None], better, along[:, None], along[:, None, None])
            new = (candidate.starts, cost, rows, by_start)
            best = [np.where(where, one, other) for where, one, other in zip(chosen, new, best, strict=True)]
            damping = np.where(better, damping / 10, damping * 10)
        starts, _, rows, by_start = best
        step = _step(model, at._replace(starts=starts), rows, by_start, damping)
        candidate = at._replace(starts=starts + step)
    return at._replace(starts=best[0]), best[2]


def _costs(model: LinearModel, at: ShootingState, rows: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " s"]:
    """Squares of residuals, and how far a start is from its prior mean; infinite where that is not a number."""
    recording = model.recording
    error = np.where(recording.observed, (rows - recording.states) / model.noise, 0.0)
    away = (at.starts - recording.center) / recording.start_std
    cost = np.add.reduceat((error**2).sum(axis=1), at.rollouts.first) + (away**2).sum(axis=1)
    return np.where(np.isfinite(cost), cost, np.inf)


def _step(model: LinearModel, at: ShootingState, rows, by_start, damping: Float[np.ndarray, " s"]):
    """(Xᵀ X + prior + damping) v = Xᵀ t, start by start, in units of the noise."""
    recording, first, d = model.recording, at.rollouts.first, len(model.noise)
    weight = recording.observed / model.noise
    by_v = weight[:, :, None] * by_start * model.noise
    target = weight * (recording.states - rows)
    matrix = np.add.reduceat(np.einsum("nci,ncj->nij", by_v, by_v), first) + np.diag(model.prior)
    matrix = matrix * (1 + damping[:, None, None] * np.eye(d))
    away = (recording.center - at.starts) / model.noise
    right = np.add.reduceat(np.einsum("nci,nc->ni", by_v, target), first) + model.prior * away
    step = np.where(np.isfinite(right).all(axis=1)[:, None], right, 0.0)
    matrix = np.where(np.isfinite(matrix).all(axis=(1, 2))[:, None, None], matrix, np.eye(d))
    return np.where(at.rollouts.free[:, None], model.noise * np.linalg.solve(matrix, step[:, :, None])[:, :, 0], 0.0)
