"""The best field for a recording, by multiple shooting: Levenberg-Marquardt on rollouts that restart now and then.

    minimise  Σ ((x̂ₙ - xₙ(u, s)) / σ)²  +  |u|²  +  Σ ((s - centre) / start_std)²

over whitened inducing values u and the states s after restarts. One long rollout has many local optima; many short
ones, each from its own latent start, have hardly any. So restarts come often first and seldom later, each stage from
the last one's field. All stages are one compiled program: a mask says where to restart.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from sgpd.arrays import on_device
from sgpd.inference.initial import gaussians
from sgpd.inference.laplace.linear_model import LinearModel, ShootingState
from sgpd.inference.laplace.recording import Layout, Recording, Rollouts
from sgpd.inference.posterior.field import FieldPosterior


class ShootingResult(NamedTuple):
    """The best field, what the data say about it, and the states it goes through."""

    posterior: FieldPosterior  # q(u): the optimum, with the Gauss-Newton covariance of each latent
    rows: Float[np.ndarray, "r n d"]
    noise: Float[np.ndarray, " d"]


def multiple_shooting(
    model: LinearModel, layout: Layout, rows: Float[np.ndarray, "r n d"], lengths: Sequence[int]
) -> ShootingResult:
    """Fit with restarts every `lengths[0]` rows, then every `lengths[1]` ..., from a first guess of field and rows."""
    posterior, u, noise = model.posterior, model.posterior.flat_mean, np.asarray(model.noise)
    for length in lengths:
        rollouts = Rollouts.every(length, layout)
        at, found = model.descend(ShootingState(u, on_device(layout.in_blocks(rows)), rollouts))
        u, rows = at.u, layout.in_pieces(found.along.rows)
        covariance = np.linalg.inv(np.asarray(_solved(model, found.equations, at.u).precision))
        absorbed = int(rollouts.begins.sum()) + (len(covariance) - np.trace(covariance)) / rows.shape[2]
        noise = _noise(model.recording, np.asarray(found.along.rows), noise, absorbed)
        model = replace(model, noise=on_device(noise))
    values = gaussians(posterior.whitened, np.asarray(u), covariance)
    return ShootingResult(eqx.tree_at(lambda f: f.values, posterior, values), rows, noise)


_solved = eqx.filter_jit(LinearModel.solve)


def _noise(recording: Recording, rows, noise, absorbed: float) -> np.ndarray:
    """The standard deviation that the misfit shows, with what the starts and the field have absorbed given back."""
    observed = np.asarray(recording.observed)
    square = np.where(observed, rows - np.asarray(recording.states), 0.0) ** 2
    count = observed.sum(axis=(0, 1))
    left = count - absorbed
    return np.where(left > count / 10, np.sqrt(square.sum(axis=(0, 1)) / np.maximum(left, 1)), noise)
