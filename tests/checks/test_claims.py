"""The table of what a structure and an integrator preserve together, measured on fields drawn from Gaussian processes.

What is claimed holds to rounding at a long step; what the mathematics denies is lost by far more than that.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgpd.checks import preserved, require_compatible
from sgpd.fields import SplitField, Traits
from sgpd.integrators import PartitionedRungeKutta, RungeKutta, SplitStep, get, names, rollout
from sgpd.structures import Hamiltonian, Separable
from tests.checks.drawing import (
    CASES,
    GAUSS_6_PAIR,
    QUICK_TO_COMPILE,
    STEP,
    drawn_fields,
    methods,
    one_step,
    square,
    square_step,
)

LIMITS = {"volume": ("determinant", 1e-12), "symplectic form": ("symplectic", 1e-11)}
LIMITS["quadratic invariant"] = ("invariant", 1e-12)

SYMPLECTIC_RUNGE_KUTTA = {"implicit-midpoint", "gauss-4", "gauss-6"}
SPLIT = {name for name in names() if isinstance(get(name), SplitStep)}
PAIR = "lobatto-iiia-iiib-4"

# What the table says, written out once more: structure to claim to methods.
SYMPLECTIC = SYMPLECTIC_RUNGE_KUTTA | {PAIR, "gauss-6-pair"}
QUADRATIC = ["tangent", "tangent to Q", "tangent in 4-D", "lie-poisson", "solved"]
TABLE = {
    "free": {},
    "separable": dict.fromkeys(["volume", "symplectic form"], SYMPLECTIC | SPLIT),
    "components": {"volume": SPLIT | {"implicit-midpoint", "gauss-4", PAIR}},
    "components one degree": dict.fromkeys(["volume", "symplectic form"], SYMPLECTIC | SPLIT),
    "hamiltonian": dict.fromkeys(["volume", "symplectic form"], SYMPLECTIC),
    **{case: {"quadratic invariant": SYMPLECTIC_RUNGE_KUTTA} for case in QUADRATIC},
}


@pytest.mark.parametrize("case", CASES)
def test_the_table_claims_what_is_written_here(case):
    structure, dimension = CASES[case]
    claimed = {m.name: set(preserved(structure.traits(dimension), m)) for m in methods(case)}
    written = {m.name: {claim for claim, keep in TABLE[case].items() if m.name in keep} for m in methods(case)}
    assert claimed == written


@pytest.mark.parametrize("case", [case for case in CASES if TABLE[case]])
def test_every_claim_of_the_table_holds_to_rounding_on_drawn_fields(case):
    structure, dimension = CASES[case]
    found = one_step(case)
    measured = 0
    for method in methods(case):
        for claim in preserved(structure.traits(dimension), method):
            quantity, limit = LIMITS[claim]
            assert getattr(found[method.name], quantity) < limit, (method.name, claim)
            measured += 1
    assert measured >= 3


@pytest.mark.parametrize("case", ["separable", "components one degree", "hamiltonian"])
def test_other_methods_lose_the_symplectic_form_of_hamiltonian_fields(case):
    lost = {name: found.symplectic for name, found in one_step(case).items() if name not in TABLE[case]["volume"]}
    assert len(lost) >= 6
    assert min(lost.values()) > 1e-7, lost


def test_independent_components_lose_the_symplectic_form_under_every_method():
    found = one_step("components")
    assert len(found) == len(methods("components"))
    assert min(f.symplectic for f in found.values()) > 1e-4


@pytest.mark.parametrize("name", ["gauss-6", "gauss-6-pair", "rk4", "trapezoidal", "radau-iia-5"])
def test_independent_components_lose_their_volume_under_the_methods_that_do_not_claim_it(name):
    assert one_step("components")[name].determinant > 1e-10


def test_no_method_keeps_the_volume_of_a_free_field():
    assert min(f.determinant for f in one_step("free").values()) > 1e-3


@pytest.mark.parametrize("case", QUADRATIC)
def test_the_quadratic_invariant_is_lost_by_all_but_symplectic_runge_kutta_methods(case):
    """Among the others is the Lobatto pair, in four dimensions: it is symplectic, and still does not keep it."""
    others = {n: f.invariant for n, f in one_step(case).items() if n not in {*SYMPLECTIC_RUNGE_KUTTA, "gauss-6-pair"}}
    assert (PAIR in others) == (case == "tangent in 4-D")
    assert len(others) >= 6
    assert min(others.values()) > 1e-9, others


@pytest.mark.parametrize("name", sorted(SYMPLECTIC_RUNGE_KUTTA))
def test_gauss_methods_do_not_keep_the_volume_of_a_lie_poisson_field(name):
    assert one_step("lie-poisson")[name].determinant > 1e-9


def test_a_drawn_tangent_field_stays_on_its_sphere_for_ten_thousand_implicit_midpoint_steps():
    fields = drawn_fields("tangent")
    x0 = jnp.array([0.6, -0.5, 0.6])
    roll = jax.jit(jax.vmap(lambda field: rollout(get("implicit-midpoint"), field, x0, jnp.full(10_000, 0.2))))
    path = roll(fields)
    assert path.converged.all()
    square = np.sum(np.asarray(path.states) ** 2, axis=2)
    assert np.abs(square / square[:, :1] - 1).max() < 1e-10
    assert np.ptp(np.asarray(path.states), axis=1).max() > 0.1  # it does move


def test_methods_written_as_squares_take_the_steps_of_the_methods():
    """What is measured above is the method itself, though one compiled program steps them all."""
    field = SplitField(dp=lambda q: -jnp.sin(q) - 0.3 * q**2, dq=lambda p: p - 0.1 * p**3)
    x = jnp.array([0.7, -0.4])
    steppers = methods("components one degree")
    a, b = map(np.stack, zip(*(square(m, 2) for m in steppers), strict=True))
    squares, _ = jax.jit(jax.vmap(lambda a, b: square_step(field, x, a, b)))(a, b)
    own = jax.jit(
        lambda x: [m.advance(field, x, jnp.asarray(STEP))[0] for m in steppers], compiler_options=QUICK_TO_COMPILE
    )(x)
    np.testing.assert_allclose(squares, np.stack(own), rtol=0, atol=1e-14)
    assert {type(m) for m in steppers} == {RungeKutta, PartitionedRungeKutta, SplitStep}


# -- the table's reasons


def test_a_pair_made_of_one_method_twice_promises_no_more_volume_than_the_method():
    traits = Traits(split=True)
    assert GAUSS_6_PAIR.symplectic
    assert preserved(traits, get("gauss-6")) == preserved(traits, GAUSS_6_PAIR) == frozenset()


def test_a_method_of_the_user_is_judged_by_its_coefficients():
    """Two half steps of implicit midpoint, written as one tableau, keep what implicit midpoint keeps."""
    composed = RungeKutta(get("implicit-midpoint").tableau.compose("two midpoints", [0.5, 0.5], 2))
    for traits in (Traits(hamiltonian=True), Traits(split=True), Traits(invariant=np.eye(3))):
        assert preserved(traits, composed) == preserved(traits, get("implicit-midpoint")) != frozenset()


def test_traits_together_claim_together():
    claims = preserved(Traits(hamiltonian=True, split=True, invariant=np.eye(2)), get("gauss-6"))
    assert claims == {"volume", "symplectic form", "quadratic invariant"}


# -- compatibility


@pytest.mark.parametrize("name", sorted(SPLIT))
def test_a_split_method_refuses_a_structure_that_does_not_split_and_names_a_remedy(name):
    structure = Hamiltonian()
    with pytest.raises(ValueError, match="needs the structure 'separable', not 'hamiltonian'") as refused:
        require_compatible(structure.traits(2), get(name), structure.name)
    assert name in str(refused.value)
    assert "use 'implicit-midpoint', 'gauss-4' or 'lobatto-iiia-iiib-4'" in str(refused.value)


@pytest.mark.parametrize("form", ["potential", "components"])
def test_every_method_accepts_a_separable_structure(form):
    structure = Separable(form=form)
    for name in names():
        require_compatible(structure.traits(4), get(name), structure.name)


def test_every_method_but_the_split_ones_accepts_any_structure():
    for name in set(names()) - SPLIT:
        require_compatible(Traits(), get(name), "free")
    assert any(isinstance(get(name), PartitionedRungeKutta) for name in set(names()) - SPLIT)
