"""The response of a step is its derivative: by the state before it, and by the field at the points where it looks."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

import sgpd
from sgpd.fields import SplitField
from sgpd.integrators import get, names
from tests.integrators.systems import waves_for

H = jnp.array(0.7)  # long for fields with slopes up to 1, so that products of stages matter


def shifted(field, by, amount):
    """The field f + amount g, split where f is."""
    if isinstance(field, SplitField):
        return SplitField(lambda q: field.dp(q) + amount * by.dp(q), lambda p: field.dq(p) + amount * by.dq(p))
    return lambda x: field(x) + amount * by(x)


@pytest.mark.parametrize("name", names())
def test_the_response_is_the_derivative_of_the_step_by_the_state_and_by_any_change_of_the_field(name, getkey):
    method, x = get(name), jr.normal(getkey(), (4,))
    field, change = (waves_for(method, getkey(), 2) for _ in range(2))

    @jax.jit
    def both(x):
        step = lambda x, amount: method.advance(shifted(field, change, amount), x, H)[0]
        found = method.respond(field, x, H)
        by_change = jnp.einsum("skl,sl->k", found.by_field, jax.vmap(change)(found.points))
        derivatives = (found.x, found.by_state, by_change), (step(x, 0.0), *jax.jacfwd(step, argnums=(0, 1))(x, 0.0))
        return *derivatives, (found.info, method.advance(field, x, H)[1])

    found, expected, infos = both(x)
    assert infos[0].converged
    np.testing.assert_array_equal(*infos)  # as it is stepped, so it answers
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-14)
    assert np.abs(expected[2]).max() > 0.01  # the change moves the step


@pytest.mark.parametrize("name", ["rk4", "gauss-4", "lobatto-iiia-iiib-4", "yoshida-4"])
def test_a_step_of_length_zero_answers_to_the_state_alone(name, getkey):
    """Padding of a recording: such steps must change nothing, and must not spoil derivatives."""
    method, x = get(name), jr.normal(getkey(), (4,))
    field = waves_for(method, getkey(), 2)
    found = jax.jit(lambda x: method.respond(field, x, jnp.array(0.0)))(x)
    np.testing.assert_array_equal(found.x, x)
    np.testing.assert_array_equal(found.by_state, np.eye(4))
    np.testing.assert_array_equal(found.by_field, 0)


def test_the_function_of_the_version_before_says_where_it_stands_now(getkey):
    method, x = get("rk4"), jr.normal(getkey(), (2,))
    with pytest.warns(sgpd.SgpdWarning, match=r"method\.respond"):
        found = sgpd.integrators.respond(method, lambda x: -x, x, H)
    np.testing.assert_array_equal(found.x, method.respond(lambda x: -x, x, H).x)
