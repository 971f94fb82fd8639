"""(c) The same drawn fields stepped by diffrax. Both sides are compiled and batched alike; the field is one object."""

from collections.abc import Callable

import diffrax
import jax.numpy as jnp
from peers_drawn import BATCH, H, assert_same_numbers, drawn_fields, gradient, our_gradient, our_rollouts, rollouts
from peers_table import Row, Sizes
from timing import side_by_side

from sgpd.integrators import adaptive_rollout
from sgpd.integrators import get as get_integrator
from sgpd.integrators.adaptive import MAX_STEPS, TOLERANCE

PATHS = 64
ROUNDING = 1e-11  # of these fields
LIMIT = 1  # not slower at an equal step
# Methods that both have, by sgpd's names. diffrax has no classical RK4.
SOLVERS = {"euler": diffrax.Euler(), "heun": diffrax.Heun(), "ralston": diffrax.Ralston(), "dopri5": diffrax.Dopri5()}
ADAPTIVE = {"Dopri8": diffrax.Dopri8(), "Tsit5": diffrax.Tsit5()}


def diffrax_equal_step(sizes: Sizes) -> list[Row]:
    """Fixed steps of equal length: rollouts of 64 paths, and gradients of a batch of windows."""
    drawn, rows = drawn_fields(PATHS, sizes.steps), []
    for name, solver in SOLVERS.items():
        method, some, solve = get_integrator(name), drawn.first(BATCH), _fixed(solver, sizes.steps)
        pairs = {
            f"rollout, {PATHS} paths": (drawn, our_rollouts(drawn, method), rollouts(drawn, solve)),
            f"gradient, {BATCH} windows": (some, our_gradient(some, method), gradient(some, solve)),
        }
        for what, (of, ours, theirs) in pairs.items():
            assert_same_numbers(of, ours, theirs, 1e-10, ROUNDING)
            times = side_by_side({"ours": ours, "theirs": theirs}, sizes.repeats)
            label = f"{name}: {what} x {sizes.steps} steps; diffrax {type(solver).__name__}"
            rows.append(Row(label, times["ours"], times["theirs"], LIMIT))
    return rows


def diffrax_adaptive(sizes: Sizes) -> list[Row]:
    """Adaptive steps at the same tolerance. sgpd's own are diffrax's Dopri8, so that a ratio of 1 is expected there."""
    drawn, times = drawn_fields(PATHS, sizes.steps), H * jnp.arange(sizes.steps + 1)
    ours = rollouts(drawn, lambda field, x0: adaptive_rollout(field, x0, times)[0])
    rows = []
    for name, solver in ADAPTIVE.items():
        theirs = rollouts(drawn, _adaptive(solver, times))
        assert_same_numbers(drawn, ours, theirs, 1e-5, TOLERANCE)
        found = side_by_side({"ours": ours, "theirs": theirs}, sizes.repeats)
        what = f"adaptive, tolerance {TOLERANCE:g}: rollout, {PATHS} paths to {times[-1]:g}; diffrax {name}"
        rows.append(Row(what, found["ours"], found["theirs"]))
    return rows


def _fixed(solver, steps: int) -> Callable:
    """States after every step, with nothing interpolated."""

    def solve(field, x0):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, x, args: field(x)),
            solver,
            t0=0.0,
            t1=steps * H,
            dt0=None,
            y0=x0,
            saveat=diffrax.SaveAt(t0=True, steps=True),
            stepsize_controller=diffrax.StepTo(ts=H * jnp.arange(steps + 1)),
            max_steps=steps,
        )
        return solution.ys

    return solve


def _adaptive(solver, times) -> Callable:
    """States at equal times."""

    def solve(field, x0):
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
