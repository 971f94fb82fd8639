"""The stage equations of an implicit Runge-Kutta step: residual, solver and gradient, apart from one another.

    residual   r(g) = g - f(x + h A g)                       one row a stage
    solver     Newton's method, down to rounding
    gradient   dg = -M⁻¹ dr,  M = ∂r/∂g,  where dr is how r changes at the solution

The gradient is the implicit function theorem, on the residual itself (on the squared residual it would square the
condition number). Forward and reverse mode both work, and the solver's iterations are never differentiated. Only first
derivatives are exact.
"""

from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jaxtyping import Array, Bool, Float, Int

from sgpd.arrays import KEPT, Scalar, State
from sgpd.fields import Field, linearise
from sgpd.xla.elimination import solve

Stages = Float[Array, "s d"]


@dataclass(frozen=True)
class Newton:
    """Newton's method for the stage equations.

    The error is what the next correction M⁻¹ r will do to the state: h |M⁻¹ r| relative to |x| + h |g|. Errors are
    squared from one iteration to the next, up to a factor that the last two tell. The iteration goes on until the error
    after the next correction will be at rounding level (`target`), or errors no longer fall; it has converged when that
    error is below `accept`.
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
    correction: Stages  # M⁻¹ r
    error: Scalar
    previous_error: Scalar
    count: Int[Array, ""]

    @property
    def next_error(self) -> Scalar:
        """The error after the correction: e² max(1, e / e₋₁²)."""
        return jnp.maximum(self.error**2, self.error * (self.error / self.previous_error) ** 2)


def solve_stages(
    field: Field, x: State, h: Scalar, a: Float[Array, "s s d"], newton: Newton
) -> tuple[Stages, StepInfo]:
    """The stages g of a step from x, differentiable in x, h and all that the field depends on.

    `a[i, j, k]` is how much of stage j's k-th coordinate enters stage i: for a partitioned method it differs along k.
    """
    f, parameters = jax.closure_convert(lambda y: field(y), x)  # a field that is a pytree has no hash
    found, given = _iterate(f, *jax.lax.stop_gradient((parameters, x, h)), a, newton), (parameters, x, h, a)
    stages = checkpoint_name(found.stages - found.correction, KEPT)
    residual = jnp.abs(_residual(f, stages, *jax.lax.stop_gradient(given))).max()

    @eqx.filter_custom_jvp
    def solution(stages, given):
        return stages

    @solution.def_jvp
    def rule(primals, tangents):
        (stages, given), (_, moves) = primals, tangents
        _, _, h, a = given
        _, change = eqx.filter_jvp(lambda given: _residual(f, stages, *given), (given,), (moves,))
        jacobian = _linearised(f, stages, *given)[1]
        return stages, -_solve(newton_matrix(jacobian, h, a), change)

    return solution(stages, given), StepInfo(found.next_error <= newton.accept, residual, found.count)


def _residual(f, g: Stages, parameters, x: State, h: Scalar, a: Float[Array, "s s d"]) -> Stages:
    return g - jax.vmap(lambda y: f(y, *parameters))(stage_points(x, h, a, g))


def _linearised(f, g: Stages, parameters, x: State, h: Scalar, a: Float[Array, "s s d"]):
    """The field at every stage, and its Jacobian."""
    return jax.vmap(lambda y: linearise(lambda y: f(y, *parameters), y))(stage_points(x, h, a, g))


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
        value, jacobian = _linearised(f, g, parameters, x, h, a)
        correction = _solve(newton_matrix(jacobian, h, a), g - value)
        tiny = jnp.finfo(x.dtype).tiny
        error = jnp.abs(h * correction).max() / (jnp.abs(x).max() + jnp.abs(h * g).max() + tiny)
        return _Iterate(g, correction, error, previous_error, count)

    def unfinished(it: _Iterate) -> Bool[Array, ""]:
        stalled = (it.error <= newton.accept) & (it.error > it.previous_error / 4)
        return (it.next_error > newton.target) & ~stalled & (it.count < newton.max_steps)

    def improve(it: _Iterate) -> _Iterate:
        return evaluate(it.stages - it.correction, it.error, it.count + 1)

    # An Euler step to each node c = A1 predicts its stage with an error of second order in h.
    predicted = jax.vmap(field)(x[None, :] + h * a.sum(axis=1) * field(x)[None, :])
    return jax.lax.while_loop(unfinished, improve, evaluate(predicted, jnp.array(jnp.inf), jnp.array(0)))
