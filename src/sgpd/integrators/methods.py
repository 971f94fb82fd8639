"""One step of a method. A method is a tableau; the classes here only know how to step one."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from sgpd.arrays import Scalar, State
from sgpd.errors import BadInput
from sgpd.fields import Field, halves
from sgpd.integrators.implicit import Newton, StepInfo, solve_stages
from sgpd.integrators.response import Response, explicit_response, implicit_response, split_response
from sgpd.integrators.tableau import PartitionedTableau, Splitting, Tableau


@dataclass(frozen=True, eq=False)
class Integrator(ABC):
    """A one-step method: a tableau and the way to step it."""

    tableau: Tableau | PartitionedTableau | Splitting

    @property
    def name(self) -> str:
        """The method's name."""
        return self.tableau.name

    @property
    def order(self) -> int:
        """The order of convergence."""
        return self.tableau.order

    @property
    def symplectic(self) -> bool:
        """Whether the Hamiltonian fields that it accepts are stepped symplectically; computed from the coefficients."""
        return self.tableau.symplectic

    @property
    def implicit(self) -> bool:
        """Whether a step solves equations."""
        return self.tableau.implicit

    @abstractmethod
    def advance(self, field: Field, x: State, h: Scalar) -> tuple[State, StepInfo]:
        """One step, to be called inside a compiled function."""

    def respond(self, field: Field, x: State, h: Scalar) -> Response:
        """The same step with its derivatives: by x, and by the field's values at the points where it looks.

        The default fit steps by this alone: a method of your own that has it can be fitted with.
        """
        raise BadInput(f"{self.name} does not say how its step responds to the field", "give its class `respond`")

    def step(self, field: Field, x: State, h: float | Scalar) -> tuple[State, StepInfo]:
        """One compiled step of length h from x: the new state, and how the solve went."""
        x, h = jnp.asarray(x, float), jnp.asarray(h, float)
        if x.ndim != 1 or h.ndim != 0:
            raise BadInput(
                f"A step takes one state (d,) and one step length, got shapes {x.shape} and {h.shape}",
                "use jax.vmap for a batch",
            )
        return _compiled_step(self, field, x, h)


@eqx.filter_jit
def _compiled_step(method, field, x, h):
    return method.advance(field, x, h)


@dataclass(frozen=True, eq=False)
class RungeKutta(Integrator):
    """Any Runge-Kutta method, explicit or implicit, for any field."""

    tableau: Tableau
    newton: Newton = field(default_factory=Newton)

    def coefficients(self, dimension: int) -> tuple[np.ndarray, np.ndarray]:
        """a (s, s, d) and b (s, d), by coordinate."""
        ones = np.ones(dimension)
        return self.tableau.a[:, :, None] * ones, self.tableau.b[:, None] * ones

    def advance(self, field: Field, x: State, h: Scalar) -> tuple[State, StepInfo]:
        """One step, to be called inside a compiled function."""
        if self.implicit:
            a, b = self.coefficients(x.shape[0])
            stages, info = solve_stages(field, x, h, jnp.asarray(a), self.newton)
            return x + h * (jnp.asarray(b) * stages).sum(axis=0), info
        stages = []
        for row in self.tableau.a:
            stages.append(field(x + h * _combination(row, stages)))
        return x + h * _combination(self.tableau.b, stages), StepInfo.explicit()

    def respond(self, field: Field, x: State, h: Scalar) -> Response:
        """A step with its derivatives."""
        a, b = map(jnp.asarray, self.coefficients(x.shape[0]))
        if self.implicit:
            return implicit_response(field, x, h, a, b, self.newton)
        return explicit_response(field, x, h, a, b)


@dataclass(frozen=True, eq=False)
class PartitionedRungeKutta(Integrator):
    """A pair of implicit Runge-Kutta methods, one for the momenta and one for the positions of any x = (p, q)."""

    tableau: PartitionedTableau
    newton: Newton = field(default_factory=Newton)

    def coefficients(self, dimension: int) -> tuple[np.ndarray, np.ndarray]:
        """a (s, s, d) and b (s, d), by coordinate: those of momenta first."""
        n = halves(jnp.empty(dimension))[0].shape[0]
        pair = self.tableau.p, self.tableau.q
        a = np.concatenate([np.repeat(t.a[:, :, None], n, axis=2) for t in pair], axis=2)
        b = np.concatenate([np.repeat(t.b[:, None], n, axis=1) for t in pair], axis=1)
        return a, b

    def advance(self, field: Field, x: State, h: Scalar) -> tuple[State, StepInfo]:
        """One step, to be called inside a compiled function."""
        a, b = self.coefficients(x.shape[0])
        stages, info = solve_stages(field, x, h, jnp.asarray(a), self.newton)
        return x + h * (jnp.asarray(b) * stages).sum(axis=0), info

    def respond(self, field: Field, x: State, h: Scalar) -> Response:
        """A step with its derivatives."""
        a, b = map(jnp.asarray, self.coefficients(x.shape[0]))
        return implicit_response(field, x, h, a, b, self.newton)


@dataclass(frozen=True, eq=False)
class SplitStep(Integrator):
    """An explicit symplectic method: kicks and drifts in turn. Accepts split fields only."""

    tableau: Splitting

    def advance(self, field: Field, x: State, h: Scalar) -> tuple[State, StepInfo]:
        """One step, to be called inside a compiled function."""
        dp, dq = getattr(field, "dp", None), getattr(field, "dq", None)
        if dp is None or dq is None:
            raise BadInput(
                f"{self.name} steps momenta and positions in turn and needs a split field (dp(q), dq(p))",
                "wrap yours "
                "in sgpd.SplitField, use the structure 'separable', or take 'implicit-midpoint' or 'gauss-4' instead",
            )
        p, q = halves(x)
        for kick, drift in zip(self.tableau.kicks, self.tableau.drifts, strict=True):
            if kick:
                p = p + kick * h * dp(q)
            if drift:
                q = q + drift * h * dq(p)
        return jnp.concatenate([p, q]), StepInfo.explicit()

    def respond(self, field: Field, x: State, h: Scalar) -> Response:
        """A step with its derivatives."""
        return split_response(self.tableau, field, x, h)


def _combination(coefficients: np.ndarray, stages: list[State]) -> State | float:
    """Σⱼ cⱼ gⱼ over the stages there are, without the zeros."""
    return sum((c * g for c, g in zip(coefficients, stages, strict=False) if c), start=0.0)
