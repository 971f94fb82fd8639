"""The stage equations of an implicit Runge-Kutta step: residual, solver and gradient, apart from one another.

    residual   r(g) = g - f(x + h A g)                       one row a stage
    solver     Newton's method, down to rounding
    gradient   one more Newton correction  g = g* - M⁻¹ r(g*),  M = ∂r/∂g,  through which derivatives flow

In the correction g* and M are constants, so that its derivative is -M⁻¹ ∂r/∂θ: the implicit function theorem, on the
residual itself (on the squared residual it would square the condition number). It is made of ordinary operations, so
forward and reverse mode both work, the solver's iterations are never differentiated, and as a bonus the correction
polishes the stages by one Newton step. Only first derivatives are exact.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, Bool, Float, Int

from sgpd.arrays import Scalar, State
from sgpd.fields import Field, linearise
from sgpd.integrators.elimination import solve

Stages = Float[Array, "s d"]

# What `rollout` keeps of an implicit step for the backward pass; the rest is computed again there.
SAVED_FOR_BACKWARD = "converged stages"


@dataclass(frozen=True)
class Newton:
    """Newton's method for the stage equations.

    The error is what the next correction M⁻¹ r would do to the state: h |M⁻¹ r| relative to |x| + h |g|. The iteration
    goes on until that is at rounding level (`target`) or no longer falls; it has converged when it is below `accept`.
    """

    target: float = 1e-15
    accept: float = 1e-11
    max_steps: int = 20


class StepInfo(NamedTuple):
    """How the solve of a step went. Explicit steps always converge, with residual 0."""

    converged: Bool[Array, ""]
    residual: Scalar  # largest |g - f(x + h A g)| of any stage
    iterations: Int[Array, ""]

    @classmethod
    def explicit(cls) -> "StepInfo":
        """There was nothing to solve."""
        return cls(jnp.array(True), jnp.array(0.0), jnp.array(0))


class _Iterate(NamedTuple):
    stages: Stages
    residual: Stages
    correction: Stages  # M⁻¹ r
    jacobian: Float[Array, "s d d"]  # of the field, at each stage
    error: Scalar
    previous_error: Scalar
    count: Int[Array, ""]


def solve_stages(
    field: Field, x: State, h: Scalar, a: Float[Array, "s s d"], newton: Newton
) -> tuple[Stages, StepInfo]:
    """The stages g of a step from x, differentiable in x, h and all that the field depends on.

    `a[i, j, k]` is how much of stage j's k-th coordinate enters stage i: for a partitioned method it differs along k.
    """
    f, parameters = jax.closure_convert(lambda y: field(y), x)  # a field that is a pytree has no hash
    frozen = jax.lax.stop_gradient((parameters, x, h))
    found = _iterate(f, *frozen, a, newton)
    stages, matrix = checkpoint_name((found.stages, newton_matrix(found.jacobian, frozen[2], a)), SAVED_FOR_BACKWARD)

    residual = _residual(lambda y: f(y, *parameters), x, h, a, stages)
    solution = stages - _solve(matrix, residual)
    converged = found.error <= newton.accept
    return solution, StepInfo(converged, jnp.abs(found.residual).max(), found.count)


def _residual(field: Field, x: State, h: Scalar, a: Float[Array, "s s d"], g: Stages) -> Stages:
    return g - jax.vmap(field)(stage_points(x, h, a, g))


def stage_points(x: State, h: Scalar, a: Float[Array, "s s d"], g: Stages) -> Stages:
    """Where the stages g evaluate the field."""
    return x[None, :] + h * jnp.einsum("ijk,jk->ik", a, g)


def newton_matrix(jacobian: Float[Array, "s d d"], h: Scalar, a: Float[Array, "s s d"]) -> Float[Array, "sd sd"]:
    """M = ∂r/∂g, with blocks  δᵢⱼ I - h Jᵢ diag(aᵢⱼ)."""
    s, d = jacobian.shape[:2]
    blocks = jnp.einsum("ikl,ijl->ikjl", jacobian, a)
    return jnp.eye(s * d) - h * blocks.reshape(s * d, s * d)


def _solve(matrix: Float[Array, "sd sd"], residual: Stages) -> Stages:
    return solve(matrix, residual.reshape(-1)).reshape(residual.shape)


def _iterate(f, parameters, x: State, h: Scalar, a: Float[Array, "s s d"], newton: Newton) -> _Iterate:
    field = lambda y: f(y, *parameters)

    def evaluate(g: Stages, previous_error: Scalar, count: Int[Array, ""]) -> _Iterate:
        value, jacobian = jax.vmap(lambda y: linearise(field, y))(stage_points(x, h, a, g))
        residual = g - value
        correction = _solve(newton_matrix(jacobian, h, a), residual)
        tiny = jnp.finfo(x.dtype).tiny
        error = jnp.abs(h * correction).max() / (jnp.abs(x).max() + jnp.abs(h * g).max() + tiny)
        return _Iterate(g, residual, correction, jacobian, error, previous_error, count)

    def unfinished(it: _Iterate) -> Bool[Array, ""]:
        stalled = (it.error <= newton.accept) & (it.error > it.previous_error / 4)
        return (it.error > newton.target) & ~stalled & (it.count < newton.max_steps)

    def improve(it: _Iterate) -> _Iterate:
        return evaluate(it.stages - it.correction, it.error, it.count + 1)

    # An Euler step to each node c = A1 predicts its stage with an error of second order in h.
    predicted = jax.vmap(field)(x[None, :] + h * a.sum(axis=1) * field(x)[None, :])
    return jax.lax.while_loop(unfinished, improve, evaluate(predicted, jnp.array(jnp.inf), jnp.array(0)))
