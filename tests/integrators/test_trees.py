"""Rooted trees and order conditions, against enumeration and against the textbook."""

from math import factorial

import numpy as np
import pytest

from sgpd.integrators.trees import density, order_of, rooted_trees
from tests.oracles import all_rooted_trees, growth_orders

ORDERS = range(1, 7)


def canonical(tree):
    return tree[0], tuple(sorted(canonical(child) for child in tree[1]))


def alternates(tree):
    return all(child[0] != tree[0] and alternates(child) for child in tree[1])


def test_there_are_1_1_2_4_9_20_rooted_trees():
    assert [len(rooted_trees(n, 0, 1, False)) for n in ORDERS] == [1, 1, 2, 4, 9, 20]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("colours", [1, 2])
def test_trees_of_one_and_of_two_colours_are_exactly_those_of_enumeration(colours, order):
    found = [canonical(t) for colour in range(colours) for t in rooted_trees(order, colour, colours, False)]
    assert len(found) == len(set(found))
    assert set(found) == all_rooted_trees(order, colours)


@pytest.mark.parametrize("order", ORDERS)
def test_alternating_trees_are_the_enumerated_ones_whose_neighbours_differ(order):
    found = [canonical(t) for colour in (0, 1) for t in rooted_trees(order, colour, 2, True)]
    assert len(found) == len(set(found))
    assert set(found) == {t for t in all_rooted_trees(order, 2) if alternates(t)}


def test_densities_of_small_trees_are_those_of_the_textbook():
    leaf = (0, ())
    pair = (0, (leaf,))
    cherry, tall = (0, (leaf, leaf)), (0, (pair,))
    assert [density(t) for t in (leaf, pair, cherry, tall)] == [1, 2, 3, 6]
    assert [density((0, children)) for children in ((leaf,) * 3, (pair, leaf), (cherry,), (tall,))] == [4, 8, 12, 24]


@pytest.mark.parametrize("order", ORDERS)
def test_density_tells_in_how_many_orders_a_tree_can_grow(order):
    for tree in rooted_trees(order, 0, 1, False):
        assert factorial(order) == density(tree) * growth_orders(tree)


# Hairer, Nørsett, Wanner, table II.2.2: (order, what b must be multiplied with, the value it must give).
TEXTBOOK = [
    (1, lambda a, c: np.ones_like(c), 1),
    (2, lambda a, c: c, 1 / 2),
    (3, lambda a, c: c**2, 1 / 3),
    (3, lambda a, c: a @ c, 1 / 6),
    (4, lambda a, c: c**3, 1 / 4),
    (4, lambda a, c: c * (a @ c), 1 / 8),
    (4, lambda a, c: a @ c**2, 1 / 12),
    (4, lambda a, c: a @ a @ c, 1 / 24),
]


def weights_with_values(a, values):
    """Some b that gives the textbook's products these values; the conditions are linear in b."""
    rows = np.stack([product(a, a.sum(axis=1)) for _, product, _ in TEXTBOOK])
    return np.linalg.lstsq(rows, values, rcond=None)[0]


def test_each_condition_of_the_textbook_up_to_order_four_is_asked_for_and_no_other():
    a = np.random.default_rng(0).uniform(-1, 1, (10, 10))
    values = np.array([value for _, _, value in TEXTBOOK])
    assert order_of((a,), (weights_with_values(a, values),)) == 4
    for k, (order, _, _) in enumerate(TEXTBOOK):
        spoiled = values + 1e-6 * np.eye(len(values))[k]
        assert order_of((a,), (weights_with_values(a, spoiled),)) == order - 1
