"""Order conditions of Runge-Kutta methods, from rooted trees.

A Runge-Kutta method has order r when every rooted tree t with at most r vertices satisfies Φ(t) = 1/γ(t), where the
elementary weight Φ is built from the coefficients and the density γ from the shape of the tree alone (Hairer,
Nørsett, Wanner, Solving ODEs I, Thm II.2.13). For a pair of methods the vertices carry two colours, one a method; when
p' depends on q alone and q' on p alone, only trees whose neighbours differ in colour occur (same book, II.15).
"""

from functools import cache
from itertools import combinations_with_replacement

import numpy as np

Tree = tuple  # (colour, children): a vertex and its sub-trees, in a canonical order

HIGHEST_ORDER = 6
_TOLERANCE = 1e-10


@cache
def rooted_trees(order: int, colour: int, colours: int, alternating: bool) -> tuple[Tree, ...]:
    """All rooted trees with `order` vertices whose root has the given colour."""
    child_colours = [c for c in range(colours) if not (alternating and c == colour)]
    return tuple((colour, children) for children in _forests(order - 1, order - 1, tuple(child_colours), alternating))


def _forests(vertices: int, largest: int, root_colours: tuple[int, ...], alternating: bool) -> list[tuple[Tree, ...]]:
    """All multisets of trees with that many vertices in all, none larger than `largest`."""
    if vertices == 0:
        return [()]
    forests = []
    for size in range(min(vertices, largest), 0, -1):
        colours = 2 if alternating else len(root_colours)
        trees = [t for c in root_colours for t in rooted_trees(size, c, colours, alternating)]
        for count in range(1, vertices // size + 1):
            rest = _forests(vertices - count * size, size - 1, root_colours, alternating)
            for group in combinations_with_replacement(trees, count):
                forests.extend(group + others for others in rest)
    return forests


def size(tree: Tree) -> int:
    """How many vertices a tree has."""
    return 1 + sum(map(size, tree[1]))


def density(tree: Tree) -> int:
    """γ(t): the product of the sizes of all sub-trees."""
    return size(tree) * int(np.prod([density(child) for child in tree[1]], dtype=int))


def _stage_weights(tree: Tree, a: tuple[np.ndarray, ...]) -> np.ndarray:
    weights = np.ones(len(a[0]))
    for child in tree[1]:
        weights = weights * (a[child[0]] @ _stage_weights(child, a))
    return weights


def order_of(a: tuple[np.ndarray, ...], b: tuple[np.ndarray, ...], alternating: bool = False) -> int:
    """The order of a method (one matrix) or of a pair (two), judged up to `HIGHEST_ORDER`."""
    for order in range(1, HIGHEST_ORDER + 1):
        for colour in range(len(a)):
            for tree in rooted_trees(order, colour, len(a), alternating):
                if abs(b[colour] @ _stage_weights(tree, a) - 1 / density(tree)) > _TOLERANCE:
                    return order - 1
    return HIGHEST_ORDER
