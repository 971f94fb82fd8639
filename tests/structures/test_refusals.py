"""What cannot be a structure is refused with a sentence that says what to do."""

import jaxtyping
import numpy as np
import pytest

from sgpd import structures
from sgpd.structures import Free, Hamiltonian, QuadraticInvariant, Separable


@pytest.fixture(autouse=True)
def _as_users_run_it(monkeypatch):
    """Without the type checks of the tests, which would come first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.parametrize("structure", [Hamiltonian(), Separable(), Separable(form="components")])
def test_an_odd_number_of_coordinates_is_refused(structure):
    with pytest.raises(ValueError, match=r"state has 3 coordinates; give every position its momentum, or use .*'free'"):
        structure.groups(3)


def test_an_unknown_structure_is_refused_with_a_guess():
    with pytest.raises(
        ValueError, match=r"no structure called 'hamiltonain'\. Did you mean 'hamiltonian'\? Known: free"
    ):
        structures.get("hamiltonain")


@pytest.mark.parametrize(
    ("name", "form", "guess"),
    [
        ("separable", "potentials", "potential"),
        ("separable", "component", "components"),
        ("quadratic-invariant", "lie-poison", "lie-poisson"),
        ("quadratic-invariant", "solve", "solved"),
    ],
)
def test_an_unknown_form_is_refused_with_a_guess(name, form, guess):
    with pytest.raises(ValueError, match=rf"no form of '{name}' called '{form}'\. Did you mean '{guess}'\? Known: "):
        structures.get(name, form=form)


@pytest.mark.parametrize(
    ("name", "options", "known"),
    [
        ("free", {}, "f"),
        ("separable", {}, "V, T"),
        ("hamiltonian", {}, "H"),
        ("quadratic-invariant", {}, "S"),
        ("quadratic-invariant", {"form": "lie-poisson"}, "H"),
        ("quadratic-invariant", {"form": "solved"}, "f"),
    ],
)
def test_a_map_for_a_latent_that_is_not_there_is_refused_with_those_that_are(name, options, known):
    with pytest.raises(ValueError, match=rf"no latent called 'U'\..*Known: {known}\."):
        structures.get(name, depends_on={"U": [[1.0, 0.0]]}, **options)


@pytest.mark.parametrize(
    "wrong",
    [
        [[1.0, 0.0]],  # too narrow
        [[1.0, 0.0, 0.0, 0.0]],  # too wide
        [1.0, 0.0, 0.0],  # a row is no map
        [[[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]],  # two maps for three latents
        [[1.0, 0.0, np.nan]],
    ],
)
def test_a_map_of_the_wrong_width_is_refused_with_the_right_one(wrong):
    with pytest.raises(ValueError, match=r"map for latent 'f' must have 3 columns.*or a stack of 3 such maps"):
        Free(depends_on={"f": wrong}).groups(3)


def test_a_map_of_positions_has_a_column_for_each_position():
    with pytest.raises(ValueError, match=r"map for latent 'V' must have 2 columns"):
        Separable(depends_on={"V": [[1.0, 0.0, 0.0, 0.0]]}).groups(4)


@pytest.mark.parametrize(
    "q", [[[1.0, 0.5], [0.0, 1.0]], np.ones((2, 3)), np.ones(3), [[1.0, np.nan], [np.nan, 1.0]], [[np.inf, 0], [0, 1]]]
)
def test_a_form_that_is_not_symmetric_and_finite_is_refused(q):
    with pytest.raises(ValueError, match=r"Q must be a symmetric matrix of finite numbers.*give \(Q \+ Qᵀ\)/2"):
        QuadraticInvariant(q=np.array(q))


def test_a_form_symmetric_up_to_rounding_is_made_symmetric():
    """Else xᵀ Q f would not vanish to rounding."""
    q = np.array([[1.0, 0.3 + 1e-9], [0.3, 2.0]])
    kept = QuadraticInvariant(q=q).traits(2).invariant
    np.testing.assert_array_equal(kept, kept.T)
    np.testing.assert_allclose(kept, q, rtol=0, atol=1e-9)


def test_a_form_of_the_wrong_size_is_refused():
    with pytest.raises(ValueError, match=r"Q is 2 x 2, but the state has 3 coordinates"):
        QuadraticInvariant(q=np.eye(2)).traits(3)


def test_lie_poisson_is_refused_but_in_three_dimensions():
    with pytest.raises(ValueError, match=r"'lie-poisson' needs a state of 3 coordinates, got 4; use form='tangent'"):
        QuadraticInvariant(form="lie-poisson").groups(4)


def test_a_quadratic_form_of_one_number_is_refused():
    with pytest.raises(ValueError, match=r"'tangent' needs a state of at least 2 coordinates, got 1"):
        QuadraticInvariant().groups(1)


def test_every_structure_can_be_asked_for_by_name_and_says_what_it_promises():
    assert {"free", "separable", "hamiltonian", "quadratic-invariant"} <= set(structures.names())
    for name in structures.names():
        structure = structures.get(name)
        assert structure.name == name
        assert structure.promise.endswith((".", ")."))
