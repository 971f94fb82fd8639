"""The gradient of an implicit step is that of the unrolled solve and of finite differences."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from sgpd.integrators import get
from tests.oracles import central_differences, unrolled_step, with_value

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


@pytest.mark.parametrize(
    ("name", "kind"),
    [("radau-ia-3", "module"), ("gauss-4", "module"), ("gauss-4", "closure"), ("lobatto-iiia-iiib-4", "closure")],
)
def test_step_and_gradient_are_those_of_the_unrolled_solve_and_of_finite_differences(name, kind):
    unrolled, step = unrolled_map(name), step_map(name, FIELDS[kind])
    gradient, value = with_value(jax.jacfwd, unrolled)(POINT)
    forward = with_value(jax.jacfwd, step)
    stepped = lambda z: forward(z)[1]
    np.testing.assert_allclose(stepped(POINT), value, rtol=0, atol=1e-14)
    np.testing.assert_allclose(forward(POINT)[0], gradient, rtol=0, atol=1e-13)
    np.testing.assert_allclose(jax.jit(jax.jacrev(step))(POINT), gradient, rtol=0, atol=1e-13)
    np.testing.assert_allclose(gradient, central_differences(stepped, POINT), rtol=0, atol=1e-9)
    assert np.abs(gradient).min() > 1e-4  # state, step length and parameters all matter


@pytest.mark.parametrize(("kind", "derivative"), [("closure", jax.jacrev), ("module", jax.jacfwd)])
def test_gradient_is_the_same_under_vmap_and_jit(kind, derivative):
    # Steps of different length need different numbers of iterations; in a batch they are iterated together.
    batch = POINT[None, :] * jnp.linspace(0.1, 1.1, 5)[:, None]
    gradient = derivative(step_map("implicit-midpoint", FIELDS[kind]))
    compiled = jax.jit(gradient)
    one_by_one = jnp.stack([compiled(z) for z in batch])
    np.testing.assert_allclose(jax.jit(jax.vmap(gradient))(batch), one_by_one, rtol=0, atol=1e-14)


def test_gradient_flows_through_a_step_that_is_not_compiled():
    # Midpoint on x' = -k x multiplies x by (1 - hk/2)/(1 + hk/2), whose derivative in k is -h/(1 + hk/2)².
    k, h = 1.3, 0.4
    decay = lambda k: get("implicit-midpoint").advance(lambda x: -k * x, jnp.array([1.0]), jnp.array(h))[0][0]
    np.testing.assert_allclose(jax.grad(decay)(k), -h / (1 + h * k / 2) ** 2, rtol=1e-14)
