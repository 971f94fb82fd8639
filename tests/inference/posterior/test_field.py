"""The field is linear in its whitened inducing values, and `design` holds its coefficients."""

import jax
import numpy as np
import pytest

from sgpd import structures
from sgpd.arrays import on_device
from sgpd.data import Trajectories
from sgpd.gp import Matern52
from sgpd.inference.initial import initial_posterior
from sgpd.inference.posterior.field import feature_counts, sample_features
from sgpd.inference.posterior.kernels import Kernels

CASES = {
    "free": (structures.Free(), 3),
    "separable, unequal inputs": (structures.Separable(depends_on={"V": [[1.0, -1.0]]}), 4),
    "separable, components": (structures.Separable(form="components"), 4),
    "separable, seen along axes": (structures.Separable(depends_on={"V": [[1.0, 1.0], [1.0, 1.01]]}), 4),
    "hamiltonian": (structures.Hamiltonian(), 2),
    "tangent": (structures.QuadraticInvariant(form="tangent"), 3),
    "lie-poisson": (structures.QuadraticInvariant(form="lie-poisson"), 3),
    "solved": (structures.QuadraticInvariant(form="solved"), 3),
}


def recording(d):
    times = 0.1 * np.arange(40)
    phases = np.random.default_rng(d).uniform(0, 6, size=d)
    return Trajectories.from_arrays(
        times, np.stack([np.cos((1 + k / 2) * times + phases[k]) for k in range(d)], axis=1)
    )


@pytest.mark.parametrize("case", CASES)
def test_the_design_is_the_derivative_of_the_field_by_each_whitened_value(case):
    structure, d = CASES[case]
    posterior = initial_posterior(structure, recording(d), points=5)  # few, so that L⁻¹ is small and rounding too
    assert (posterior.groups[0].axes is not None) == ("axes" in case)
    states = np.random.default_rng(0).normal(size=(3, d))

    @jax.jit
    def by_differentiation(u):
        return jax.jacfwd(lambda u: jax.vmap(posterior.field(posterior.unravel(u)))(on_device(states)))(u)

    expected = by_differentiation(posterior.flat_mean)
    np.testing.assert_allclose(
        Kernels.of(posterior).design(states), expected, rtol=0, atol=1e-12 * np.abs(expected).max()
    )


def test_one_dimension_needs_fewer_random_features_unless_frequencies_have_heavy_tails():
    structure = structures.Separable(depends_on={"V": [[1.0, -1.0]]})  # V sees one coordinate, T two
    posterior = initial_posterior(structure, recording(4), points=5)
    assert feature_counts(posterior, None) == (64, 256)
    assert feature_counts(posterior, 16) == (16, 16)
    assert feature_counts(posterior, None, "independent") == (256, 256)
    assert feature_counts(initial_posterior(structure, recording(4), Matern52, 5), None) == (256, 256)

    drawn = sample_features(np.random.default_rng(0), posterior, (8, 3), "quasi", paths=2)
    assert [each.shape for each in drawn.frequencies] == [(8, 1), (3, 2)]
    assert [each.shape for each in drawn.weights] == [(2, 1, 2, 8), (2, 1, 2, 3)]


@pytest.mark.parametrize("case", CASES)
def test_the_field_that_is_made_without_compiling_is_the_same(case):
    structure, d = CASES[case]
    posterior = initial_posterior(structure, recording(d), points=5)
    u = np.random.default_rng(1).normal(size=posterior.flat_mean.shape)
    states = on_device(np.random.default_rng(0).normal(size=(3, d)))
    found, expected = Kernels.of(posterior).field(u), posterior.field(posterior.unravel(u))
    expected = jax.vmap(expected)(states)
    np.testing.assert_allclose(jax.vmap(found)(states), expected, rtol=0, atol=1e-10 * np.abs(expected).max())
