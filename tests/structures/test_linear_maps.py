"""What a latent depends on, in words."""

import numpy as np
import pytest

import sgpd
from sgpd.errors import BadInput
from sgpd.structures import Free, Separable
from sgpd.structures.linear_maps import linear_map

NAMES = ("p1", "p2", "q1", "q2")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("q1 - q2", [[0, 0, 1, -1]]),
        ("q1", [[0, 0, 1, 0]]),
        ("-q1 + 2*p1", [[2, 0, -1, 0]]),
        ("0.5*(q1 + q2), p1 - p2/4", [[0, 0, 0.5, 0.5], [1, -0.25, 0, 0]]),
        ("q1*3", [[0, 0, 3, 0]]),
    ],
)
def test_sums_of_coordinates_are_rows_of_coefficients(text, rows):
    np.testing.assert_allclose(linear_map(text, NAMES), rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1 -", "this is no sum of coordinates"),
        ("q1 - q3", "there is no coordinate 'q3'; the coordinates are p1, p2, q1, q2"),
        ("q1*q2", "'q1 \\* q2' is no sum of coordinates"),
        ("q1 + 1", "'1' is no sum of coordinates"),
        ("q1) + (q2", "is no sum"),
        ("(" * 10_000, "this is no sum"),
        ("q1/0", "is no sum of coordinates"),
        ("__import__('os')", "is no sum of coordinates"),
    ],
)
def test_anything_else_is_refused_with_what_may_stand_there(text, message):
    with pytest.raises(BadInput, match=message):
        linear_map(text, NAMES)


def test_text_and_matrix_are_the_same_structure_once_the_coordinates_have_names():
    by_text = Separable(depends_on={"V": "q1 - q2", "T": "p1 + p2, p1"}).named(NAMES)
    assert by_text == Separable(depends_on={"V": [[1.0, -1.0]], "T": [[1.0, 1.0], [1.0, 0.0]]})
    each = Free(depends_on={"f": ["x2, x3", "x1, x3", "x1, x2"]}).named(["x1", "x2", "x3"])
    np.testing.assert_array_equal(each.groups(3)[0].depends_on[1], [[1, 0, 0], [0, 0, 1]])


def test_a_potential_of_momenta_and_text_without_names_are_refused():
    with pytest.raises(BadInput, match=r"the latent 'V' depends on q1, q2 only"):
        Separable(depends_on={"V": "q1 - p1"}).named(NAMES)
    with pytest.raises(BadInput, match=r"is still text"):
        Separable(depends_on={"V": "q1 - q2"}).groups(4)


def test_the_old_name_works_with_a_warning():
    with pytest.warns(sgpd.SgpdWarning, match=r"Separable\(sees=\) is depends_on= now"):
        old = Separable(sees={"V": [[1.0, -1.0]]})
    new = Separable(depends_on={"V": [[1.0, -1.0]]})
    assert old == new
    assert hash(old) == hash(new)
    with pytest.warns(sgpd.SgpdWarning, match=r"LatentSpec\.sees is LatentSpec\.depends_on now"):
        np.testing.assert_array_equal(new.groups(4)[0].sees, [[[0, 0, 1, -1]]])
