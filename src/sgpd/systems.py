"""True systems to learn from: field, energy, invariants, and solutions to ten digits.

The settings are those of the paper's experiments, with its misprints put right. States of Hamiltonian systems are
(p, q), momenta first.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from sgpd.arrays import Scalar, State
from sgpd.errors import BadInput, NumericalFailure, Outcome, unknown_name
from sgpd.fields import Field, SplitField, halves
from sgpd.xla.tuning import tune_unless_told_not_to


@dataclass(frozen=True, eq=False)
class System:
    """An autonomous system x' = field(x), and how the paper records it."""

    name: str
    names: tuple[str, ...]  # of the coordinates
    field: Field
    energy: Callable[[State], Scalar]
    structure: str  # the structure that it has
    x0: np.ndarray
    step: float
    duration: float  # of the recording
    horizon: float  # of the forecast
    noise_variance: tuple[float, ...]
    invariants: Mapping[str, Callable[[State], Scalar]] = dataclasses.field(default_factory=dict)  # besides the energy

    def simulate(self, x0, times) -> np.ndarray:
        """The exact solution at `times`, from x0 at times[0], by DOP853 with tolerance 1e-12."""
        from scipy.integrate import solve_ivp  # slow to import

        x0, times = np.asarray(x0, float), np.asarray(times, float)
        if x0.shape != (len(self.names),) or not np.isfinite(x0).all():
            raise BadInput(
                f"The state of {self.name} is {len(self.names)} finite numbers, got {x0}",
                f"give {', '.join(self.names)}",
            )
        if times.ndim != 1 or len(times) < 2 or not np.isfinite(times).all() or not (np.diff(times) > 0).all():
            raise BadInput("Times to simulate must be at least two finite numbers that increase", "sort them")
        tune_unless_told_not_to()
        derivative = jax.jit(self.field)
        if not np.isfinite(derivative(x0)).all():  # the solver would choose no first step, and never end
            raise NumericalFailure(Outcome.NOT_FINITE, f"The field of {self.name} is not finite at {x0}.")
        solution = solve_ivp(
            lambda t, x: np.asarray(derivative(x)),
            (times[0], times[-1]),
            x0,
            method="DOP853",
            t_eval=times,
            rtol=1e-12,
            atol=1e-12,
        )
        if not solution.success:
            raise NumericalFailure(Outcome.NOT_FINITE, solution.message)
        return solution.y.T

    def record(self, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """A noisy recording as in the paper: times (n,) and states (n, d); the first state is free of noise."""
        rng = np.random.default_rng(seed)
        times = self.step * np.arange(round(self.duration / self.step))
        states = self.simulate(self.x0, times)
        states[1:] += rng.normal(size=states[1:].shape) * np.sqrt(self.noise_variance)
        return times, states


def _pendulum() -> System:
    return System(
        name="pendulum",
        names=("p", "q"),
        field=SplitField(dp=lambda q: -6 * jnp.sin(q), dq=lambda p: p),
        energy=lambda x: 6 * (1 - jnp.cos(x[1])) + x[0] ** 2 / 2,
        structure="separable",
        x0=np.array([2.0, 2.0]),
        step=0.1,
        duration=10.0,
        horizon=40.0,
        noise_variance=(0.1, 0.1),
    )


def _two_body() -> System:
    """Two unit masses under gravity in the plane; the state is (p1, p2, q1, q2) with two coordinates each."""

    def force(q: State) -> State:
        apart = q[:2] - q[2:]
        pull = -apart / jnp.linalg.norm(apart) ** 3
        return jnp.concatenate([pull, -pull])

    def energy(x: State) -> Scalar:
        p, q = halves(x)
        return p @ p / 2 - 1 / jnp.linalg.norm(q[:2] - q[2:])

    def angular_momentum(x: State) -> Scalar:
        p, q = halves(x)
        return q[0] * p[1] - q[1] * p[0] + q[2] * p[3] - q[3] * p[2]

    return System(
        name="two-body",
        names=("p1x", "p1y", "p2x", "p2y", "q1x", "q1y", "q2x", "q2y"),
        field=SplitField(dp=force, dq=lambda p: p),
        energy=energy,
        structure="separable",
        x0=np.array([-0.241, 0.313, 0.241, -0.313, 1.144, 0.880, -1.144, -0.880]),
        step=0.15,
        duration=18.75,
        horizon=30.0,
        noise_variance=(1e-3,) * 8,
        invariants={
            "momentum x": lambda x: x[0] + x[2],
            "momentum y": lambda x: x[1] + x[3],
            "angular momentum": angular_momentum,
        },
    )


def _non_separable() -> System:
    return System(
        name="non-separable",
        names=("p", "q"),
        field=lambda x: jnp.stack([-x[1] * (x[0] ** 2 + 1), x[0] * (x[1] ** 2 + 1)]),
        energy=lambda x: (x[1] ** 2 + 1) * (x[0] ** 2 + 1) / 2,
        structure="hamiltonian",
        x0=np.array([0.0, -1.5 / 4]),
        step=0.1,
        duration=10.0,
        horizon=40.0,
        noise_variance=(5e-4, 5e-4),
    )


def _rigid_body() -> System:
    return System(
        name="rigid-body",
        names=("x1", "x2", "x3"),
        field=lambda x: jnp.stack([x[1] * x[2] / 2, -x[0] * x[2], x[0] * x[1] / 2]),
        energy=lambda x: x[0] ** 2 / 2 + x[1] ** 2 + 3 * x[2] ** 2 / 2,
        structure="quadratic-invariant",
        x0=np.array([np.cos(1.1), 0.0, np.sin(1.1)]),
        step=0.1,
        duration=15.0,
        horizon=50.0,
        noise_variance=(1e-3, 1e-3, 1e-4),
        invariants={"|x|²": lambda x: x @ x},
    )


_SYSTEMS = {
    "pendulum": _pendulum,
    "two-body": _two_body,
    "non-separable": _non_separable,
    "rigid-body": _rigid_body,
}


def names() -> list[str]:
    """The names of all systems."""
    return list(_SYSTEMS)


def get(name: str) -> System:
    """The system of that name."""
    if name not in _SYSTEMS:
        raise unknown_name("system", name, _SYSTEMS)
    return _SYSTEMS[name]()
