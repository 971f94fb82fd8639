"""(b) Rollouts and gradients of drawn fields against PyTorch, which gets all paths in one tensor; and throughput.

PyTorch runs as its users run it, operation by operation, on as many threads as are fastest for each job. `torchdiffeq`
steps Kutta's 3/8 rule under the name rk4; so does sgpd here, by a tableau of its own, so that the numbers agree.
"""

import os
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import torch
from peers_drawn import (
    BATCH,
    DRAWS_AT_ONCE,
    Drawn,
    H,
    Pendulums,
    TorchField,
    assert_same_numbers,
    drawn_fields,
    our_gradient,
    our_rollouts,
)
from peers_table import Row, Sizes, choose_threads
from timing import clocked, side_by_side
from torch import Tensor
from torchdiffeq import odeint

from sgpd.integrators import Integrator, RungeKutta, Tableau
from sgpd.integrators import get as get_integrator
from sgpd.xla.batches import in_batches

ROLLOUT_LIMIT, GRADIENT_LIMIT = 5, 3
TOLERANCE = 1e-10  # of the stages in PyTorch; the rounding of these fields is near 1e-11, to which sgpd goes on
ROUNDING = H * TOLERANCE  # what such a stage leaves of a step

KUTTA = RungeKutta(
    Tableau(
        "kutta-3/8",
        np.array([[0, 0, 0, 0], [1 / 3, 0, 0, 0], [-1 / 3, 1, 0, 0], [1, -1, 1, 0]]),
        np.array([1, 3, 3, 1]) / 8,
        order=4,
    )
)
Solve = Callable[[TorchField, Tensor], Tensor]  # from starts (P, d) to states (P, n, d)


def torch_explicit(sizes: Sizes) -> list[Row]:
    """torchdiffeq's rk4 on a fixed grid."""
    return _against(KUTTA, {"torchdiffeq rk4": explicit_rollout}, sizes)


def torch_implicit(sizes: Sizes) -> list[Row]:
    """A plain implicit midpoint, by fixed-point iteration or by Newton's method: the faster one counts."""
    peers = {"PyTorch fixed point": fixed_point_rollout, "PyTorch Newton": newton_rollout}
    return _against(get_integrator("implicit-midpoint"), peers, sizes)


def explicit_rollout(field: TorchField, x0: Tensor) -> Tensor:
    """torchdiffeq's rk4, a step for each saved state."""
    states = odeint(field, x0, H * torch.arange(field.steps + 1), method="rk4")
    assert isinstance(states, Tensor)
    return states.transpose(0, 1)


def fixed_point_rollout(field: TorchField, x0: Tensor) -> Tensor:
    """Implicit midpoint; stages by g ← f(x + h g/2)."""
    return _implicit_rollout(field, x0, lambda x, g: field(None, x + H / 2 * g))


def newton_rollout(field: TorchField, x0: Tensor) -> Tensor:
    """Implicit midpoint; stages by Newton's method with a Jacobian by automatic differentiation."""

    def improve(x: Tensor, g: Tensor) -> Tensor:
        y = x + H / 2 * g
        return g - torch.linalg.solve(_matrix(field, y), g - field(None, y))

    return _implicit_rollout(field, x0, improve)


def _implicit_rollout(field: TorchField, x0: Tensor, improve: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """All paths in lock-step. The gradient: one Newton correction with the matrix and the stages held constant."""
    x, states = x0, [x0]
    for _ in range(field.steps):
        with torch.no_grad():
            g, change = field(None, x), torch.inf
            for _ in range(50):
                new = improve(x, g)
                g, change = new, (new - g).abs().max()
                if change <= TOLERANCE:
                    break
            assert change <= TOLERANCE, "The stages did not converge."
        if torch.is_grad_enabled():
            y = x + H / 2 * g
            g = g - torch.linalg.solve(_matrix(field, y.detach()), g - field(None, y))
        x = x + H * g
        states.append(x)
    return torch.stack(states, dim=1)


def _matrix(field: TorchField, y: Tensor) -> Tensor:
    """M = I - h/2 f'(y), one a path: a column of all Jacobians at once from each forward derivative."""
    with torch.no_grad():
        along = [torch.zeros_like(y).index_fill(1, torch.tensor([k]), 1.0) for k in range(y.shape[1])]
        columns = [torch.func.jvp(lambda x: field(None, x), (y,), (v,))[1] for v in along]
        return torch.eye(y.shape[1]) - H / 2 * torch.stack(columns, dim=2)


def _against(method: Integrator, peers: dict[str, Solve], sizes: Sizes) -> list[Row]:
    drawn = drawn_fields(max(BATCH, *sizes.paths), sizes.steps)
    assert_equal_fields(drawn.first(BATCH))
    rows = [_row(method, drawn.first(count), peers, sizes.repeats, gradient=False) for count in sizes.paths]
    return [*rows, _row(method, drawn.first(BATCH), peers, sizes.repeats, gradient=True)]


def _row(method: Integrator, drawn: Drawn, peers: dict[str, Solve], repeats: int, gradient: bool) -> Row:
    field, x0 = TorchField(drawn), torch.from_numpy(np.array(drawn.starts))
    job = our_gradient(drawn, method) if gradient else our_rollouts(drawn, method)
    jobs = {name: _torch_job(field, x0, solve, gradient) for name, solve in peers.items()}
    for other in jobs.values():
        assert_same_numbers(drawn, job, other, 1e-9, ROUNDING)
    best = next(iter(jobs)) if len(jobs) == 1 else min(jobs, key=lambda name: clocked(jobs[name]))
    threads = choose_threads(jobs[best], os.cpu_count() or 1)
    times = side_by_side({"sgpd": job, "peer": jobs[best]}, repeats)
    what = f"gradient, {len(x0)} windows" if gradient else f"rollout, {len(x0)} path(s)"
    limit = GRADIENT_LIMIT if gradient else ROLLOUT_LIMIT
    return Row(
        f"{method.name}: {what} x {field.steps} steps; {best}, {threads} thread(s)", times["sgpd"], times["peer"], limit
    )


def _torch_job(field: TorchField, x0: Tensor, solve: Solve, gradient: bool) -> Callable[[], list[Tensor]]:
    def rollouts() -> list[Tensor]:
        with torch.no_grad():
            return [solve(field, x0)]

    def gradients() -> list[Tensor]:
        return list(torch.autograd.grad((solve(field, x0) ** 2).sum(), field.weights()))

    return gradients if gradient else rollouts


def assert_equal_fields(drawn: Drawn):
    """The field has the same values on both sides."""
    ours = jax.vmap(lambda weights, x: drawn.field(weights)(x))(drawn.weights, drawn.starts)
    with torch.no_grad():
        theirs = TorchField(drawn)(None, torch.from_numpy(np.array(drawn.starts)))
    np.testing.assert_allclose(np.asarray(ours), theirs.numpy(), rtol=1e-10, atol=1e-10)


def throughput(sizes: Sizes) -> list[Row]:
    """sgpd alone, on separable fields of the pendulum: steps a second with gradient, and of rollouts."""
    rows = []
    for name in ("symplectic-euler", "stormer-verlet", "implicit-midpoint", "gauss-4"):
        method = get_integrator(name)
        jobs = {f"gradient, {BATCH} windows": (BATCH, _gradient(method, BATCH, sizes.steps))}
        jobs |= {f"rollout, {count} path(s)": (count, _rollouts(method, count, sizes.steps)) for count in sizes.paths}
        times = side_by_side({what: job for what, (_, job) in jobs.items()}, sizes.repeats)
        for what, (count, _) in jobs.items():
            speed = f"{count * sizes.steps / times[what].median:,.0f} steps a second"
            rows.append(Row(f"{name}: {what} x {sizes.steps} steps", times[what], remark=speed))
    return rows


def _rollouts(method: Integrator, count: int, steps: int) -> Callable:
    """Draws and their rollouts, as a forecast makes them: some at once, batches on all cores."""
    drawn = Pendulums.draw(count, steps)
    run = jax.jit(lambda stack: jax.vmap(lambda *each: drawn.states(method, *each))(*stack))
    job = lambda: in_batches(run, (drawn.normals, drawn.weights), DRAWS_AT_ONCE)
    assert np.isfinite(job()).all()
    return job


def _gradient(method: Integrator, count: int, steps: int) -> Callable:
    """The gradient of Σ|x|² with respect to the whole posterior, all windows at once, as in training."""
    drawn = Pendulums.draw(count, steps)

    @jax.jit
    def run(drawn: Pendulums):
        def loss(posterior):
            one = lambda *each: drawn._replace(posterior=posterior).states(method, *each)
            return jnp.sum(jax.vmap(one)(drawn.normals, drawn.weights) ** 2)

        return jax.grad(loss)(drawn.posterior)

    return lambda: run(drawn)
