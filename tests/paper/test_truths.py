"""The published references have the energies of the published files, and recordings have the paper's noise."""

import jax
import numpy as np
import pytest

import sgpd
from sgpd.paper.truths import noisy_start, record, solve, truth_of


@pytest.mark.parametrize(
    ("name", "first", "last"), [("pendulum", 10.4969, 10.584), ("non-separable", 0.57031, 0.57092)]
)
def test_the_published_references_gain_energy_as_the_published_files_do(name, first, last):
    """The energies of the first and last of the 400 published states, to the digits that are known."""
    system = sgpd.systems.get(name)
    times, states = solve(system, "published")
    energy = np.asarray(jax.vmap(system.energy)(states))
    assert len(times) == 400
    np.testing.assert_allclose(energy[[0, -1]], [first, last], rtol=1e-4)


def test_the_exact_pendulum_is_half_a_unit_from_the_published_one():
    system = sgpd.systems.get("pendulum")
    (_, exact), (_, published) = solve(system, "exact"), solve(system, "published")
    assert np.sqrt(((exact - published) ** 2).sum(axis=1).mean()) == pytest.approx(0.543, abs=5e-4)


def test_only_two_systems_have_a_published_reference():
    kinds = {name: truth_of(sgpd.systems.get(name), "published") for name in sgpd.systems.names()}
    expected = {"pendulum": "published", "two-body": "exact", "non-separable": "published", "rigid-body": "exact"}
    assert kinds == expected


def test_recordings_have_the_noise_of_their_system_and_an_exact_first_state():
    system = sgpd.systems.get("rigid-body")
    _, states = solve(system, "exact")
    noise = np.concatenate([record(system, states, seed).runs[0].states - states[:150] for seed in range(40)])
    starts = noise.reshape(40, 150, 3)[:, 0]
    np.testing.assert_array_equal(starts, 0)
    spread = noise.reshape(40, 150, 3)[:, 1:].reshape(-1, 3).var(axis=0)
    # the variance of n normals has a relative standard error of √(2/n); n = 5960
    np.testing.assert_allclose(spread, system.noise_variance, rtol=4 * np.sqrt(2 / 5960))
    assert not np.allclose(noisy_start(system, 0), system.x0)
    np.testing.assert_array_equal(noisy_start(system, 3), noisy_start(system, 3))
