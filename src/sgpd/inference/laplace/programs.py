"""What is compiled of a fit: rollouts of one chunk of a recording, and how they move with the field.

Along a rollout, with whitened unknowns u of the field's latents and the start s,

    Jₙ = ∂xₙ/∂u = Aₙ Jₙ₋₁ + Bₙ      Bₙ = Σᵢ Cₙᵢ Rₙᵢ Ψ(yₙᵢ)      Sₙ = ∂xₙ/∂s = Aₙ Sₙ₋₁

A is the derivative of a step by the state and C by the field at the points y where the step looks (an integrator's
`respond`), R the derivative of the field by what it reads of its latents there, and Ψ that of readings by u. A, C and R
are those of the rollout; only Ψ changes with kernels. Ψ = Φ L⁻ᵀ for the bumps Φ of an inducing point each: L⁻ᵀ is left
to `linear_model.py`, because J goes through a recurrence that is linear from the left.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from sgpd.arrays import Numbers
from sgpd.inference.chunks import Chunk
from sgpd.inference.laplace.constants import BLOCK
from sgpd.inference.posterior.field import Features, FieldPosterior
from sgpd.inference.posterior.kernels import Kernels
from sgpd.integrators import Integrator
from sgpd.xla.loops import walk


class Tangent(NamedTuple):
    """A rollout through a chunk, and its derivatives step by step."""

    rows: Float[Array, "k d"]
    by_row: Float[Array, "k d d"]  # A; 0 where a rollout begins
    points: Float[Array, "k s d"]  # y
    by_readings: Float[Array, "k s d rho"]  # C R; 0 where a rollout begins
    by_start: Float[Array, "k d d"]  # S; 0 where the start is exact
    converged: Bool[Array, " k"]  # the stage equations of an implicit step
    residual: Float[Array, " k"]  # of the worst of them


@partial(jax.jit, static_argnames="integrator")
def tangent(
    kernels: Kernels,
    integrator: Integrator,
    u: Float[Array, " p"],
    features: Features | None,
    before: tuple[Float[Array, " d"], Float[Array, "d d"]],
    chunk: Chunk,
) -> tuple[tuple[Float[Array, " d"], Float[Array, "d d"]], Tangent]:
    """The rollout of u, with random features if there are any; and x and S at its end."""
    posterior = kernels.posterior
    paths = posterior.paths(posterior.unravel(u), features)
    field, d = posterior.assembled(paths), chunk.starts.shape[-1]

    def one(carry, entry):
        (x, since), (start, begins, free, h) = carry, entry
        step = integrator.respond(field, x, h)
        by_readings = jax.vmap(lambda y: _by_readings(posterior, paths, y))(step.points)
        by_readings = jnp.einsum("scd,sdr->scr", step.by_field, by_readings)
        by_row, by_readings = (jnp.where(begins, 0.0, each) for each in (step.by_state, by_readings))
        x, points = jnp.where(begins, start, step.x), jnp.where(begins, 0.0, step.points)
        since = jnp.where(begins, jnp.where(free, jnp.eye(d), 0.0), by_row @ since)
        converged, residual = begins | step.info.converged, jnp.where(begins, 0.0, step.info.residual)
        return (x, since), Tangent(x, by_row, points, by_readings, since, converged, residual)

    return walk(one, before, (chunk.starts, chunk.begins, chunk.free, chunk.steps), chunk.used)


def _by_readings(posterior: FieldPosterior, paths, y: Float[Array, " d"]) -> Float[Array, "d rho"]:
    """R = ∂makes/∂r at the readings of these latents at y."""
    return jax.jacfwd(lambda r: posterior.makes(y, r))(posterior.readings(paths, y))


def _by_bumps(posterior: FieldPosterior, along: Tangent) -> Float[Array, "k d p"]:
    """B of a few entries, by the height of each bump."""
    k, s, d = along.points.shape
    blocks = []
    for by_r, basis in zip(
        posterior.by_latents(along.by_readings), posterior.basis(along.points.reshape(-1, d)), strict=True
    ):
        count, _, q, m = basis.shape
        # C R Φ, latent by latent, all points of an entry at once
        by_r = by_r.transpose(0, 3, 2, 1, 4).reshape(k, count, d, s * q)
        basis = basis.reshape(count, k, s * q, m)
        blocks.append(jnp.einsum("kcdr,ckrm->kdcm", by_r, basis).reshape(k, d, -1))
    return jnp.concatenate(blocks, axis=2)


def _in_blocks(tree, trips: int):
    return jax.tree.map(lambda leaf: leaf.reshape(trips, BLOCK, *leaf.shape[1:]), tree)


def _blocks_of(along: Tangent, used: Array) -> tuple[Tangent, Array]:
    return _in_blocks(along, along.rows.shape[0] // BLOCK), -(-used // BLOCK)


@jax.jit
def by_bumps(
    kernels: Kernels, before: Float[Array, "d p"], along: Tangent, used: Array
) -> tuple[Float[Array, "d p"], Float[Array, "k d p"]]:
    """J by the heights of bumps and coefficients of trends; and the last one."""
    posterior = kernels.posterior
    blocks, trips = _blocks_of(along, used)

    def block(j, along: Tangent):
        def one(j, entry):
            by_row, added = entry
            # Anew where a rollout begins, whatever became of the one before.
            j = jnp.where(jnp.all(by_row == 0), added, by_row @ j + added)
            return j, j

        return jax.lax.scan(one, j, (along.by_row, _by_bumps(posterior, along)))

    last, j = walk(block, before, blocks, trips)
    return last, j.reshape(-1, *j.shape[2:])


class ByJ(NamedTuple):
    """The gradient of something by J of a chunk, and by all L⁻¹."""

    j: Float[Numbers, "k d p"]
    whitenings: tuple[Float[Numbers, "_ _ _"], ...]


@jax.jit
def pulled_back(
    kernels: Kernels, after: Float[Array, "d p"], by: ByJ, along: Tangent, used: Array
) -> tuple[Float[Array, "d p"], list[Array]]:
    """The same by the logarithms of kernels and trends; and by J of the entry before, through the recurrence."""
    blocks, trips = _blocks_of(along, used)
    unwhitened = kernels.original
    under = lambda logs: unwhitened.with_logarithms(logs)

    def block(carry, entries):
        (after, total), (along, by_j) = carry, entries

        def one(after, entry):
            by_row, by_j = entry
            by_this = by_j + after  # Jₙ₊₁ = Aₙ₊₁ Jₙ + ...: what comes after asks through Aₙ₊₁
            return by_row.T @ by_this, by_this

        after, by_added = jax.lax.scan(one, after, (along.by_row, by_j), reverse=True)
        _, pull = jax.vjp(lambda logs: _by_bumps(under(logs), along), kernels.logarithms)
        return (after, jax.tree.map(jnp.add, total, pull(by_added)[0])), None

    _, pull = jax.vjp(lambda logs: tuple(g.whitening for g in under(logs).groups), kernels.logarithms)
    start = (after, pull(by.whitenings)[0])
    (before, total), _ = walk(block, start, (blocks, _in_blocks(by.j, by.j.shape[0] // BLOCK)), trips, back=True)
    return before, total
