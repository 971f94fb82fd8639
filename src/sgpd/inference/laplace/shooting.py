"""The best field for a recording, by multiple shooting: Levenberg-Marquardt on rollouts that restart now and then.

    minimise  Σ ((x̂ₙ - xₙ(u, s)) / σ)²  +  |u|²  +  Σ ((s - centre) / start_std)²

over whitened inducing values u and the states s after restarts. One long rollout has many local optima; many short
ones, each from its own latent start, have hardly any. So restarts come often first and seldom later, each stage from
the last one's field.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from sgpd.inference.initial import gaussians
from sgpd.inference.laplace.descent import descend
from sgpd.inference.laplace.linear_model import LinearModel, ShootingState
from sgpd.inference.laplace.recording import Recording
from sgpd.inference.posterior.field import FieldPosterior


class ShootingResult(NamedTuple):
    """The best field, what the data say about it, and the states it goes through."""

    posterior: FieldPosterior  # q(u): the optimum, with the Gauss-Newton covariance of each latent
    rows: Float[np.ndarray, "r n d"]
    noise: Float[np.ndarray, " d"]


def multiple_shooting(
    posterior: FieldPosterior, model: LinearModel, rows: Float[np.ndarray, "r n d"], lengths: Sequence[int]
) -> ShootingResult:
    """Fit with restarts every `lengths[0]` rows, then every `lengths[1]` ..., from a first guess of field and rows."""
    u, recording = np.asarray(posterior.flat_mean), model.recording
    line = recording.in_line(rows)
    for length in lengths:
        rollouts = recording.rollouts(length)
        at, found, _ = descend(model, ShootingState(u, line[rollouts.first], rollouts))
        u, line = at.u, found.along.rows
        covariance = np.linalg.inv(found.equations.solve(u).precision)
        absorbed = len(rollouts.first) + (len(covariance) - np.trace(covariance)) / line.shape[1]
        model = replace(model, noise=_noise(recording, line, model.noise, absorbed))
    diagonal = posterior.whitened[0].plain().diagonal
    values = gaussians([g.unknowns for g in posterior.groups], u, covariance, diagonal)
    return ShootingResult(eqx.tree_at(lambda f: f.values, posterior, values), recording.in_pieces(line), model.noise)


def _noise(recording: Recording, rows, noise, absorbed: float) -> np.ndarray:
    """The standard deviation that the misfit shows, with what the starts and the field have absorbed given back."""
    square = np.where(recording.observed, rows - recording.states, 0.0) ** 2
    count = recording.observed.sum(axis=0)
    left = count - absorbed
    return np.where(left > count / 10, np.sqrt(square.sum(axis=0) / np.maximum(left, 1)), noise)
