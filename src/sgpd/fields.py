"""The seam between what is learned and how it is stepped: a field is a map from a state to its time derivative.

Any callable `State -> State` is a field. Integrators ask for nothing more, except the explicit symplectic ones: they
step momenta and positions in turn and need the two halves apart, as a `SplitField`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.arrays import Scalar, State, on_device
from sgpd.errors import BadInput

Field = Callable[[State], State]


class SplitField(eqx.Module):
    """A field with p' = dp(q) and q' = dq(p), such as any separable Hamiltonian system.

    Callable on a whole state x = (p, q) too, so that every method can step it.
    """

    dp: Callable[[Float[Array, " n"]], Float[Array, " n"]]
    dq: Callable[[Float[Array, " n"]], Float[Array, " n"]]
    energy: Callable[[State], Scalar] | None = None

    def __call__(self, x: State) -> State:
        p, q = halves(x)
        return jnp.concatenate([self.dp(q), self.dq(p)])


@dataclass(frozen=True, eq=False)
class Traits:
    """What is true of every field of a family, by construction."""

    hamiltonian: bool = False  # f = J⁻¹ ∇H
    split: bool = False  # f = (dp(q), dq(p)), a SplitField
    invariant: np.ndarray | None = None  # Q with xᵀ Q f(x) = 0, so that xᵀ Q x is constant


def taken(stack: Field, index: int | slice | np.ndarray) -> Field:
    """Some of the fields that are stacked along a leading axis, by NumPy: nothing to compile."""
    return jax.tree.map(lambda leaf: on_device(np.asarray(leaf)[index]) if eqx.is_array(leaf) else leaf, stack)


def halves(x: State) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """The momenta p and positions q of a state x = (p, q)."""
    n, odd = divmod(x.shape[0], 2)
    if odd:
        raise BadInput(
            f"A Hamiltonian state is (p, q), as many momenta as positions, but this one has {x.shape[0]} coordinates",
            "give every position its momentum, or use the structure 'free'",
        )
    return x[:n], x[n:]


def linearise(field: Field, x: State) -> tuple[State, Float[Array, "d d"]]:
    """The field at x and its Jacobian there, from one evaluation of whatever the two have in common."""
    value, pushforward = jax.linearize(field, x)
    return value, jax.vmap(pushforward)(jnp.eye(x.shape[0])).T
