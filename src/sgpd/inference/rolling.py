"""Rollouts of drawn fields, of any length by one program: chunk after chunk."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sgpd.arrays import Numbers
from sgpd.fields import Field
from sgpd.inference.chunks import Chunk, Rollouts, chunks
from sgpd.inference.posterior.field import Features
from sgpd.inference.posterior.joint import Drawn
from sgpd.inference.posterior.kernels import Kernels
from sgpd.integrators import Integrator
from sgpd.xla.loops import walk


class Rolled(NamedTuple):
    """Rollouts of drawn fields through a chunk."""

    rows: Float[Numbers, "*draws k d"]
    converged: Bool[Numbers, "*draws"]
    residual: Float[Numbers, "*draws"]


@partial(jax.jit, static_argnames="integrator")
def roll(
    kernels: Kernels,
    integrator: Integrator,
    u: Float[Array, "draws p"],
    features: Features,
    before: Float[Array, "draws d"],
    chunk: Chunk,
) -> tuple[Float[Array, "draws d"], Rolled]:
    """The rollouts of drawn fields, which share frequencies; and where they end."""
    posterior = kernels.posterior

    def one_draw(u, weights, x, starts):
        field = posterior.field(posterior.unravel(u), Features(features.frequencies, weights))
        (x, converged, residual), rows = _rolled(integrator, field, x, chunk._replace(starts=starts))
        return x, Rolled(rows, converged, residual)

    return jax.vmap(one_draw)(u, features.weights, before, chunk.starts)


def _rolled(integrator: Integrator, field: Field, x: Float[Array, " d"], chunk: Chunk):
    def one(carry, entry):
        (x, converged, residual), (start, begins, h) = carry, entry
        stepped, info = integrator.advance(field, x, h)
        idle = begins | (h == 0)
        x = jnp.where(begins, start, stepped)
        return (x, converged & (idle | info.converged), jnp.maximum(residual, jnp.where(idle, 0.0, info.residual))), x

    return walk(one, (x, jnp.array(True), jnp.zeros(())), (chunk.starts, chunk.begins, chunk.steps), chunk.used)


def rolled(
    kernels: Kernels, integrator: Integrator, drawn: Drawn, steps: Float[np.ndarray, " n"], rollouts: Rollouts
) -> Iterator[tuple[slice, Rolled]]:
    """The rollouts of draws of a field, chunk by chunk; `drawn` has a start for each of them."""
    (u, starts), features = drawn
    x = np.zeros((len(u), starts.shape[-1]))
    for entries, chunk in chunks(steps, rollouts, np.asarray(starts)):
        x, found = roll(kernels, integrator, u, features, x, chunk)
        rows, *rest = map(np.asarray, found)
        yield entries, Rolled(rows[:, : entries.stop - entries.start], *rest)
