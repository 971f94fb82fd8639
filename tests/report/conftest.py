"""Models of every structure, guessed and not fitted: there to be drawn."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from sgpd.checks import Check, CheckReport
from sgpd.inference.posterior.joint import Stored
from sgpd.models import Model
from sgpd.report import About, material, write_report
from sgpd.structures import QuadraticInvariant, Separable
from tests.guesses import FIT, Case, alternating, guessed, holes, oscillators, recorded

ABOUT = About("a <b>pendulum</b>", "sgpd fit 'a&b.csv'", (("a&b.csv", "0" * 64),), (("read", "a&b.csv: 70 rows"),))


LIMITS = {"determinant": 1e-10, "symplectic": 1e-10, "energy_wander": 0.05, "energy_trend": 0.01, "invariant": 1e-8}
CHECKS = CheckReport(
    tuple(Check(name, name, limit / 10, limit, "PASS", f"Checked: {name}.") for name, limit in LIMITS.items())
)


@pytest.fixture(autouse=True, scope="session")
def _small_reports():
    """As the real ones, but with few paths over a short time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(material, "PATHS", 8)
        patch.setattr(material, "MOST_STEPS", 60)
        yield


CASES = {
    "separable, 8": lambda: (oscillators(8), "separable"),
    "components, 4": lambda: (oscillators(4), Separable(form="components")),
    "hamiltonian, 2": lambda: (recorded("non-separable", 40), "hamiltonian"),
    "free, 1": lambda: (oscillators(1), "free"),
    "lie-poisson, 3": lambda: (recorded("rigid-body", 40), QuadraticInvariant(form="lie-poisson")),
    "alternating channels": lambda: (alternating(), "separable"),
    "runs, gaps, missing values": lambda: (holes(), "separable"),
}


SLOW = ("separable, 8", "components, 4", "lie-poisson, 3", "alternating channels")


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in CASES])
def case(request) -> Case:
    data, structure = CASES[request.param]()
    return Case(guessed(data, structure), data)


@pytest.fixture(scope="session")
def pendulum(judged) -> Case:
    return judged


@pytest.fixture(scope="session")
def written(pendulum, tmp_path_factory) -> Path:
    """Its report."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(path, pendulum.model, pendulum.data, CHECKS, ABOUT, pendulum.held_out)


def with_stored_draws(model: Model, count: int, kind: str = "randomised") -> Model:
    """The same model, its posterior kept as draws, of which the first is not usable."""
    stored = Stored.of(model.joint.gaussian(0, count), np.arange(1, count), 3)
    facts = dataclasses.replace(model.facts, fit=dataclasses.replace(FIT, draws=kind, stored_draws=count - 1))
    return dataclasses.replace(model, joint=dataclasses.replace(model.joint, stored=stored), facts=facts)
