"""One step of a method: the textbook's formulas, compositions, and what is refused."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from sgpd.fields import SplitField
from sgpd.integrators import RungeKutta, SplitStep, get, names
from tests.integrators.systems import asymmetric_pendulum, hamiltonian_waves, is_split, tao
from tests.integrators.test_tableau import YOSHIDA

H = 0.3
SPLIT = [name for name in names() if is_split(get(name))]


def force(q):
    return -np.sin(q) - 0.3 * np.cos(2 * q)  # -V'(q)


def velocity(p):
    return p + 0.5 * np.sin(p)  # T'(p)


def momentum_first(p, q):
    p = p + H * force(q)
    return p, q + H * velocity(p)


def position_first(p, q):
    q = q + H * velocity(p)
    return p + H * force(q), q


def leapfrog(p, q):
    half = p + H / 2 * force(q)
    q = q + H * velocity(half)
    return half + H / 2 * force(q), q


@pytest.mark.parametrize(
    ("name", "formula"),
    [("symplectic-euler", momentum_first), ("symplectic-euler-q", position_first), ("stormer-verlet", leapfrog)],
)
def test_split_step_is_the_textbooks_formula(name, formula):
    x, _ = get(name).step(asymmetric_pendulum, jnp.array([0.9, 0.6]), H)
    np.testing.assert_allclose(x, formula(0.9, 0.6), rtol=0, atol=1e-15)


def test_rk4_step_is_the_textbooks_formula():
    x = np.array([0.7, -0.4])
    f = lambda y: np.array([-y[1] * (y[0] ** 2 + 1), y[0] * (y[1] ** 2 + 1)])
    k1 = f(x)
    k2 = f(x + H / 2 * k1)
    k3 = f(x + H / 2 * k2)
    k4 = f(x + H * k3)
    x1, _ = get("rk4").step(tao, jnp.array(x), H)
    np.testing.assert_allclose(x1, x + H / 6 * (k1 + 2 * k2 + 2 * k3 + k4), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "weights", "order"),
    [("implicit-midpoint", YOSHIDA, 4), ("rk3", [0.2, 0.5, 0.3], 3), ("heun", [2.0, -1.0], 1)],
)
def test_a_composed_tableau_steps_like_its_sub_steps_one_after_the_other(name, weights, order, getkey):
    method, field, start = get(name), hamiltonian_waves(getkey(), 2), jr.normal(getkey(), (4,))
    x = start
    for w in weights:
        x, _ = method.step(field, x, w * H)
    composed = RungeKutta(method.tableau.compose("composed", weights, order))
    np.testing.assert_allclose(composed.step(field, start, H)[0], x, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", SPLIT)
@pytest.mark.parametrize("weights", [[0.2, 0.5, 0.3], [0.5, 0.0, 0.5], YOSHIDA])
def test_a_composed_splitting_steps_like_its_sub_steps_one_after_the_other(name, weights):
    method, start = get(name), jnp.array([0.9, -0.2, 0.6, 1.1])
    advance = lambda method, x, h: method.advance(asymmetric_pendulum, x, jnp.array(h))[0]
    x = start
    for w in weights:
        x = advance(method, x, w * H)
    composed = SplitStep(method.tableau.compose("composed", weights, 1))
    np.testing.assert_allclose(advance(composed, start, H), x, rtol=0, atol=1e-14)


def test_composing_verlet_merges_the_kicks_that_meet():
    verlet = get("stormer-verlet").tableau
    composed = verlet.compose("yoshida", YOSHIDA, 4)
    assert len(composed.kicks) == 4  # instead of six, so that a force is evaluated four times a step
    np.testing.assert_allclose(composed.kicks, get("yoshida-4").tableau.kicks, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", ["rk4", "lobatto-iiia-iiib-4"])
def test_methods_for_any_field_step_a_split_field_as_the_whole_that_it_is(name):
    whole = lambda x: jnp.stack([-jnp.sin(x[1]) - 0.3 * jnp.cos(2 * x[1]), x[0] + 0.5 * jnp.sin(x[0])])
    x = jnp.array([0.9, 0.6])
    split, _ = get(name).step(asymmetric_pendulum, x, H)
    np.testing.assert_allclose(split, get(name).step(whole, x, H)[0], rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", SPLIT)
def test_split_method_refuses_a_field_that_is_not_split_and_names_the_remedy(name):
    with pytest.raises(ValueError, match=rf"{name} .* needs a split field .*SplitField.*'implicit-midpoint'"):
        get(name).step(tao, jnp.array([0.7, -0.4]), H)


@pytest.mark.parametrize("name", [*SPLIT, "lobatto-iiia-iiib-4"])
def test_methods_on_momenta_and_positions_refuse_an_odd_number_of_coordinates(name):
    field = SplitField(dp=lambda q: -q, dq=lambda p: p)
    with pytest.raises(ValueError, match="as many momenta as positions, but this one has 3 coordinates"):
        get(name).step(field, jnp.ones(3), H)


@pytest.mark.parametrize(("asked", "meant"), [("gaus-4", "gauss-4"), ("stormer-verlett", "stormer-verlet")])
def test_an_unknown_name_is_refused_and_the_near_one_suggested(asked, meant):
    with pytest.raises(ValueError, match=f"no integrator called '{asked}'. Did you mean '{meant}'"):
        get(asked)


def test_a_name_gives_the_same_object_and_compiled_step_each_time():
    traced = []

    def field(x):
        traced.append(x)
        return -x

    assert all(get(name) is get(name) and get(name).name == name for name in names())
    get("rk4").step(field, jnp.ones(2), H)
    count = len(traced)
    get("rk4").step(field, jnp.zeros(2), 2 * H)
    assert count > 0
    assert len(traced) == count
