"""Fields of drawn latents, measured in one compiled program a case, and the same paths written out in numpy."""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sgpd.gp import Path, SquaredExponential
from sgpd.structures import Free, Hamiltonian, QuadraticInvariant, Separable, Structure

Q3 = np.array([[2.0, 0.3, -0.5], [0.3, 1.0, 0.2], [-0.5, 0.2, -1.5]])  # indefinite, and no axes of its own
Q4 = np.diag([1.0, 2.0, 3.0, 4.0]) + np.roll(np.eye(4), 1, axis=0) / 3 + np.roll(np.eye(4), -1, axis=0) / 3

APART = [[1, 0, -1, 0], [0, 1, 0, -1]]  # (q1, q2) to q1 - q2, in the plane
OTHERS = [[[0, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]]]  # the paper's rigid body: f1 sees (x2, x3), f2 (x1, x3)

CASES: dict[str, tuple[Structure, int]] = {
    "free": (Free(), 3),
    "separable": (Separable(), 4),
    "components": (Separable(form="components"), 4),
    "components one degree": (Separable(form="components"), 2),
    "translations": (Separable(depends_on={"V": APART}), 8),
    "hamiltonian": (Hamiltonian(), 4),
    "hamiltonian of a mix": (Hamiltonian(depends_on={"H": np.array([[1.0, 0.0, 0.5, 0.0], [0.0, 2.0, 0.0, 1.0]])}), 4),
    "tangent": (QuadraticInvariant(), 3),
    "tangent to Q": (QuadraticInvariant(q=Q4), 4),
    "lie-poisson of Q": (QuadraticInvariant(form="lie-poisson", q=Q3), 3),
    "solved for Q": (QuadraticInvariant(form="solved", q=Q4), 4),
    "solved, seeing others": (QuadraticInvariant(form="solved", depends_on={"f": OTHERS}), 3),
}

# Where a test asks for Jacobians.
DIFFERENTIATED = [
    *("separable", "components", "components one degree", "translations", "hamiltonian", "hamiltonian of a mix"),
    "solved, seeing others",
]

FACTORS = (0.7, -1.9)


class Facts(NamedTuple):
    """Of the first of two drawn fields (and of a combination of both) at a few states."""

    paths: list[Path]  # one stack a group
    x: np.ndarray
    values: np.ndarray
    jacobians: np.ndarray | None
    energies: np.ndarray | None
    slopes: np.ndarray | None  # of the energy
    second: np.ndarray | None = None  # values of the second field
    combined: np.ndarray | None = None  # values of FACTORS[0] · first latents + FACTORS[1] · second latents


@cache
def facts(case: str) -> Facts:
    """All that there is to know about a case, from one compilation."""
    structure, dimension = CASES[case]
    rng = np.random.default_rng(0)
    groups = structure.groups(dimension)
    features, inducing = 12, 6

    def coefficients():
        sizes = features, features, inducing
        return [tuple(rng.normal(size=(g.count, size)) for size in sizes) for g in groups]

    def functions(g):
        k = g.depends_on.shape[1]
        scales = rng.uniform(0.7, 2.0, (g.count, k)), rng.uniform(0.5, 2.0, g.count)
        return *scales, rng.normal(size=(g.count, inducing, k)), rng.normal(size=(g.count, features, k))

    fixed, first, second = [functions(g) for g in groups], coefficients(), coefficients()
    combined = jax.tree.map(lambda a, b: FACTORS[0] * a + FACTORS[1] * b, first, second)
    x = rng.normal(size=(9, dimension))

    def compute(coefficients):
        paths = [jax.vmap(_path)(*map(jnp.asarray, f), *c) for f, c in zip(fixed, coefficients, strict=True)]
        field = structure.field(paths, dimension)
        energy = getattr(field, "energy", None)
        energies = None if energy is None else jax.vmap(jax.value_and_grad(energy))(x)
        jacobians = jax.vmap(jax.jacfwd(field))(x) if case in DIFFERENTIATED else None
        return Facts(paths, jnp.asarray(x), jax.vmap(field)(x), jacobians, *(energies or (None, None)))

    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), first, second, combined)
    all_three = jax.tree.map(np.asarray, jax.jit(jax.vmap(compute))(stacked))
    of_first = jax.tree.map(lambda leaf: leaf[0], all_three)
    return of_first._replace(second=all_three.values[1], combined=all_three.values[2])


def _path(lengthscale, variance, inducing, frequencies, cosine_weights, sine_weights, update) -> Path:
    kernel = SquaredExponential(lengthscale, variance)
    return Path(kernel, inducing, frequencies, cosine_weights, sine_weights, update)


def value(path: Path, i: int, y: np.ndarray) -> float:
    """The i-th path of a stack at y, written out."""
    phase, bumps = _phase_and_bumps(path, i, y)
    waves = path.cosine_weights[i] @ np.cos(phase) + path.sine_weights[i] @ np.sin(phase)
    return np.exp(path.kernel.log_variance[i] / 2) * waves + bumps.sum()


def gradient(path: Path, i: int, y: np.ndarray) -> np.ndarray:
    """Its gradient, written out."""
    phase, bumps = _phase_and_bumps(path, i, y)
    lengthscale = np.exp(path.kernel.log_lengthscale[i])
    waves = path.sine_weights[i] * np.cos(phase) - path.cosine_weights[i] * np.sin(phase)
    waves = np.exp(path.kernel.log_variance[i] / 2) * waves
    return waves @ path.frequencies[i] / lengthscale - bumps @ (y - path.inducing[i]) / lengthscale**2


def _phase_and_bumps(path: Path, i: int, y: np.ndarray):
    lengthscale = np.exp(path.kernel.log_lengthscale[i])
    r = np.linalg.norm((y - path.inducing[i]) / lengthscale, axis=1)
    bumps = path.update[i] * np.exp(path.kernel.log_variance[i]) * np.exp(-(r**2) / 2)
    return path.frequencies[i] @ (y / lengthscale), bumps
