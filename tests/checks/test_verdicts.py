"""Reports say what was measured, and pass only where all that was claimed was measured and holds."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from sgpd import systems
from sgpd.checks import Check, CheckReport, Measurements, check_field, judge
from sgpd.fields import SplitField, Traits
from sgpd.integrators import get

IDS = ["determinant", "symplectic", "energy_wander", "energy_trend", "steps"]
KEYS = {"id", "title", "value", "limit", "verdict", "sentence", "remedy"}


def pendulum():
    """The pendulum as a field that knows its energy."""
    system = systems.get("pendulum")
    return SplitField(system.field.dp, system.field.dq, system.energy)


def check(verdict, name="determinant"):
    return Check(name, "title", 0.0, 1.0, verdict, "Sentence.")


def found(paths=4, **changes) -> Measurements:
    """Faultless measurements of some paths, but for the changes."""
    faultless = {name: np.zeros(paths) for name in Measurements._fields}
    faultless |= {"converged": np.ones(paths, bool), "finite": np.ones(paths, bool)}
    return Measurements(**{name: np.asarray(value) for name, value in (faultless | changes).items()})


HAMILTONIAN = frozenset({"volume", "symplectic form"})


# -- known systems


def test_the_pendulum_under_verlet_passes_with_or_without_an_energy_to_follow():
    system = systems.get("pendulum")
    report = check_field(pendulum(), get("stormer-verlet"), system.x0, h=0.1, steps=400)
    assert [c.id for c in report.checks] == IDS
    assert report.passed
    assert report.verdict == "PASS"
    assert 1e-3 < report["energy_wander"].value < 0.05

    bare = check_field(system.field, get("stormer-verlet"), [[2.0, 2.0], [0.0, 1.0]], h=0.1, steps=400)
    assert [c.id for c in bare.checks] == ["determinant", "symplectic", "steps"]
    assert bare.passed
    assert "on 2 paths" in bare["symplectic"].sentence


def test_the_rigid_body_under_implicit_midpoint_keeps_its_sphere():
    body = systems.get("rigid-body")
    report = check_field(body.field, get("implicit-midpoint"), body.x0, 0.2, 200, Traits(invariant=np.eye(3)))
    assert [c.id for c in report.checks] == ["invariant", "steps"]
    assert report.passed
    assert report["invariant"].value < 1e-12
    assert "stage residuals at most" in report["steps"].sentence


def test_friction_claimed_to_be_hamiltonian_fails_and_says_what_to_do():
    friction = lambda x: jnp.stack([-jnp.sin(x[1]) - 0.1 * x[0], x[0]])
    report = check_field(friction, get("implicit-midpoint"), [1.0, 0.5], h=0.1, steps=50)
    assert not report.passed
    assert report.verdict == report["determinant"].verdict == report["symplectic"].verdict == "FAIL"
    # each step shrinks volume by about exp(-0.1 h)
    np.testing.assert_allclose(report["determinant"].value, 1 - np.exp(-0.01), rtol=1e-2)
    assert report["determinant"].remedy
    assert report["steps"].verdict == "PASS"


def test_a_method_that_claims_nothing_is_asked_for_its_steps_only():
    report = check_field(pendulum(), get("rk4"), [2.0, 2.0], h=0.1, steps=5)
    assert [c.id for c in report.checks] == ["steps"]


def test_paths_that_run_away_leave_every_claim_unmeasured_and_nothing_passes():
    """q'' = q³ from rest at 1 escapes in finite time."""
    escaping = SplitField(dp=lambda q: q**3, dq=lambda p: p, energy=lambda x: x[0] ** 2 / 2 - x[1] ** 4 / 4)
    report = check_field(escaping, get("stormer-verlet"), [[0.0, 1.0], [0.0, 2.0]], h=0.2, steps=100)
    assert {c.verdict for c in report.checks if c.id != "steps"} == {"NOT MEASURED"}
    assert all(c.value is None for c in report.checks if c.id != "steps")
    assert report["steps"].verdict == "FAIL"
    assert report["steps"].value == 2
    assert report["steps"].remedy
    assert not report.passed


# -- judging


def test_the_worst_usable_path_counts():
    report = judge(found(determinant=[1e-16, 3e-10, 0.0, 1e-12]), HAMILTONIAN, implicit=True)
    assert report["determinant"].value == 3e-10
    assert report["determinant"].verdict == report.verdict == "FAIL"


@pytest.mark.parametrize("broken", ["converged", "finite"])
def test_paths_that_failed_are_counted_and_left_out(broken):
    bad = {broken: [True, False, True, True], "symplectic": [0.0, 7.0, 0.0, 0.0]}
    report = judge(found(**bad), HAMILTONIAN, implicit=True)
    assert report["symplectic"].verdict == "PASS"
    assert "on 3 paths" in report["symplectic"].sentence
    assert (report["steps"].value, report["steps"].verdict) == (1, "ATTENTION")
    assert "1 of 4 paths" in report["steps"].sentence
    assert report.verdict == "ATTENTION"
    assert report.passed


def test_steps_fail_when_more_than_half_of_the_paths_do():
    half = judge(found(converged=[True, True, False, False]), HAMILTONIAN, implicit=True)
    most = judge(found(converged=[True, False, False, False]), HAMILTONIAN, implicit=True)
    assert (half["steps"].verdict, most["steps"].verdict) == ("ATTENTION", "FAIL")
    assert not most.passed


def test_a_measurement_that_is_not_a_number_never_passes():
    some = judge(found(determinant=[0.0, np.nan, 0.0, 0.0]), HAMILTONIAN, implicit=False)
    none = judge(found(determinant=np.full(4, np.nan)), HAMILTONIAN, implicit=False)
    assert some["determinant"].verdict == "FAIL"
    assert none["determinant"].verdict == "NOT MEASURED"
    assert not some.passed
    assert not none.passed


@pytest.mark.parametrize(
    ("claims", "ids"),
    [
        (frozenset(), ["steps"]),
        (frozenset({"volume"}), ["determinant", "steps"]),
        (frozenset({"quadratic invariant"}), ["invariant", "steps"]),
        (HAMILTONIAN, IDS),
    ],
)
def test_exactly_what_is_claimed_is_judged(claims, ids):
    assert [c.id for c in judge(found(), claims, implicit=False).checks] == ids


# -- reports


@pytest.mark.parametrize(
    ("verdicts", "worst", "passed"),
    [
        (["PASS", "PASS"], "PASS", True),
        (["PASS", "ATTENTION"], "ATTENTION", True),
        (["PASS", "NOT MEASURED"], "NOT MEASURED", False),
        (["ATTENTION", "NOT MEASURED"], "NOT MEASURED", False),
        (["NOT MEASURED", "FAIL", "ATTENTION"], "FAIL", False),
        ([], "NOT MEASURED", False),
    ],
)
def test_a_report_is_as_good_as_its_worst_check_and_unmeasured_is_no_pass(verdicts, worst, passed):
    report = CheckReport(tuple(check(v) for v in verdicts))
    assert report.verdict == worst
    assert report.passed == passed


def test_a_report_for_machines_has_its_fields_and_is_json():
    report = judge(found(finite=np.zeros(4, bool)), HAMILTONIAN, implicit=False)
    written = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert written["schema"] == "sgpd.check/1"
    assert written["verdict"] == "FAIL"
    assert [c["id"] for c in written["checks"]] == IDS
    assert all(set(c) == KEYS for c in written["checks"])


def test_every_failed_check_has_a_sentence_and_a_remedy():
    worst = {name: np.full(4, 10.0) for name in ("determinant", "symplectic", "energy_wander", "energy_trend")}
    report = judge(found(**worst, invariant=np.ones(4)), HAMILTONIAN | {"quadratic invariant"}, implicit=False)
    failed = [c for c in report.checks if c.verdict in ("FAIL", "ATTENTION")]
    assert len(failed) == 5
    assert [c.id for c in failed if c.verdict == "ATTENTION"] == ["energy_wander"]
    for c in failed:
        assert c.sentence.endswith(".")
        assert c.remedy.endswith(".")
        assert c.sentence in str(report)


def test_a_check_is_found_by_its_id():
    report = CheckReport((check("PASS", "a"), check("FAIL", "b")))
    assert report["b"].verdict == "FAIL"
    with pytest.raises(KeyError):
        report["c"]
