"""How a step answers to small changes: of the state before it, and of the field at the points where it looks.

A step evaluates the field at a few points yᵢ. To first order, if the field there is larger by bᵢ and the state by δ,

    x₁ + δ₁ ,   δ₁ = A δ + Σᵢ Cᵢ bᵢ

For a Runge-Kutta method with stages gᵢ = f(yᵢ) the changes of the stages solve M δg = Jδ + b with Newton's matrix M, so
A and C come from one small solve, whatever the number of parameters behind the field.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sgpd.arrays import Scalar, State
from sgpd.fields import Field, halves, linearise
from sgpd.integrators.implicit import Newton, StepInfo, newton_matrix, solve_stages, stage_points
from sgpd.integrators.tableau import Splitting
from sgpd.renamed import warn_renamed
from sgpd.xla.elimination import solve


class Response(NamedTuple):
    """A step, and its derivatives."""

    x: State
    by_state: Float[Array, "d d"]  # A
    points: Float[Array, "s d"]  # y
    by_field: Float[Array, "s d d"]  # C, one a point
    info: StepInfo


def respond(method: Any, field: Field, x: State, h: Scalar) -> Response:
    """Old name of the method of an integrator."""
    warn_renamed("sgpd.integrators.respond(method, ...)", "method.respond(...)")
    return method.respond(field, x, h)


def implicit_response(field: Field, x: State, h: Scalar, a, b: Float[Array, "s d"], newton: Newton) -> Response:
    """Of a step whose stages are solved for; coefficients by coordinate."""
    stages, info = solve_stages(field, x, h, a, newton)
    points = stage_points(x, h, a, stages)
    _, jacobian = jax.vmap(lambda y: linearise(field, y))(points)
    by_field = h * _implicit_weights(jacobian, h, a, b)
    return _response(x, h, b, stages, (points, jacobian, by_field, info))


def explicit_response(field: Field, x: State, h: Scalar, a, b: Float[Array, "s d"]) -> Response:
    """Of a step whose stages come one after the other."""
    stages, points, jacobian = _explicit_stages(field, x, h, a)
    by_field = h * _explicit_weights(jacobian, h, a, b)
    return _response(x, h, b, stages, (points, jacobian, by_field, StepInfo.explicit()))


def _response(x: State, h: Scalar, b: Float[Array, "s d"], stages: Float[Array, "s d"], found) -> Response:
    points, jacobian, by_field, info = found
    by_state = jnp.eye(x.shape[0]) + jnp.einsum("jkl,jlm->km", by_field, jacobian)
    return Response(x + h * (b * stages).sum(axis=0), by_state, points, by_field, info)


# With b as a matrix B of one block diag(bᵢ) a stage, x₁ = x + h Bᵀg changes by h Bᵀδg = h Zᵀ(Jδ + b), where Mᵀ Z = B.


def _implicit_weights(jacobian: Float[Array, "s d d"], h: Scalar, a, b: Float[Array, "s d"]) -> Float[Array, "s d d"]:
    """The blocks of Zᵀ."""
    s, d = b.shape
    right = (b[:, :, None] * jnp.eye(d)[None]).reshape(s * d, d)
    z = jax.vmap(lambda column: solve(newton_matrix(jacobian, h, a).T, column), in_axes=1)(right)
    return z.reshape(d, s, d).transpose(1, 0, 2)


def _explicit_weights(jacobian: Float[Array, "s d d"], h: Scalar, a, b: Float[Array, "s d"]) -> Float[Array, "s d d"]:
    """The same, from the last stage to the first: Zⱼᵀ = diag(bⱼ) + h Σᵢ Zᵢᵀ Jᵢ diag(aᵢⱼ) over the stages i after j."""
    s, d = b.shape
    blocks = [jnp.eye(d)] * s
    for j in reversed(range(s)):
        later = (blocks[i] @ jacobian[i] * a[i, j][None, :] for i in range(j + 1, s))
        blocks[j] = jnp.diag(b[j]) + h * sum(later, start=jnp.zeros((d, d)))
    return jnp.stack(blocks)


def _explicit_stages(field: Field, x: State, h: Scalar, a: Float[Array, "s s d"]):
    """The stages, the points where they look, and the field's Jacobian there."""
    stages, points, jacobian = jnp.zeros((a.shape[0], x.shape[0])), [], []
    for i in range(a.shape[0]):  # later stages are still 0, and their coefficients are too
        points.append(x + h * jnp.einsum("jk,jk->k", a[i], stages))
        value, by_point = linearise(field, points[-1])
        stages = stages.at[i].set(value)
        jacobian.append(by_point)
    return stages, jnp.stack(points), jnp.stack(jacobian)


def split_response(tableau: Splitting, field: Any, x: State, h: Scalar) -> Response:
    """Kicks and drifts in turn: p + k h dp(q), then q + d h dq(p). Only the half that moves has derivatives."""
    d, n = x.shape[0], halves(x)[0].shape[0]
    momenta, positions = slice(n), slice(n, d)
    pairs = zip(tableau.kicks, tableau.drifts, strict=True)
    halves_in_turn = ((field.dp, momenta, positions), (field.dq, positions, momenta))
    by_state, points, by_field = jnp.eye(d), [], []
    for c, (force, moves, sees) in ((c, half) for pair in pairs for c, half in zip(pair, halves_in_turn, strict=True)):
        if not c:
            continue
        value, jacobian = linearise(force, x[sees])
        through = jnp.eye(d).at[moves, sees].set(c * h * jacobian)
        own = jnp.zeros((d, d)).at[moves, moves].set(c * h * jnp.eye(n))
        by_state = through @ by_state
        by_field = [through @ earlier for earlier in by_field] + [own]
        points.append(x)
        x = x.at[moves].add(c * h * value)
    return Response(x, by_state, jnp.stack(points), jnp.stack(by_field), StepInfo.explicit())
