"""Loops with a number of trips that is known only when a program runs, so that one program serves every length."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Int

from sgpd.arrays import Numbers

Carry = TypeVar("Carry")


def walk(
    one: Callable[[Carry, Any], tuple[Carry, Any]],
    carry: Carry,
    entries: Any,
    used: Int[Numbers, ""],
    back: bool = False,
) -> tuple[Carry, Any]:
    """`jax.lax.scan` over the first `used` entries, or over them from the last to the first; 0 where it does not come.

    There is no reverse mode.
    """
    one, entry = jax.jit(one), lambda i: jax.tree.map(lambda leaf: leaf[i], entries)  # traced once, though asked twice
    given = jax.eval_shape(lambda: one(carry, entry(0))[1])
    room = jax.tree.leaves(entries)[0].shape[0]
    kept = jax.tree.map(lambda leaf: jnp.zeros((room, *leaf.shape), leaf.dtype), given)

    def step(index, state):
        carry, kept = state
        i = used - 1 - index if back else index
        carry, given = one(carry, entry(i))
        return carry, jax.tree.map(lambda of_all, of_one: of_all.at[i].set(of_one), kept, given)

    return jax.lax.fori_loop(0, used, step, (carry, kept))
