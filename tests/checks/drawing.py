"""Fields drawn from Gaussian processes, and one step of every method on them, in one compiled program a structure."""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgpd.checks import determinant_error, symplectic_defect
from sgpd.gp import SquaredExponential, draw_path
from sgpd.integrators import Integrator, PartitionedRungeKutta, PartitionedTableau, SplitStep, Tableau, get, names
from sgpd.integrators.implicit import Newton, solve_stages
from sgpd.integrators.tableau import Splitting
from sgpd.structures import Free, Hamiltonian, QuadraticInvariant, Separable, Structure

Q3 = np.array([[2.0, 0.3, -0.5], [0.3, 1.0, 0.2], [-0.5, 0.2, -1.5]])  # indefinite, and no axes of its own

CASES: dict[str, tuple[Structure, int]] = {
    "free": (Free(), 3),
    "separable": (Separable(), 4),
    "components": (Separable(form="components"), 4),
    "components one degree": (Separable(form="components"), 2),
    "hamiltonian": (Hamiltonian(), 4),
    "tangent": (QuadraticInvariant(), 3),
    "tangent to Q": (QuadraticInvariant(q=Q3), 3),
    "tangent in 4-D": (QuadraticInvariant(), 4),
    "lie-poisson": (QuadraticInvariant(form="lie-poisson"), 3),
    "solved": (QuadraticInvariant(form="solved"), 3),
}

STEP = 0.3
WEAK = ["tangent to Q", "solved"]  # steeper fields than the others: latents half as large
DRAWS, STATES = 3, 4
FEATURES, INDUCING = 8, 5
STAGES = 8  # of the longest method

# Programs that run once: it is the compilation that takes the time.
QUICK_TO_COMPILE = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}

# A pair that nobody would choose: gauss-6 for both halves is gauss-6, so it must not be promised more.
GAUSS_6_PAIR = PartitionedRungeKutta(
    PartitionedTableau("gauss-6-pair", p=get("gauss-6").tableau, q=get("gauss-6").tableau, order=6)
)


class Found(NamedTuple):
    """Of one step of a method, the worst of all draws and states."""

    determinant: float
    symplectic: float  # nan where the dimension is odd
    invariant: float  # nan where there is none


def methods(case: str) -> list[Integrator]:
    """Every method that accepts the case's fields."""
    structure, dimension = CASES[case]
    split = structure.traits(dimension).split
    whole = [m for m in map(get, names()) if split or not isinstance(m, SplitStep)]
    return [m for m in [*whole, GAUSS_6_PAIR] if dimension % 2 == 0 or not isinstance(m, PartitionedRungeKutta)]


@jax.jit
@jax.vmap
@jax.vmap
def _draw(variance, lengthscale, inducing, whitened, frequencies, weights):
    return draw_path(SquaredExponential(lengthscale, variance), inducing, whitened, frequencies, weights)


def drawn_fields(case: str):
    """A stack of fields, whose latents go through random values at random inducing points."""
    structure, dimension = CASES[case]
    rng = np.random.default_rng(0)

    def paths(group):
        k, stack = group.depends_on.shape[1], (DRAWS, group.count)
        sizes = (INDUCING, k), (INDUCING,), (FEATURES, k), (2, FEATURES)
        scales = np.full(stack, 0.2 if case in WEAK else 1.0), np.full((*stack, k), 1.2)
        return _draw(*scales, *(rng.normal(size=(*stack, *size)) for size in sizes))

    stacks = [paths(group) for group in structure.groups(dimension)]
    return jax.vmap(lambda *drawn: structure.field(drawn, dimension))(*stacks)


def starts(case: str) -> np.ndarray:
    """States about 1 long; for `solved`, away from where its field is singular."""
    dimension = CASES[case][1]
    x = np.random.default_rng(1).normal(size=(STATES, dimension)) / np.sqrt(dimension)
    if case == "solved":
        x[:, -1] = 1.2 + x[:, -1] / 4
    return x


def square(method: Integrator, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Any method as one implicit method, a (s, s, d) and b (s, d), padded with stages that nothing depends on."""
    match method.tableau:
        case Tableau(a=a, b=b):
            halves = (a, b), (a, b)
        case PartitionedTableau(p=p, q=q):
            halves = (p.a, p.b), (q.a, q.b)
        case Splitting(kicks=kicks, drifts=drifts):
            ones = np.ones((len(kicks), len(kicks)))  # a drift sees the kick before it, a kick only earlier drifts
            halves = (np.tril(ones) * kicks, kicks), (np.tril(ones, -1) * drifts, drifts)
    whole_a, whole_b = np.zeros((STAGES, STAGES, dimension)), np.zeros((STAGES, dimension))
    for (a, b), where in zip(halves, (slice(dimension // 2), slice(dimension // 2, None)), strict=True):
        s = len(b)
        whole_a[:s, :s, where], whole_b[:s, where] = a[:, :, None], b[:, None]
    return whole_a, whole_b


def square_step(field, x, a, b):
    """One step of a method written as a square, so that one compiled program serves every method."""
    stages, info = solve_stages(field, x, jnp.asarray(STEP), a, Newton())
    after = x + STEP * (b * stages).sum(axis=0)
    return after, info.converged


@cache
def one_step(case: str) -> dict[str, Found]:
    """What one step of each method keeps of drawn fields."""
    structure, dimension = CASES[case]
    q = structure.traits(dimension).invariant

    def measured(ab, field, x):
        def step(y):
            y, converged = square_step(field, y, *ab)
            return y, (y, converged)

        jacobian, (after, converged) = jax.jacfwd(step, has_aux=True)(x)
        symplectic = jnp.nan if dimension % 2 else symplectic_defect(jacobian)
        change = jnp.nan if q is None else jnp.abs(after @ q @ after - x @ q @ x)
        return converged, determinant_error(jacobian), symplectic, change

    of_all = jax.vmap(jax.vmap(jax.vmap(measured, (None, None, 0)), (None, 0, None)), (0, None, None))
    stacked = tuple(np.stack(part) for part in zip(*(square(m, dimension) for m in methods(case)), strict=True))
    compiled = jax.jit(of_all, compiler_options=QUICK_TO_COMPILE)
    converged, *values = map(np.asarray, compiled(stacked, drawn_fields(case), starts(case)))
    assert converged.all()
    worst = np.stack([np.broadcast_to(v, converged.shape).max(axis=(1, 2)) for v in values], axis=1)
    return {m.name: Found(*map(float, row)) for m, row in zip(methods(case), worst, strict=True)}
