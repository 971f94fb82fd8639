"""The gradient of an implicit step is that of the unrolled solve and of finite differences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from sgpd.integrators import get
from tests.oracles import central_differences, unrolled_step

METHODS = ["implicit-euler", "trapezoidal", "radau-ia-3", "gauss-6", "lobatto-iiia-iiib-4"]

# A state (p, q), a step length and three parameters of the field, as one vector to differentiate.
POINT = jnp.array([0.8, -0.5, 0.4, 1.3, 0.6, 0.9])


class Bent(eqx.Module):
    """A field that is neither Hamiltonian nor split, with parameters."""

    parameters: Array

    def __call__(self, x):
        return bent(self.parameters, x)


def bent(parameters, x):
    k, c, m = parameters
    p, q = x
    return jnp.stack([-k * jnp.sin(q) * (1 + c * p**2), p * (1 + m * q**2) - c * q])


FIELDS = {"module": Bent, "closure": lambda parameters: lambda x: bent(parameters, x)}


def step_map(name, make_field):
    return lambda z: get(name).step(make_field(z[3:]), z[:2], z[2])[0]


def unrolled_map(name):
    tableau = get(name).tableau
    p, q = (tableau.p, tableau.q) if hasattr(tableau, "p") else (tableau, tableau)
    return lambda z: unrolled_step((p.a, q.a), (p.b, q.b), lambda x: bent(z[3:], x), z[:2], z[2])


@pytest.mark.parametrize("name", [name for name in METHODS])
def test_step_solves_the_same_equations_as_an_unrolled_newton_method(name):
    np.testing.assert_allclose(step_map(name, Bent)(POINT), jax.jit(unrolled_map(name))(POINT), rtol=0, atol=1e-14)


@pytest.mark.parametrize("kind", FIELDS)
@pytest.mark.parametrize("name", METHODS)
def test_gradient_in_state_step_and_parameters_is_that_of_the_unrolled_solve_and_of_finite_differences(name, kind):
    step = step_map(name, FIELDS[kind])
    forward, reverse = jax.jacfwd(step)(POINT), jax.jacrev(step)(POINT)
    np.testing.assert_allclose(forward, jax.jit(jax.jacfwd(unrolled_map(name)))(POINT), rtol=0, atol=1e-13)
    np.testing.assert_allclose(forward, reverse, rtol=0, atol=1e-14)
    np.testing.assert_allclose(forward, central_differences(jax.jit(step), POINT), rtol=0, atol=1e-9)
    assert np.abs(forward).min() > 1e-4  # each of the six matters


@pytest.mark.parametrize("kind", FIELDS)
@pytest.mark.parametrize("derivative", [jax.jacfwd, jax.jacrev])
def test_gradient_is_the_same_under_vmap_and_jit(kind, derivative):
    # Steps of different length need different numbers of iterations; in a batch they are iterated together.
    batch = POINT * jnp.linspace(0.1, 1.1, 5)[:, None]
    gradient = derivative(step_map("gauss-4", FIELDS[kind]))
    one_by_one = jnp.stack([gradient(z) for z in batch])
    np.testing.assert_allclose(jax.vmap(gradient)(batch), one_by_one, rtol=0, atol=1e-14)
    np.testing.assert_allclose(jax.jit(jax.vmap(gradient))(batch), one_by_one, rtol=0, atol=1e-14)


def test_gradient_flows_through_a_step_that_is_not_compiled():
    def total(parameters):
        return get("gauss-4").advance(lambda x: bent(parameters, x), POINT[:2], POINT[2])[0].sum()

    compiled = jax.jacrev(step_map("gauss-4", Bent))(POINT)[:, 3:].sum(axis=0)
    np.testing.assert_allclose(jax.grad(total)(POINT[3:]), compiled, rtol=0, atol=1e-14)
