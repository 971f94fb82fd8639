"""Methods as data. Nothing here computes a step; everything here can be verified from the coefficients."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sgpd.errors import BadInput
from sgpd.integrators.trees import HIGHEST_ORDER, order_of

COEFFICIENTS = "check the coefficients"


@dataclass(frozen=True, eq=False)
class Tableau:
    """A Runge-Kutta method: x₁ = x₀ + h Σᵢ bᵢ gᵢ  with  gᵢ = f(x₀ + h Σⱼ aᵢⱼ gⱼ).

    `a` is the whole square, so explicit and implicit methods are one type. The stated order is checked against the
    order conditions (up to order 6) when the tableau is made; one that overstates it is refused.
    """

    name: str
    a: np.ndarray
    b: np.ndarray
    order: int

    def __post_init__(self):
        a, b = _coefficients(self.name, self.a, self.b)
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "b", b)
        _verify_order(self.name, self.order, order_of((a,), (b,)))

    @property
    def c(self) -> np.ndarray:
        """The nodes: where in the step each stage sits."""
        return self.a.sum(axis=1)

    @property
    def stages(self) -> int:
        """The number of stages."""
        return len(self.b)

    @property
    def implicit(self) -> bool:
        """Whether some stage needs itself or a later one."""
        return bool(np.triu(self.a).any())

    @property
    def symplectic(self) -> bool:
        """Whether bᵢaᵢⱼ + bⱼaⱼᵢ = bᵢbⱼ: then Hamiltonian flows stay symplectic and quadratic invariants stay put."""
        m = self.b[:, None] * self.a
        return np.allclose(m + m.T, np.outer(self.b, self.b), rtol=0, atol=1e-14)

    def compose(self, name: str, weights: Sequence[float], order: int) -> "Tableau":
        """The method that takes steps w₁h, w₂h, ... one after the other, as one tableau."""
        s, before = self.stages, np.zeros((0,))
        a = np.zeros((s * len(weights), s * len(weights)))
        for k, w in enumerate(weights):
            rows = slice(k * s, (k + 1) * s)
            a[rows, : k * s] = before  # what the earlier sub-steps have added up to
            a[rows, rows] = w * self.a
            before = np.concatenate([before, w * self.b])
        return Tableau(name, a, before, order)


@dataclass(frozen=True, eq=False)
class PartitionedTableau:
    """Two Runge-Kutta methods side by side: `p` for the momenta, `q` for the positions."""

    name: str
    p: Tableau
    q: Tableau
    order: int

    def __post_init__(self):
        if self.p.stages != self.q.stages:
            raise BadInput(
                f"{self.name}: both methods need as many stages, got {self.p.stages} and {self.q.stages}", COEFFICIENTS
            )
        _verify_order(self.name, self.order, order_of((self.p.a, self.q.a), (self.p.b, self.q.b)))

    @property
    def implicit(self) -> bool:
        """Pairs are solved as implicit methods; explicit ones are written as a `Splitting`."""
        return True

    @property
    def symplectic(self) -> bool:
        """Whether bᵢ = b̂ᵢ and bᵢâᵢⱼ + b̂ⱼaⱼᵢ = bᵢb̂ⱼ: then Hamiltonian flows stay symplectic."""
        m = self.p.b[:, None] * self.q.a + (self.q.b[:, None] * self.p.a).T
        return np.allclose(self.p.b, self.q.b) and np.allclose(m, np.outer(self.p.b, self.q.b), rtol=0, atol=1e-14)


@dataclass(frozen=True, eq=False)
class Splitting:
    """An explicit method for split fields: kicks p += kᵢ h dp(q) and drifts q += dᵢ h dq(p), in turn, a kick first.

    Each kick and each drift is a shear, so every splitting is symplectic for separable Hamiltonian fields and keeps
    volume for all split fields. A coefficient 0 skips its part.
    """

    name: str
    kicks: np.ndarray
    drifts: np.ndarray
    order: int

    def __post_init__(self):
        kicks, drifts = np.array(self.kicks, float), np.array(self.drifts, float)
        object.__setattr__(self, "kicks", kicks)
        object.__setattr__(self, "drifts", drifts)
        if kicks.ndim != 1 or kicks.shape != drifts.shape:
            raise BadInput(
                f"{self.name}: needs as many kicks as drifts, got {kicks.shape} and {drifts.shape}", COEFFICIENTS
            )
        for part in (kicks, drifts):
            _require_consistency(self.name, part)
        _verify_order(self.name, self.order, order_of(*self._as_pair(), alternating=True))

    @property
    def implicit(self) -> bool:
        """No equations to solve."""
        return False

    @property
    def symplectic(self) -> bool:
        """A product of shears always is."""
        return True

    def _as_pair(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """The same method as a partitioned Runge-Kutta pair ((aₚ, a_q), (bₚ, b_q)).

        Kick i happens after the drifts before it, so the stage where it evaluates dp(q) has seen those drifts; drift i
        comes after kick i.
        """
        s = len(self.kicks)
        seen_by_drift = np.tril(np.ones((s, s))) * self.kicks
        seen_by_kick = np.tril(np.ones((s, s)), -1) * self.drifts
        return (seen_by_drift, seen_by_kick), (self.kicks, self.drifts)

    def compose(self, name: str, weights: Sequence[float], order: int) -> "Splitting":
        """The method that takes steps w₁h, w₂h, ...; a kick that meets a kick is merged with it."""
        kicks, drifts = [], []
        for w in weights:
            for kick, drift in zip(w * self.kicks, w * self.drifts, strict=True):
                if drifts and drifts[-1] == 0:
                    kicks[-1], drifts[-1] = kicks[-1] + kick, drift
                else:
                    kicks.append(kick)
                    drifts.append(drift)
        return Splitting(name, np.array(kicks), np.array(drifts), order)


def _coefficients(name: str, a, b) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.array(a, float), np.array(b, float)
    if b.ndim != 1 or a.shape != (len(b), len(b)):
        raise BadInput(
            f"{name}: `a` must be square with a row for each weight in `b`, got {a.shape} and {b.shape}", COEFFICIENTS
        )
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise BadInput(f"{name}: all coefficients must be finite numbers", COEFFICIENTS)
    _require_consistency(name, b)
    return a, b


def _require_consistency(name: str, b: np.ndarray):
    if not abs(b.sum() - 1) <= 1e-12:  # a sum that is not a number is refused too
        raise BadInput(f"{name}: weights must sum to 1 (consistency), got {b.sum()!r}", COEFFICIENTS)


def _verify_order(name: str, stated: int, found: int):
    if stated < 1 or found < min(stated, HIGHEST_ORDER):
        raise BadInput(
            f"{name}: states order {stated}, but its coefficients satisfy the order conditions only up to order "
            f"{found}",
            f"correct the coefficients or state order {found}",
        )
