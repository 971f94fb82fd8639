"""Structure, measured on any field: nothing here knows where the field came from."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sgpd.arrays import Scalar, State
from sgpd.fields import Field
from sgpd.integrators import Integrator, rollout

SAMPLES = 64  # states of a rollout at which the step's Jacobian is taken


class Measurements(NamedTuple):
    """What was found along one rollout. What does not apply to the field is nan; without an energy there is None."""

    determinant: Scalar  # largest |det ψ' - 1|
    symplectic: Scalar  # largest entry of |ψ'ᵀ J ψ' - J|
    invariant: Scalar  # largest change of xᵀQx, relative to |x|²
    energy_wander: Scalar | None  # largest |H - H₀|, relative to the energy exchanged
    energy_trend: Scalar | None  # change of the mean H from the first half to the second, relative to the same
    residual: Scalar  # worst stage residual
    converged: Bool[Array, ""]
    finite: Bool[Array, ""]


def step_jacobian(integrator: Integrator, field: Field, x: State, h: Scalar) -> Float[Array, "d d"]:
    """ψ'(x), the derivative of one step."""
    return jax.jacfwd(lambda y: integrator.advance(field, y, h)[0])(x)


def determinant_error(jacobian: Float[Array, "d d"]) -> Scalar:
    """|det ψ' - 1|: 0 where volume is kept."""
    return jnp.abs(jnp.linalg.det(jacobian) - 1)


def symplectic_defect(jacobian: Float[Array, "d d"]) -> Scalar:
    """The largest entry of |ψ'ᵀ J ψ' - J|: 0 where the step is symplectic."""
    j = jnp.asarray(np.kron([[0.0, -1.0], [1.0, 0.0]], np.eye(jacobian.shape[0] // 2)))
    return jnp.abs(jacobian.T @ j @ jacobian - j).max()


def invariant_drift(q: Float[Array, "d d"], states: Float[Array, "n d"]) -> Scalar:
    """The largest change of xᵀQx along a path, relative to the largest |x|²."""
    values = jnp.einsum("ni,ij,nj->n", states, q, states)
    return jnp.abs(values - values[0]).max() / (states**2).sum(axis=1).max()


def energy_deviation(energy, states: Float[Array, "n d"]) -> tuple[Scalar, Scalar]:
    """(wander, trend) of the energy along a path.

    A symplectic method does not keep H; it lets it wander in a bounded way. The wander is relative to the energy
    exchanged, the rms of ∇H·(x - x̄), so that the arbitrary level of H does not matter. The trend is the
    change of the mean from the first half of the path to the second: what comes back averages out, a drift does not.
    """
    values, gradients = jax.vmap(jax.value_and_grad(energy))(states)
    centred = states - states.mean(axis=0, keepdims=True)
    scale = jnp.sqrt(jnp.mean(jnp.sum(gradients * centred, axis=1) ** 2)) + jnp.finfo(states.dtype).tiny
    half = (states.shape[0] + 1) // 2
    trend = jnp.abs(values[-half:].mean() - values[:half].mean()) / scale
    return jnp.abs(values - values[0]).max() / scale, trend


def measure(
    field: Field, integrator: Integrator, x0: State, h: Scalar, steps: int, invariant: Float[Array, "d d"] | None = None
) -> Measurements:
    """Roll a field out and measure everything that applies to it, to be called inside a compiled function."""
    path = rollout(integrator, field, x0, jnp.full(steps, h))
    visited = path.states[np.unique(np.linspace(0, steps - 1, SAMPLES).astype(int))]  # all but the last are stepped
    jacobians = jax.vmap(lambda x: step_jacobian(integrator, field, x, h))(visited)
    energy = getattr(field, "energy", None)
    missing = jnp.array(jnp.nan)
    wander, trend = (None, None) if energy is None else energy_deviation(energy, path.states)
    return Measurements(
        determinant=jax.vmap(determinant_error)(jacobians).max(),
        symplectic=missing if x0.shape[0] % 2 else jax.vmap(symplectic_defect)(jacobians).max(),
        invariant=missing if invariant is None else invariant_drift(invariant, path.states),
        energy_wander=wander,
        energy_trend=trend,
        residual=path.residual.max(),
        converged=path.converged.all(),
        finite=jnp.isfinite(path.states).all(),
    )
