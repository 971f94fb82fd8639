"""The supplement's tables, read a second time: what is printed is what a training starts from."""

import numpy as np
import pytest

from sgpd.paper.features import covariance_errors
from sgpd.paper.settings import SETTINGS, WINDOWS, Grid
from sgpd.paper.training import _schedule, initial_posterior
from sgpd.structures import Free

# σ_f², l² of the first latent, Σ_ξ, N_ξ: tables "Hyperparameters SGPD" and "Hyperparameters explicit Euler"
PRINTED = {
    ("pendulum", "sgpd"): (0.01, 2**0.5, 1e-8, 9),
    ("two-body", "sgpd"): (1e-4, 8.52, 1e-8, 20),
    ("non-separable", "sgpd"): (1e-4, 2.0, 1e-7, 16),
    ("rigid-body", "sgpd"): (1e-3, 1.0, 1e-6, 9),
    ("pendulum", "euler"): (0.01, 2**0.5, 1e-8, 9),
    ("two-body", "euler"): (1e-4, 8.52, 1e-8, 20),
    ("non-separable", "euler"): (1e-4, 2.0, 1e-7, 9),
    ("rigid-body", "euler"): (1e-5, 1.0, 1e-8, 11),
}
DIMENSIONS = {"pendulum": 2, "two-body": 8, "non-separable": 2, "rigid-body": 3}


@pytest.mark.parametrize("key", PRINTED, ids=" ".join)
def test_a_training_starts_from_the_printed_numbers(key):
    variance, squared, spread, number = PRINTED[key]
    posterior = initial_posterior(SETTINGS[key], DIMENSIONS[key[0]], seed=0)
    for group, values in zip(posterior.groups, posterior.values, strict=True):
        np.testing.assert_allclose(group.kernel.variance, variance, rtol=1e-12)
        np.testing.assert_allclose(np.exp(2 * values.log_std), spread, rtol=1e-12)
        assert group.inducing.shape[1] == values.mean.shape[1] == number
    np.testing.assert_allclose(posterior.groups[0].kernel.lengthscale[0, 0] ** 2, squared, rtol=1e-12)


def test_the_first_inducing_values_are_normal_with_a_twentieth_and_differ_from_seed_to_seed():
    setting = SETTINGS["two-body", "sgpd"]
    means = np.concatenate([initial_posterior(setting, 8, seed).values[0].mean.ravel() for seed in range(25)])
    assert means.size == 2000
    assert abs(means.mean()) < 4 * 0.05 / np.sqrt(2000)
    assert means.std() == pytest.approx(0.05, rel=4 / np.sqrt(2 * 2000))


def test_scattered_inducing_inputs_lie_in_their_box_and_grids_end_at_their_ends():
    for setting in SETTINGS.values():
        for latent in setting.latents.values():
            points = latent.inducing.points(np.random.default_rng(0), 3)
            assert (points >= latent.inducing.low).all()
            assert (points <= latent.inducing.high).all()
            if isinstance(latent.inducing, Grid):
                np.testing.assert_array_equal(points.max(axis=(0, 1)), latent.inducing.high)


def test_learning_rates_change_at_the_printed_epochs():
    rate = _schedule(SETTINGS["non-separable", "sgpd"], per_epoch=91)
    steps = [0, 2 * 91 - 1, 2 * 91, 5 * 91 - 1, 5 * 91, 10 * 91]
    np.testing.assert_allclose([rate(step) for step in steps], [1e-4, 1e-4, 1e-2, 1e-2, 1e-5, 1e-5])


def test_euler_and_heun_are_free_fields_and_every_system_has_its_windows():
    assert all(isinstance(s.structure, Free) for key, s in SETTINGS.items() if key[1] == "euler" or key[0] == "heun")
    assert {name: (w.batch, w.length) for name, w in WINDOWS.items()} == {
        "pendulum": (1, 10),
        "two-body": (5, 50),
        "non-separable": (1, 10),
        "rigid-body": (1, 20),
    }


@pytest.mark.parametrize("key", SETTINGS, ids=" ".join)
def test_the_features_are_as_good_as_the_papers_at_the_first_lengthscales(key):
    """But for eight dimensions, where that would take 1024 and twice the time: there a quarter worse."""
    ours, papers = covariance_errors(key)
    assert ours <= papers * (1.25 if key == ("two-body", "euler") else 1)
