"""(c) The same drawn fields stepped by diffrax. Both sides are compiled and batched alike; the field is one object."""

from collections.abc import Callable

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from peers_drawn import BATCH, LENGTH, Drawn, H, Weights, drawn_fields, our_gradient, our_rollouts, rollouts
from peers_table import Row
from timing import side_by_side

from sgpd.integrators import adaptive_rollout
from sgpd.integrators import get as get_integrator
from sgpd.integrators.adaptive import MAX_STEPS, TOLERANCE

PATHS = 64
LIMIT = 1  # not slower at an equal step
# Methods that both have, by sgpd's names. diffrax has no classical RK4.
SOLVERS = {"euler": diffrax.Euler(), "heun": diffrax.Heun(), "ralston": diffrax.Ralston(), "dopri5": diffrax.Dopri5()}
ADAPTIVE = {"Dopri8": diffrax.Dopri8(), "Tsit5": diffrax.Tsit5()}


def diffrax_equal_step(repeats: int) -> list[Row]:
    """Fixed steps of equal length: rollouts of 64 paths, and gradients of a batch of windows."""
    drawn, rows = drawn_fields(PATHS), []
    for name, solver in SOLVERS.items():
        method, some = get_integrator(name), drawn.first(BATCH)
        pairs = {
            f"rollout, {PATHS} paths": (our_rollouts(drawn, method), rollouts(drawn, _fixed(solver))),
            f"gradient, {BATCH} windows": (our_gradient(some, method), _gradient(some, _fixed(solver))),
        }
        for what, (ours, theirs) in pairs.items():
            _assert_close(ours(), theirs(), 1e-10)
            times = side_by_side({"ours": ours, "theirs": theirs}, repeats)
            label = f"{name}: {what} x {LENGTH} steps; diffrax {type(solver).__name__}"
            rows.append(Row(label, times["ours"], times["theirs"], LIMIT))
    return rows


def diffrax_adaptive(repeats: int) -> list[Row]:
    """Adaptive steps at the same tolerance. sgpd's own are diffrax's Dopri8, so that a ratio of 1 is expected there."""
    drawn, times = drawn_fields(PATHS), H * jnp.arange(LENGTH + 1)
    ours = rollouts(drawn, lambda field, x0: adaptive_rollout(field, x0, times)[0])
    rows = []
    for name, solver in ADAPTIVE.items():
        theirs = rollouts(drawn, _adaptive(solver))
        _assert_close(ours(), theirs(), 1e-5)
        found = side_by_side({"ours": ours, "theirs": theirs}, repeats)
        what = f"adaptive, tolerance {TOLERANCE:g}: rollout, {PATHS} paths to {LENGTH * H:g}; diffrax {name}"
        rows.append(Row(what, found["ours"], found["theirs"]))
    return rows


def _fixed(solver) -> Callable:
    """States after every step, with nothing interpolated."""

    def solve(field, x0):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, x, args: field(x)),
            solver,
            t0=0.0,
            t1=LENGTH * H,
            dt0=None,
            y0=x0,
            saveat=diffrax.SaveAt(t0=True, steps=True),
            stepsize_controller=diffrax.StepTo(ts=H * jnp.arange(LENGTH + 1)),
            max_steps=LENGTH,
        )
        return solution.ys

    return solve


def _adaptive(solver) -> Callable:
    """States at equal times."""

    def solve(field, x0):
        times = H * jnp.arange(LENGTH + 1)
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, x, args: field(x)),
            solver,
            t0=times[0],
            t1=times[-1],
            dt0=None,
            y0=x0,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=diffrax.PIDController(rtol=TOLERANCE, atol=TOLERANCE),
            max_steps=MAX_STEPS,
        )
        return solution.ys

    return solve


def _gradient(drawn: Drawn, solve: Callable) -> Callable:
    """Through diffrax's default, recursive checkpoints."""

    @jax.jit
    def run(weights: Weights, starts):
        one = lambda weights, x0: solve(drawn.field(weights), x0)
        return jax.grad(lambda weights: jnp.sum(jax.vmap(one)(weights, starts) ** 2))(weights)

    return lambda: run(drawn.weights, drawn.starts)


def _assert_close(ours, theirs, tolerance: float):
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        scale = float(np.abs(one).max())
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=tolerance, atol=tolerance * scale)
