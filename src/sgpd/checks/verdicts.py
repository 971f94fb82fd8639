"""Measurements against their limits, in words."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sgpd.checks.claims import Claim, preserved
from sgpd.checks.ids import CheckId
from sgpd.checks.measures import Measurements, measure
from sgpd.fields import Field, Traits
from sgpd.integrators import Integrator
from sgpd.xla.tuning import tune_unless_told_not_to

Verdict = Literal["PASS", "ATTENTION", "FAIL", "NOT MEASURED"]
_SEVERITY: tuple[Verdict, ...] = ("PASS", "ATTENTION", "NOT MEASURED", "FAIL")


@dataclass(frozen=True)
class Check:
    """One claim, measured."""

    id: str
    title: str
    value: float | None
    limit: float | None
    verdict: Verdict
    sentence: str
    remedy: str = ""

    @property
    def words(self) -> str:
        """What was found and, where it does not hold, what to do about it."""
        return f"{self.sentence} {self.remedy}".strip()


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts; of none, that nothing was measured."""
    ranks = [_SEVERITY.index(each) for each in verdicts]
    return _SEVERITY[max(ranks)] if ranks else "NOT MEASURED"


@dataclass(frozen=True)
class CheckReport:
    """All claims of a model or field. `passed` when none of them fails; a claim not measured never counts as passed."""

    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all."""
        return worst(check.verdict for check in self.checks)

    @property
    def passed(self) -> bool:
        """Whether every claim was measured and holds (ATTENTION does not fail)."""
        return self.verdict in ("PASS", "ATTENTION")

    def __getitem__(self, check_id: str) -> Check:
        return {check.id: check for check in self.checks}[check_id]

    def to_dict(self) -> dict:
        """For machines; fields are only ever added."""
        return {"schema": "sgpd.check/1", "verdict": self.verdict, "checks": [asdict(check) for check in self.checks]}

    def __str__(self) -> str:
        return "\n".join(f"{check.verdict:<13} {check.sentence}" for check in self.checks)


# id, which is the field of Measurements: title, limit, what to do when it does not hold
_MEASURED = {
    CheckId.DETERMINANT: (
        "determinant of the step - 1",
        1e-10,
        "Volume is not kept; use a longer-tested pair or shorter h.",
    ),
    CheckId.SYMPLECTIC: (
        "symplectic defect of the step",
        1e-10,
        "The step is not symplectic; check that its stages converge.",
    ),
    CheckId.INVARIANT: ("change of xᵀQx", 1e-8, "The invariant drifts; use a shorter step or another form."),
    CheckId.ENERGY_WANDER: ("energy wander", 0.05, "Use a shorter step or a method of higher order."),
    CheckId.ENERGY_TREND: ("energy trend", 0.01, "The energy drifts; use a shorter step."),
}
_CLAIMED_BY: dict[Claim, tuple[CheckId, ...]] = {
    "volume": (CheckId.DETERMINANT,),
    "symplectic form": (CheckId.SYMPLECTIC, CheckId.ENERGY_WANDER, CheckId.ENERGY_TREND),
    "quadratic invariant": (CheckId.INVARIANT,),
}


def judge(found: Measurements, claims: frozenset[Claim], implicit: bool) -> CheckReport:
    """Exactly the claims made, each against its limit. `found` has a leading axis of paths; the worst one counts.

    The energy is judged where the field has one. No method keeps it: to wander far asks for attention, no more.
    """
    ids = [check_id for claim in _CLAIMED_BY if claim in claims for check_id in _CLAIMED_BY[claim]]
    ids = [check_id for check_id in ids if getattr(found, check_id) is not None]
    usable = np.asarray(found.finite) & np.asarray(found.converged)
    checks = [_judge_one(check_id, np.asarray(getattr(found, check_id)), usable) for check_id in ids]
    return CheckReport((*checks, _solver_check(found, usable, implicit)))


def _judge_one(check_id: CheckId, values: np.ndarray, usable: np.ndarray) -> Check:
    title, limit, remedy = _MEASURED[check_id]
    if not usable.any() or np.isnan(values[usable]).all():
        reason = "no path stayed finite and converged" if not usable.any() else "it is not defined for this field"
        return Check(check_id, title, None, limit, "NOT MEASURED", f"{_sentence_case(title)}: not tested, {reason}.")
    worst = float(values[usable].max())
    holds, broken = worst <= limit, "ATTENTION" if check_id is CheckId.ENERGY_WANDER else "FAIL"
    sentence = f"{_sentence_case(title)}: at most {worst:.1e} on {usable.sum()} paths (limit {limit:g})."
    return Check(check_id, title, worst, limit, "PASS" if holds else broken, sentence, "" if holds else remedy)


def _sentence_case(title: str) -> str:
    return title[0].upper() + title[1:]


def _solver_check(found: Measurements, usable: np.ndarray, implicit: bool) -> Check:
    failed, total = int((~usable).sum()), usable.size
    residual = float(np.max(np.asarray(found.residual)))
    if failed == 0:
        solved = f", stage residuals at most {residual:.1e}" if implicit else ""
        sentence = f"Every step of all {total} paths stayed finite{' and converged' if implicit else ''}{solved}."
        return Check(CheckId.STEPS, "paths that failed", 0.0, 0.0, "PASS", sentence)
    verdict: Verdict = "FAIL" if failed > total / 2 else "ATTENTION"
    sentence = (
        f"{failed} of {total} paths became infinite or NaN, or did not converge; they are left out of the other checks."
    )
    remedy = "Shorten the step or the horizon, or start inside the recorded region."
    return Check(CheckId.STEPS, "paths that failed", float(failed), 0.0, verdict, sentence, remedy)


@eqx.filter_jit
def _measure_each(field, integrator, x0, h, steps, invariant):
    return eqx.filter_vmap(lambda x: measure(field, integrator, x, h, steps, invariant))(x0)


def check_field(
    field: Field,
    integrator: Integrator,
    x0: Sequence | np.ndarray | Array,
    h: float,
    steps: int,
    traits: Traits | None = None,
) -> CheckReport:
    """Measure what `integrator` should keep of any callable field with these traits (Hamiltonian by default).

    `x0` is one state or several, (n, d). An energy is followed where the field has one, as `field.energy(x)`.
    """
    tune_unless_told_not_to()
    traits = Traits(hamiltonian=True) if traits is None else traits
    starts = jnp.atleast_2d(jnp.asarray(x0, float))
    invariant = None if traits.invariant is None else jnp.asarray(traits.invariant)
    found = _measure_each(field, integrator, starts, jnp.asarray(h, float), steps, invariant)
    return judge(found, preserved(traits, integrator), integrator.implicit)
