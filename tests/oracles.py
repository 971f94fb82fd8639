"""References that are slow, plain and independent of the code under test: enumeration, SciPy, unrolled loops."""

from itertools import permutations, product

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp


def exact_states(field, x0, times):
    """The solution of x' = field(x) at times after 0, by SciPy's eighth-order method at 1e-13.

    It is stopped and started again at each time, because its interpolant is less exact than its steps.
    """
    compiled, states = jax.jit(field), [np.asarray(x0)]
    rate = lambda _, x: np.asarray(compiled(x))
    for span in zip([0.0, *times[:-1]], times, strict=True):
        solution = solve_ivp(rate, span, states[-1], method="DOP853", rtol=1e-13, atol=1e-13)
        states.append(solution.y[:, -1])
    return np.stack(states[1:])


def central_differences(f, z, step=1e-5):
    """The Jacobian of a vector-valued f at a vector z, a column at a time."""
    columns = [(f(z + step * e) - f(z - step * e)) / (2 * step) for e in jnp.eye(z.shape[0])]
    return jnp.stack(columns, axis=-1)


def with_value(derivative, f):
    """`derivative` (jax.jacfwd or jax.jacrev) of f, and f, from one program: compiling is what takes time here."""
    return jax.jit(derivative(lambda z: (f(z), f(z)), has_aux=True))


def unrolled_step(a, b, field, x, h, iterations=15):
    """An implicit Runge-Kutta step by Newton's method on the stacked stages, every iteration left differentiable.

    `a` and `b` are pairs, for the first and the second half of the state; the same twice for an ordinary method.
    """
    s, d = len(b[0]), x.shape[0]
    a, b = (np.repeat(np.stack(pair, axis=-1), d // 2, axis=-1) for pair in (a, b))  # a coefficient a coordinate

    def residual(flat):
        g = flat.reshape(s, d)
        return jnp.concatenate([g[i] - field(x + h * (a[i] * g).sum(axis=0)) for i in range(s)])

    def newton(_, flat):
        return flat - jnp.linalg.solve(jax.jacfwd(residual)(flat), residual(flat))

    g = jax.lax.fori_loop(0, iterations, newton, jnp.tile(field(x), s)).reshape(s, d)
    return x + h * (b * g).sum(axis=0)


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
