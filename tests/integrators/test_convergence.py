"""Every method converges at the order that it states, on a non-linear system, towards SciPy's solution."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgpd.integrators import get, names
from tests.integrators.systems import asymmetric_pendulum, is_split, tao
from tests.oracles import exact_states

DURATION = 5.0


@cache
def exact(field, x0):
    return exact_states(field, x0, [DURATION])[-1]


@pytest.mark.parametrize("name", names())
def test_method_converges_at_its_stated_order(name):
    method = get(name)
    field, x0 = (asymmetric_pendulum, (0.9, 0.6)) if is_split(method) else (tao, (0.7, -0.4))
    # Long enough to be above rounding, short enough for the leading term to rule: the reference is good to 1e-13,
    # and the smallest error here (gauss-6) is 1e-11.
    counts = np.array([512, 1024, 2048] if method.order == 1 else [48, 64, 96])

    @jax.jit
    def final_state(count):
        step = lambda _, x: method.advance(field, x, DURATION / count)[0]
        return jax.lax.fori_loop(0, count, step, jnp.array(x0))

    errors = [np.linalg.norm(final_state(count) - exact(field, x0)) for count in counts]
    order = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert abs(order - method.order) < 0.15
