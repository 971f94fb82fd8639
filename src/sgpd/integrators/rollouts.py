"""Many steps in a row: a scan that keeps every k-th state, in memory that does not grow with the rest."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from sgpd.arrays import KEPT, State
from sgpd.errors import BadInput
from sgpd.fields import Field
from sgpd.integrators.methods import Integrator


class Rollout(NamedTuple):
    """States after 0, k, 2k, ... steps, and how the steps between them went."""

    states: Float[Array, "n_plus_1 d"]
    converged: Bool[Array, " n"]  # all steps since the state before
    residual: Float[Array, " n"]  # the worst of them


def rollout(
    integrator: Integrator, field: Field, x0: State, steps: Float[Array, " n_times_k"], save_every: int = 1
) -> Rollout:
    """Step a field from x0 with the step lengths `steps`, saving every `save_every`-th state.

    A step of length 0 stays where it is, so that schedules of different length can be padded to one.
    """
    if save_every < 1 or steps.shape[0] % save_every:
        raise BadInput(
            f"{steps.shape[0]} steps cannot be saved every {save_every}: some would be lost",
            "make the number of steps a multiple",
        )
    count = steps.shape[0] // save_every

    # The backward pass computes a step again from the state before it (and, if implicit, from its converged stages)
    # instead of keeping every sine and cosine of the forward pass.
    policy = jax.checkpoint_policies.save_only_these_names(KEPT)

    @partial(jax.checkpoint, policy=policy, prevent_cse=False)
    def one_step(so_far, h):
        x, converged, residual = so_far
        x, info = integrator.advance(field, x, h)
        return (x, converged & info.converged, jnp.maximum(residual, info.residual)), None

    def until_next_save(x, hs):
        since = (x, jnp.array(True), jnp.array(0.0))
        since, _ = one_step(since, hs[0]) if save_every == 1 else jax.lax.scan(one_step, since, hs)
        return since[0], since

    _, (states, converged, residual) = jax.lax.scan(until_next_save, x0, steps.reshape(count, save_every))
    return Rollout(jnp.concatenate([x0[None, :], states]), converged, residual)
