"""Sine and cosine from one range reduction are those of the C library, near and far."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sgpd.gp import sincos

compiled = jax.jit(sincos)


def errors(x):
    """Against numpy in extended precision (whose own error does not matter)."""
    s, c = np.asarray(compiled(x))
    exact = np.longdouble(x)
    return np.abs(s - np.sin(exact)), np.abs(c - np.cos(exact))


def around(multiples):
    """Numbers at and next to multiples of π/2, where one function is 0, and of π/4, where the polynomials change."""
    x = np.concatenate([multiples * np.pi / 2, (multiples + 0.5) * np.pi / 2])
    return np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, -np.inf)])


@pytest.mark.parametrize("limit", [1.0, 1e2, 1e4, 1e6])
def test_both_are_right_to_rounding(limit):
    x = np.random.default_rng(0).uniform(-limit, limit, 300_000)
    for error in errors(x):
        assert error.max() < 3e-16


def test_both_are_right_to_rounding_where_the_quadrant_changes():
    k = np.random.default_rng(1).integers(-636_000, 636_000, 50_000)
    x = around(np.concatenate([np.arange(-1000, 1000), k]))
    for error in errors(x):
        assert error.max() < 3e-16


def test_a_sine_near_its_zero_keeps_its_relative_accuracy():
    """Three parts of π/2 leave 2⁻¹²² of the argument's multiple, so that even r = 1e-12 has all its digits."""
    x = np.arange(1, 600_000) * np.pi
    s, _ = np.asarray(compiled(x))
    exact = np.sin(np.longdouble(x))
    assert (np.abs(s - exact) / np.abs(exact)).max() < 1e-15


def test_a_huge_argument_is_that_of_a_neighbour():
    x = 10.0 ** np.arange(6, 16)[:, None] * np.random.default_rng(3).uniform(-1, 1, (10, 20_000))
    s, c = np.asarray(compiled(x))
    bound = 2e-16 * np.abs(x) + 3e-16
    assert np.all(np.abs(s - np.sin(x)) <= bound)
    assert np.all(np.abs(c - np.cos(x)) <= bound)
    assert np.abs(s).max() <= 1 + 3e-16
    assert np.abs(c).max() <= 1 + 3e-16


def test_beyond_all_digits_both_stay_bounded():
    x = np.concatenate([s * 10.0 ** np.arange(15, 309) for s in (-1, 1)] + [[np.finfo(float).max]])
    for value in np.asarray(compiled(x)):
        assert np.abs(value).max() <= 1 + 3e-16  # false for nan as well


def test_what_is_not_finite_gives_nan():
    s, c = np.asarray(compiled(np.array([np.inf, -np.inf, np.nan])))
    assert np.isnan(s).all()
    assert np.isnan(c).all()


def test_derivatives_of_first_and_second_order_are_exact():
    x = jnp.linspace(-20.0, 20.0, 101)
    sine, cosine = lambda y: sincos(y)[0], lambda y: sincos(y)[1]

    @jax.jit
    def all_derivatives(x):
        one = jnp.ones_like(x)
        first = [jax.jvp(f, (x,), (one,))[1] for f in (sine, cosine)]
        reverse = [jax.vmap(jax.grad(f))(x) for f in (sine, cosine)]
        second = [jax.vmap(jax.grad(jax.grad(f)))(x) for f in (sine, cosine)]
        return first, reverse, second

    first, reverse, second = all_derivatives(x)
    for slopes in (first, reverse):
        np.testing.assert_allclose(slopes, [np.cos(x), -np.sin(x)], rtol=0, atol=3e-16)
    np.testing.assert_allclose(second, [-np.sin(x), -np.cos(x)], rtol=0, atol=3e-16)


def test_one_number_and_many_under_vmap_are_the_same():
    x = np.random.default_rng(2).normal(size=(3, 5)) * 100
    batched = jax.jit(jax.vmap(jax.vmap(sincos)))(x)
    np.testing.assert_allclose(batched, compiled(x), rtol=0, atol=2e-16)
    np.testing.assert_allclose(compiled(x[0, 0]), (np.sin(x[0, 0]), np.cos(x[0, 0])), rtol=0, atol=3e-16)
