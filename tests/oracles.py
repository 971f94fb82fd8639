"""References that are slow, plain and independent of the code under test: enumeration, SciPy, unrolled loops."""

from itertools import permutations, product

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp


def exact_states(field, x0, times):
    """The solution of x' = field(x) at times after 0, by SciPy's eighth-order method at 1e-13."""
    compiled = jax.jit(field)
    solution = solve_ivp(
        lambda _, x: np.asarray(compiled(x)),
        (0.0, times[-1]),
        np.asarray(x0),
        t_eval=times,
        method="DOP853",
        rtol=1e-13,
        atol=1e-13,
    )
    return solution.y.T


def central_differences(f, z, step=1e-5):
    """The Jacobian of a vector-valued f at a vector z, a column at a time."""
    columns = [(f(z + step * e) - f(z - step * e)) / (2 * step) for e in jnp.eye(z.shape[0])]
    return jnp.stack(columns, axis=-1)


def unrolled_step(a, b, field, x, h, iterations=15):
    """An implicit Runge-Kutta step by Newton's method on the stacked stages, every iteration left differentiable.

    `a` and `b` are pairs, for the first and the second half of the state; the same twice for an ordinary method.
    """
    s, d = len(b[0]), x.shape[0]
    weight = lambda m: jnp.concatenate([jnp.tile(jnp.asarray(m[k])[..., None], d // 2) for k in (0, 1)], axis=-1)

    def residual(flat):
        g = flat.reshape(s, d)
        at = lambda i: x + h * sum(weight(a)[i, j] * g[j] for j in range(s))
        return jnp.concatenate([g[i] - field(at(i)) for i in range(s)])

    def newton(_, flat):
        return flat - jnp.linalg.solve(jax.jacfwd(residual)(flat), residual(flat))

    g = jax.lax.fori_loop(0, iterations, newton, jnp.tile(field(x), s)).reshape(s, d)
    return x + h * (weight(b) * g).sum(axis=0)


def all_rooted_trees(vertices, colours):
    """Every rooted tree with coloured vertices, as (colour, sorted children): grown leaf by leaf, then made unique."""
    trees = set()
    for parents in product(*(range(i) for i in range(1, vertices))):
        for colouring in product(range(colours), repeat=vertices):
            children = [[] for _ in range(vertices)]
            for child in range(vertices - 1, 0, -1):
                children[parents[child - 1]].append((colouring[child], tuple(sorted(children[child]))))
            trees.add((colouring[0], tuple(sorted(children[0]))))
    return trees


def growth_orders(tree):
    """In how many orders the vertices of a tree can appear, each after its parent: all permutations are tried."""
    parents = []

    def number(vertex, parent):
        parents.append(parent)
        me = len(parents) - 1
        for child in vertex[1]:
            number(child, me)

    number(tree, None)
    ranks = permutations(range(len(parents)))
    return sum(all(rank[p] < rank[i] for i, p in enumerate(parents) if p is not None) for rank in ranks)
