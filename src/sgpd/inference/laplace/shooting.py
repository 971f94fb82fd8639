"""The best field for a recording, by multiple shooting: Levenberg-Marquardt on rollouts that restart now and then.

    minimise  Σ ((x̂ₙ - xₙ(u, s)) / σ)²  +  |u|²  +  Σ ((s - centre) / start_std)²

over whitened inducing values u and the states s after restarts. One long rollout has many local optima; many short
ones, each from its own latent start, have hardly any. So restarts come often first and seldom later, each stage from
the last one's field. All stages are one compiled program: a mask says where to restart.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import Scalar, on_device
from sgpd.inference.initial import gaussians
from sgpd.inference.laplace.constants import ENOUGH, ITERATIONS
from sgpd.inference.laplace.linear_model import (
    Recording,
    Regression,
    ShootingState,
    Solution,
    Tangent,
    cost,
    moved,
    regression,
    solve,
    tangent,
)
from sgpd.inference.posterior.field import FieldPosterior
from sgpd.integrators import Integrator


class Linearised(NamedTuple):
    """The model seen from one iterate."""

    along: Tangent
    equations: Regression
    cost: Scalar


class ShootingResult(NamedTuple):
    """The best field, what the data say about it, and the states it goes through."""

    posterior: FieldPosterior  # q(u): the optimum, with the Gauss-Newton covariance of each latent
    rows: Float[np.ndarray, "r n d"]
    noise: Float[np.ndarray, " d"]


def multiple_shooting(
    posterior: FieldPosterior,
    integrator: Integrator,
    recording: Recording,
    rows: Float[np.ndarray, "r n d"],
    noise: Float[np.ndarray, " d"],
    lengths: Sequence[int],
) -> ShootingResult:
    """Fit with restarts every `lengths[0]` rows, then every `lengths[1]` ..., from a first guess of field and rows."""
    u = posterior.flat_mean
    for length in lengths:
        restart = jnp.broadcast_to(jnp.arange(rows.shape[1]) % length == 0, rows.shape[:2])
        at = ShootingState(u, on_device(rows), restart)
        at, found = descend(posterior, integrator, recording, on_device(noise), at)
        u, rows = at.u, np.asarray(found.along.rows)
        covariance = np.linalg.inv(
            np.asarray(improved(recording, at, found.equations, on_device(noise), jnp.array(0.0))[1].precision)
        )
        noise = _noise(recording, rows, noise, int(restart.sum()), len(covariance) - np.trace(covariance))
    values = gaussians(posterior.whitened, np.asarray(u), covariance)
    return ShootingResult(eqx.tree_at(lambda f: f.values, posterior, values), rows, noise)


def descend(
    posterior: FieldPosterior,
    integrator: Integrator,
    recording: Recording,
    noise: Float[Array, " d"],
    at: ShootingState,
    enough: float = ENOUGH,
    damping: float = 1e-2,
) -> tuple[ShootingState, Linearised]:
    """Levenberg-Marquardt: a step that lowers the cost is taken and trusted more, another is shortened."""
    here = linearise(posterior, integrator, recording, at, noise)
    for _ in range(ITERATIONS):
        new, _ = improved(recording, at, here.equations, noise, on_device(damping))
        there = linearise(posterior, integrator, recording, new, noise)
        if not float(there.cost) < float(here.cost):  # also where it is not a number
            damping *= 10
            if damping > 1e8:
                break
            continue
        done = float(here.cost - there.cost) < enough * float(here.cost)
        here, at, damping = there, new, damping / 5
        if done:
            break
    return at, here


@eqx.filter_jit
def linearise(
    posterior: FieldPosterior,
    integrator: Integrator,
    recording: Recording,
    at: ShootingState,
    noise: Float[Array, " d"],
) -> Linearised:
    """The linear model around an iterate, and what the iterate costs."""
    along, j = tangent(posterior, integrator, recording, at)
    return Linearised(along, regression(recording, at, along, j, noise), cost(recording, at, along.rows, noise))


@eqx.filter_jit
def improved(
    recording: Recording, at: ShootingState, equations: Regression, noise: Float[Array, " d"], damping: Scalar
) -> tuple[ShootingState, Solution]:
    """The next iterate."""
    solution = solve(equations, (noise / recording.start_std) ** 2, at.u, damping)
    return moved(recording, at, solution, noise), solution


def _noise(recording: Recording, rows, noise, restarts: int, field_parameters: float) -> np.ndarray:
    """The standard deviation that the misfit shows, with what the starts and the field have absorbed given back."""
    observed = np.asarray(recording.observed)
    square = np.where(observed, rows - np.asarray(recording.states), 0.0) ** 2
    count = observed.sum(axis=(0, 1))
    left = count - restarts - field_parameters / rows.shape[2]
    return np.where(left > count / 10, np.sqrt(square.sum(axis=(0, 1)) / np.maximum(left, 1)), noise)
