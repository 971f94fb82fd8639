"""Every structure's field is the one written in its formula, with the properties that the formula promises."""

import numpy as np
import pytest

from sgpd.fields import SplitField
from sgpd.structures import Separable
from tests.structures.drawing import APART, CASES, FACTORS, OTHERS, Q3, Q4, facts, gradient, value

HAMILTONIAN = ["separable", "translations", "hamiltonian", "hamiltonian of a mix"]
QUADRATIC = {
    "tangent": np.eye(3),
    "tangent to Q": Q4,
    "lie-poisson of Q": Q3,
    "solved for Q": Q4,
    "solved, seeing others": np.eye(3),
}


def canonical(dimension):
    """J, with J f = ∇H for f = (-H_q, H_p)."""
    n = dimension // 2
    return np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])


# -- the formulas, one state at a time, in numpy


def free(paths, x):
    return [value(paths[0], i, x) for i in range(3)]


def separable(paths, x):
    p, q = np.split(x, 2)
    return np.append(-gradient(paths[0], 0, q), gradient(paths[1], 0, p))


def components(paths, x):
    p, q = np.split(x, 2)
    return [-value(paths[0], i, q) for i in range(len(q))] + [value(paths[1], i, p) for i in range(len(p))]


def translations(paths, x):
    force = -gradient(paths[0], 0, x[4:6] - x[6:8])
    return np.concatenate([force, -force, gradient(paths[1], 0, x[:4])])


def hamiltonian(paths, x):
    dp, dq = np.split(gradient(paths[0], 0, x), 2)
    return np.append(-dq, dp)


def hamiltonian_of_a_mix(paths, x):
    """H(p1 + q1/2, 2 p2 + q2)."""
    a, b = gradient(paths[0], 0, np.array([x[0] + x[2] / 2, 2 * x[1] + x[3]]))
    return [-a / 2, -b, a, 2 * b]


def tangent(paths, x, q):
    skew, entry = np.zeros(q.shape), 0
    for i in range(len(x)):
        for j in range(i):
            skew[i, j] = value(paths[0], entry, x)
            skew[j, i] = -skew[i, j]
            entry += 1
    return skew @ q @ x


def lie_poisson(paths, x, q):
    return np.cross(q @ x, gradient(paths[0], 0, x))


def solved(paths, x, q):
    f = np.array([value(paths[0], i, x) for i in range(len(x) - 1)])
    normal = q @ x
    return np.append(f, -f @ normal[:-1] / normal[-1])


def solved_seeing_others(paths, x):
    """The paper's rigid body: f3 = -(f1 x1 + f2 x2) / x3."""
    f1, f2 = value(paths[0], 0, x[1:]), value(paths[0], 1, x[[0, 2]])
    return [f1, f2, -(f1 * x[0] + f2 * x[1]) / x[2]]


FORMULAS = {
    "free": free,
    "separable": separable,
    "components": components,
    "components one degree": components,
    "translations": translations,
    "hamiltonian": hamiltonian,
    "hamiltonian of a mix": hamiltonian_of_a_mix,
    "tangent": lambda paths, x: tangent(paths, x, np.eye(3)),
    "tangent to Q": lambda paths, x: tangent(paths, x, Q4),
    "lie-poisson of Q": lambda paths, x: lie_poisson(paths, x, Q3),
    "solved for Q": lambda paths, x: solved(paths, x, Q4),
    "solved, seeing others": solved_seeing_others,
}


@pytest.mark.parametrize("case", CASES)
def test_the_field_is_its_formula(case):
    known = facts(case)
    written = np.stack([FORMULAS[case](known.paths, x) for x in known.x])
    np.testing.assert_allclose(known.values, written, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_the_field_is_linear_in_its_latents(case):
    known = facts(case)
    expected = FACTORS[0] * known.values + FACTORS[1] * known.second
    np.testing.assert_allclose(known.combined, expected, rtol=1e-11, atol=1e-11)


# -- Hamiltonian fields


@pytest.mark.parametrize("case", HAMILTONIAN)
def test_a_hamiltonian_field_is_the_turned_gradient_of_its_energy(case):
    known = facts(case)
    np.testing.assert_allclose(known.values @ canonical(known.x.shape[1]).T, known.slopes, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", HAMILTONIAN)
def test_a_hamiltonian_field_has_a_hamiltonian_jacobian_and_no_divergence(case):
    known = facts(case)
    turned = canonical(known.x.shape[1]) @ known.jacobians
    np.testing.assert_allclose(turned, turned.transpose(0, 2, 1), rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.trace(known.jacobians, axis1=1, axis2=2), 0, rtol=0, atol=1e-12)


def test_independent_components_are_hamiltonian_in_one_degree_of_freedom_only():
    for case, expected in [("components one degree", True), ("components", False)]:
        known = facts(case)
        turned = canonical(known.x.shape[1]) @ known.jacobians
        defect = np.abs(turned - turned.transpose(0, 2, 1)).max(axis=(1, 2))
        assert np.all(defect < 1e-12) if expected else np.all(defect > 1e-2)
        assert known.energies is None


@pytest.mark.parametrize("case", ["separable", "components", "translations"])
def test_a_separable_field_is_split_so_that_its_divergence_is_exactly_zero(case):
    known = facts(case)
    n = known.x.shape[1] // 2
    np.testing.assert_array_equal(known.jacobians[:, :n, :n], 0)
    np.testing.assert_array_equal(known.jacobians[:, n:, n:], 0)
    assert np.abs(known.jacobians[:, :n, n:]).max() > 0.1


def test_the_energy_is_the_sum_of_kinetic_and_potential_energy():
    known = facts("separable")
    potential, kinetic = known.paths
    exact = [value(kinetic, 0, x[:2]) + value(potential, 0, x[2:]) for x in known.x]
    np.testing.assert_allclose(known.energies, exact, rtol=0, atol=1e-12)


def test_the_energy_of_one_scalar_latent_is_that_latent():
    for case in ("hamiltonian", "lie-poisson of Q"):
        known = facts(case)
        exact = [value(known.paths[0], 0, x) for x in known.x]
        np.testing.assert_allclose(known.energies, exact, rtol=0, atol=1e-12)


# -- maps of what a latent sees


def test_a_potential_of_the_distance_alone_gives_no_total_force_exactly():
    force = facts("translations").values[:, :4]
    np.testing.assert_array_equal(force[:, :2] + force[:, 2:], 0)
    assert np.abs(force).min() > 1e-4


def test_a_potential_of_the_distance_alone_does_not_see_translations():
    structure, dimension = CASES["translations"]
    known = facts("translations")
    of_positions = structure.groups(dimension)[0].depends_on[0]
    np.testing.assert_array_equal(of_positions, np.hstack([np.zeros((2, 4)), APART]))
    # the Jacobian along (0, t, t) vanishes, and along (0, t, -t) it does not
    for t in np.eye(2):
        np.testing.assert_array_equal(known.jacobians @ np.concatenate([np.zeros(4), t, t]), 0)
        assert np.abs(known.jacobians @ np.concatenate([np.zeros(4), t, -t])).min(axis=0).max() > 1e-3


def test_a_component_does_not_depend_on_what_it_does_not_see():
    jacobians = facts("solved, seeing others").jacobians
    np.testing.assert_array_equal(jacobians[:, 0, 0], 0)
    np.testing.assert_array_equal(jacobians[:, 1, 1], 0)
    assert np.abs(jacobians[:, [0, 0, 1, 1], [1, 2, 0, 2]]).min(axis=0).min() > 1e-6


def test_inputs_are_what_each_latent_sees_of_each_state():
    structure, dimension = CASES["solved, seeing others"]
    x = facts("solved, seeing others").x
    inputs = structure.groups(dimension)[0].inputs(np.asarray(x))
    np.testing.assert_array_equal(inputs, np.stack([x[:, 1:], x[:, [0, 2]]]))
    assert np.array_equal(np.einsum("ckd,nd->cnk", OTHERS, x), inputs)


def test_separable_maps_are_of_momenta_and_of_positions_alone():
    structure = Separable(depends_on={"V": [[1.0, 1.0]], "T": [[1.0, 2.0]]})
    potential, kinetic = structure.groups(4)
    np.testing.assert_array_equal(potential.depends_on, [[[0, 0, 1, 1]]])
    np.testing.assert_array_equal(kinetic.depends_on, [[[1, 2, 0, 0]]])


# -- quadratic invariants


@pytest.mark.parametrize("case", QUADRATIC)
def test_the_field_is_tangent_to_the_level_sets_of_the_quadratic_form(case):
    known = facts(case)
    normal = known.x @ QUADRATIC[case]
    defect = np.einsum("nd,nd->n", normal, known.values)
    scale = np.linalg.norm(normal, axis=1) * np.linalg.norm(known.values, axis=1)
    assert np.all(np.abs(defect) <= 4e-15 * scale)
    assert np.all(scale > 1e-3)


def test_a_lie_poisson_field_keeps_its_energy():
    known = facts("lie-poisson of Q")
    rate = np.einsum("nd,nd->n", known.slopes, known.values)
    scale = np.linalg.norm(known.slopes, axis=1) * np.linalg.norm(known.values, axis=1)
    assert np.all(np.abs(rate) <= 1e-14 * scale)


def test_a_tangent_field_needs_no_common_energy_and_can_point_anywhere_in_the_tangent_space():
    """In three dimensions S(x) x = ω × x with any ω, so that drawn fields at one state span two directions."""
    known = facts("tangent")
    span = np.stack([known.values, known.second], axis=1)
    assert np.linalg.svd(span, compute_uv=False)[:, 1].min() > 1e-2


# -- what a structure says of itself


@pytest.mark.parametrize("case", CASES)
def test_traits_are_what_is_measured(case):
    structure, dimension = CASES[case]
    traits, known = structure.traits(dimension), facts(case)
    if case in [*HAMILTONIAN, "components", "components one degree"]:
        turned = canonical(dimension) @ known.jacobians
        measured = np.abs(turned - turned.transpose(0, 2, 1)).max() < 1e-12
        assert traits.hamiltonian == measured
    else:
        assert not traits.hamiltonian
    assert traits.split == isinstance(structure, Separable)
    if case in QUADRATIC:
        np.testing.assert_array_equal(traits.invariant, QUADRATIC[case])
    else:
        assert traits.invariant is None


@pytest.mark.parametrize("case", CASES)
def test_groups_say_how_many_latents_on_how_many_coordinates(case):
    structure, dimension = CASES[case]
    known = facts(case)
    for group, paths in zip(structure.groups(dimension), known.paths, strict=True):
        count, k, d = group.depends_on.shape
        assert (count, d) == (group.count, dimension)
        assert paths.inducing.shape == (count, 6, k)
        assert group.differentiated == (case in HAMILTONIAN or case.startswith("lie-poisson"))


def test_a_separable_structure_makes_a_split_field():
    structure, dimension = CASES["separable"]
    assert isinstance(structure.field(facts("separable").paths, dimension), SplitField)
