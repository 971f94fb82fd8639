"""A field is made of what it reads of its latents, and may be any smooth function of that."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgpd
from sgpd.arrays import on_device
from sgpd.gp import Matern52, SquaredExponential, Trend
from sgpd.gp.basis import basis
from sgpd.gp.paths import bump_path
from sgpd.inference.initial import initial_posterior
from sgpd.inference.posterior.kernels import Kernels
from tests.inference.dense import two_runs
from tests.inference.posterior.test_field import CASES, recording
from tests.inference.structures import Damped, DampedField, Product

OWN = {"exponential": (Damped(), 2), "product": (Product(), 2)}
NOISE = 0.02


@pytest.mark.parametrize("kernel", [SquaredExponential, Matern52])
def test_the_basis_holds_values_and_slopes_of_each_bump_and_each_term_of_a_trend(kernel):
    """Against the functions themselves, one after the other."""
    rng = np.random.default_rng(0)
    inducing, x, centre = (on_device(rng.normal(size=shape)) for shape in ((4, 3), (5, 3), (3,)))
    own, trend = kernel(jnp.array([0.5, 1.5, 1.0]), 2.0), Trend(centre, jnp.array([0.3, -0.4]))
    found = basis(own, inducing, trend, x, ("value", "slope"))
    assert found.shape == (5, 4, 4 + trend.size)
    for j in range(4):
        bump = bump_path(own, inducing[j : j + 1], jnp.ones(1))
        np.testing.assert_allclose(found[:, 0, j], jax.vmap(bump)(x), rtol=1e-12)
        np.testing.assert_allclose(found[:, 1:, j], jax.vmap(bump.gradient)(x), rtol=1e-12, atol=1e-14)
    for j in range(trend.size):
        term = trend.parabola(own, jnp.eye(trend.size)[j])
        np.testing.assert_allclose(found[:, 0, 4 + j], jax.vmap(term)(x), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found[:, 1:, 4 + j], jax.vmap(term.gradient)(x), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(basis(own, inducing, trend, x, ("value",)), found[:, :1])
    np.testing.assert_array_equal(basis(own, inducing, trend, x, ("slope",)), found[:, 1:])


@pytest.mark.parametrize("case", [*CASES, *OWN])
def test_the_field_is_what_is_made_of_the_readings_at_the_state(case):
    """And those are linear in the whitened unknowns."""
    structure, d = (CASES | OWN)[case]
    posterior = initial_posterior(structure, recording(d), points=5)
    rng = np.random.default_rng(0)
    u, states = on_device(rng.normal(size=posterior.flat_mean.shape)), on_device(rng.normal(size=(3, d)))
    paths = posterior.paths(posterior.unravel(u))
    r = jax.vmap(lambda x: posterior.readings(paths, x))(states)
    made, by_readings = posterior.made(states, r)
    expected = jax.vmap(posterior.field(posterior.unravel(u)))(states)
    np.testing.assert_allclose(made, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())
    parts = zip(Kernels.of(posterior).by_unknowns(np.asarray(states)), posterior.unravel(u), strict=True)
    linear = [np.einsum("ncqm,cm->ncq", by_u, own).reshape(3, -1) for by_u, own in parts]
    np.testing.assert_allclose(np.concatenate(linear, axis=1), r, rtol=1e-9, atol=1e-9 * np.abs(r).max())
    for j, step in enumerate(1e-6 * np.eye(r.shape[1])):
        change = (posterior.made(states, r + step[None])[0] - posterior.made(states, r - step[None])[0]) / 2e-6
        np.testing.assert_allclose(by_readings[:, :, j], change, rtol=1e-6, atol=1e-7 * np.abs(by_readings).max())


@pytest.mark.parametrize("case", OWN)
def test_the_design_of_a_field_that_is_not_linear_is_its_derivative_at_the_readings(case):
    posterior = initial_posterior(OWN[case][0], two_runs()[0], points=5)
    states, u = on_device(np.random.default_rng(1).normal(size=(3, 2))), posterior.flat_mean
    paths = posterior.paths(posterior.unravel(u))
    r = jax.vmap(lambda x: posterior.readings(paths, x))(states)
    expected = jax.jacfwd(lambda u: jax.vmap(posterior.field(posterior.unravel(u)))(states))(u)
    np.testing.assert_allclose(
        Kernels.of(posterior).design(np.asarray(states), np.asarray(r)),
        expected,
        rtol=1e-9,
        atol=1e-9 * np.abs(expected).max(),
    )


def damped(times):
    """A pendulum with friction exp(D) = 0.15 + 0.1 sin(q)², by small steps."""
    force = lambda t, x: [-np.sin(x[1]) - (0.15 + 0.1 * np.sin(x[1]) ** 2) * x[0], x[0]]
    from scipy.integrate import solve_ivp

    return solve_ivp(force, (0, times[-1]), [0.0, 1.8], t_eval=times, rtol=1e-10, atol=1e-12).y.T


def test_friction_that_is_an_exponential_of_a_latent_is_found_and_forecast():
    times, rng = 0.15 * np.arange(121), np.random.default_rng(3)
    clean = damped(np.arange(401) * 0.15)
    data = sgpd.Trajectories.from_arrays(times, clean[:121] + NOISE * rng.normal(size=(121, 2)), names=["p", "q"])
    model = sgpd.fit(data, Damped(), "implicit-midpoint")
    np.testing.assert_allclose(model.noise_std, NOISE, rtol=0.2)  # 121 rows: 6 % is one standard error
    forecast = model.predict(clean[0], duration=60.0)
    assert np.sqrt(((forecast.best - clean) ** 2).mean()) < NOISE  # over more than three times the recording
    # Friction where the recording has been: exp(D) within four of its own standard errors, which are small.
    q = np.linspace(-1.2, 1.2, 9)
    at = lambda p: on_device(np.stack([np.full(9, p), q], axis=1))
    friction = lambda field: np.asarray(jax.vmap(field)(at(0.0)) - jax.vmap(field)(at(1.0)))[:, 0]
    drawn = np.array([friction(model.draw(seed)) for seed in range(24)])
    truth = 0.15 + 0.1 * np.sin(q) ** 2
    assert (drawn > 0).all()
    assert (np.abs(friction(model.mean()) - truth) < 4 * drawn.std(axis=0)).all()
    assert drawn.std(axis=0).max() < 0.05


def test_a_product_of_two_latents_is_found_though_neither_has_an_effect_where_the_other_is_zero():
    """Van der Pol's friction: A(q) B(p) = (q² - 1) p / 2."""
    from scipy.integrate import solve_ivp

    times = 0.1 * np.arange(160)
    law = lambda t, x: [-x[1] - 0.5 * (x[1] ** 2 - 1) * x[0], x[0]]
    clean = solve_ivp(law, (0, times[-1]), [0.5, 0.5], t_eval=times, rtol=1e-10, atol=1e-12).y.T
    noisy = clean + NOISE * np.random.default_rng(0).normal(size=clean.shape)
    data = sgpd.Trajectories.from_arrays(times, noisy, names=["p", "q"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two functions of which only the product is seen: draws are worth a word
        model = sgpd.fit(data, Product(), "rk4")
    np.testing.assert_allclose(model.noise_std, NOISE, rtol=0.2)
    field = jax.vmap(model.mean())(on_device(clean[20:]))
    expected = np.array([law(0, x) for x in clean[20:]])
    assert np.sqrt(((field - expected) ** 2).mean()) < 0.03 * np.sqrt((expected**2).mean())


class Mirrored(Damped):
    """V' at the state and at its mirror image: a field that cannot be made of readings at the state."""

    def assemble(self, *latents):
        return lambda x: DampedField(*latents)(x) - DampedField(*latents)(-x)


def test_a_structure_that_reads_its_latents_elsewhere_is_refused():
    with pytest.raises(sgpd.errors.BadInput, match="'damped' reads its latents elsewhere than at the state"):
        initial_posterior(Mirrored(), two_runs()[0], points=5)
