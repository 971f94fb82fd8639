"""The best field for a recording, by multiple shooting: Levenberg-Marquardt on rollouts that restart now and then.

    minimise  Σ ((x̂ₙ - xₙ(u, s)) / σ)²  +  |u|²     over whitened inducing values u and the states s after restarts

One long rollout has many local optima; many short ones, each from its own latent start, have hardly any. So restarts
come often first and seldom later, each stage from the last one's field. All stages are one compiled program: a rollout
over the whole run in which a mask says where to restart. The starts are eliminated one by one (a Schur complement), so
that only the inducing values are ever solved for together.
"""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float

from sgpd.arrays import Scalar
from sgpd.data import Windows
from sgpd.inference.initial import gaussians
from sgpd.inference.posterior import FieldPosterior
from sgpd.integrators import Integrator

ITERATIONS = 30  # at most, a stage
WEAK_PRIOR = 1e-6  # on starts, in units of the noise
ENOUGH = 1e-3  # a fall of the cost by less than this share ends a stage


class Recording(eqx.Module):
    """Uninterrupted pieces of runs as a rollout sees them, padded to one length: r pieces of n rows."""

    states: Float[Array, "r n d"]
    observed: Bool[Array, "r n d"]
    steps: Float[Array, "r n-1 m"]
    pinned: Bool[Array, " r"]  # pieces whose first state is exact

    @classmethod
    def of(cls, pieces: Windows, pinned: np.ndarray) -> "Recording":
        """From windows so long that each is a whole piece."""
        return cls(*(jnp.asarray(a) for a in (pieces.states, pieces.observed, pieces.steps, pinned)))


class Linearised(NamedTuple):
    """The normal equations at an iterate, with the starts eliminated."""

    cost: Scalar
    matrix: Float[Array, "p p"]  # Gauss-Newton Hessian of u, identity included
    gradient: Float[Array, " p"]
    local_matrix: Float[Array, "r n d d"]  # of each start
    local_gradient: Float[Array, "r n d"]
    coupling: Float[Array, "r n p d"]
    rows: Float[Array, "r n d"]  # the rollout


class Shot(NamedTuple):
    """The best field, what the data say about it, and the states it goes through."""

    posterior: FieldPosterior  # q(u): the optimum, with the Gauss-Newton covariance of each latent
    rows: Float[np.ndarray, "r n d"]
    noise: Float[np.ndarray, " d"]


def shoot(
    posterior: FieldPosterior,
    integrator: Integrator,
    recording: Recording,
    rows: Float[np.ndarray, "r n d"],
    noise: Float[np.ndarray, " d"],
    lengths: Sequence[int],
) -> Shot:
    """Fit with restarts every `lengths[0]` rows, then every `lengths[1]` ..., from a first guess of field and rows."""
    u, _ = ravel_pytree(tuple(q.mean for q in posterior.whitened))
    for length in lengths:
        restart = jnp.broadcast_to(jnp.arange(rows.shape[1]) % length == 0, rows.shape[:2])
        found, u = _descend(posterior, integrator, recording, jnp.asarray(noise), restart, u, jnp.asarray(rows))
        rows, covariance = np.asarray(found.rows), np.linalg.inv(np.asarray(_eliminated(found, 0.0)[0]))
        noise = _noise(recording, rows, noise, int(restart.sum()), len(covariance) - np.trace(covariance))
    values = gaussians(posterior.whitened, np.asarray(u), covariance)
    return Shot(eqx.tree_at(lambda f: f.values, posterior, values), rows, noise)


def _descend(posterior, integrator, recording, noise, restart, u, starts) -> tuple[Linearised, Array]:
    """Levenberg-Marquardt: a step that lowers the cost is taken and trusted more, another is shortened."""
    linearise = lambda u, starts: _linearise(posterior, integrator, recording, noise, restart, u, starts)
    here, damping = linearise(u, starts), 1e-2
    for _ in range(ITERATIONS):
        new_u, new_starts = _improved(here, recording, noise, restart, u, starts, damping)
        there = linearise(new_u, new_starts)
        if not float(there.cost) < float(here.cost):  # also where it is not a number
            damping *= 10
            if damping > 1e8:
                break
            continue
        done = float(here.cost - there.cost) < ENOUGH * float(here.cost)
        here, u, starts, damping = there, new_u, new_starts, damping / 5
        if done:
            break
    return here, u


def _eliminated(at: Linearised, damping: float) -> tuple[Array, Array, Array]:
    """The equations for u once every start has moved to its best place: matrix, gradient, inverse local matrices."""
    d = at.local_matrix.shape[-1]
    local = jnp.linalg.inv(at.local_matrix + (damping + WEAK_PRIOR) * jnp.eye(d)[None, None])
    matrix = at.matrix + damping * jnp.eye(at.matrix.shape[0])
    matrix = matrix - jnp.einsum("rnpi,rnij,rnqj->pq", at.coupling, local, at.coupling)
    gradient = at.gradient - jnp.einsum("rnpi,rnij,rnj->p", at.coupling, local, at.local_gradient)
    return matrix, gradient, local


@eqx.filter_jit
def _improved(at: Linearised, recording: Recording, noise, restart, u, starts, damping):
    matrix, gradient, local = _eliminated(at, damping)
    du = -jnp.linalg.solve(matrix, gradient)
    pull = at.local_gradient + jnp.einsum("rnpi,p->rni", at.coupling, du)
    moves = -jnp.einsum("rnij,rnj->rni", local, pull)  # of each piece, in units of the noise
    piece = jnp.cumsum(restart, axis=1) - 1
    by_row = jnp.take_along_axis(moves, piece[:, :, None], axis=1)
    free = _free(recording, restart)
    return u + du, starts + jnp.where(free[:, :, None], noise[None, None, :] * by_row, 0.0)


def _free(recording: Recording, restart) -> Bool[Array, "r n"]:
    """Restarts at states that are not known."""
    first = (jnp.arange(restart.shape[1]) == 0)[None, :]
    return restart & ~(recording.pinned[:, None] & first)


def _noise(recording: Recording, rows, noise, restarts: int, field_parameters: float) -> np.ndarray:
    """The standard deviation that the misfit shows, with what the starts and the field have absorbed given back."""
    observed = np.asarray(recording.observed)
    square = np.where(observed, rows - np.asarray(recording.states), 0.0) ** 2
    count = observed.sum(axis=(0, 1))
    left = count - restarts - field_parameters / rows.shape[2]
    return np.where(left > count / 10, np.sqrt(square.sum(axis=(0, 1)) / np.maximum(left, 1)), noise)


def _flat_field(posterior: FieldPosterior, u: Float[Array, " p"]):
    _, unravel = ravel_pytree(tuple(q.mean for q in posterior.whitened))
    return posterior.field(unravel(u))


def _rows(field, integrator: Integrator, starts, restart, steps) -> Float[Array, "n d"]:
    """The states of one run: a step from row to row, or a fresh start where the mask says so."""

    def to_next(x, inputs):
        start, again, hs = inputs
        for h in hs:
            x, _ = integrator.advance(field, x, h)
        x = jnp.where(again, start, x)
        return x, x

    _, rows = jax.lax.scan(to_next, starts[0], (starts[1:], restart[1:], steps))
    return jnp.concatenate([starts[:1], rows])


@eqx.filter_jit
def _linearise(
    posterior: FieldPosterior, integrator: Integrator, recording: Recording, noise, restart, u, starts
) -> Linearised:
    d, free = starts.shape[2], _free(recording, restart)

    def residuals(u, shift):
        """Of all rows, where `shift` moves every free start; a row feels the start of its own piece alone."""
        field = _flat_field(posterior, u)
        moved = starts + jnp.where(free[:, :, None], (noise * shift)[None, None, :], 0.0)
        rows = jax.vmap(lambda s, r, h: _rows(field, integrator, s, r, h))(moved, restart, recording.steps)
        error = jnp.where(recording.observed, (rows - recording.states) / noise[None, None, :], 0.0)
        return error, (error, rows)

    (by_u, by_start), (error, rows) = jax.jacfwd(residuals, argnums=(0, 1), has_aux=True)(u, jnp.zeros(d))
    piece = jnp.cumsum(restart, axis=1) - 1

    def gather(values):
        """Sums over the rows of each piece."""
        return jax.vmap(lambda v, index: jax.ops.segment_sum(v, index, num_segments=restart.shape[1]))(values, piece)

    return Linearised(
        cost=jnp.sum(error**2) + jnp.sum(u**2),
        matrix=jnp.einsum("rnkp,rnkq->pq", by_u, by_u) + jnp.eye(u.shape[0]),
        gradient=jnp.einsum("rnkp,rnk->p", by_u, error) + u,
        local_matrix=gather(jnp.einsum("rnki,rnkj->rnij", by_start, by_start)),
        local_gradient=gather(jnp.einsum("rnki,rnk->rni", by_start, error)),
        coupling=gather(jnp.einsum("rnkp,rnki->rnpi", by_u, by_start)),
        rows=rows,
    )
