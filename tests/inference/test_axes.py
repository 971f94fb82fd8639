"""A recording that stays in a subspace is seen along it and across it."""

import numpy as np
import pytest

import sgpd
from sgpd.arrays import on_device
from sgpd.inference import initial
from sgpd.inference.initial import initial_posterior, principal_axes
from sgpd.inference.laplace.evidence import Hyper
from sgpd.inference.variational.engine import _rates
from sgpd.inference.variational.problem import Variational, prepare

TIMES = 0.2 * np.arange(80)
NOISE = 0.03


def two_masses(times):
    """On a spring, H = (p1² + p2²)/2 + (q1 - q2)²/2 with q1 + q2 = 0: q1 = cos(√2 t)."""
    q, p = np.cos(2**0.5 * times), -(2**0.5) * np.sin(2**0.5 * times)
    return np.stack([p, -p, q, -q], axis=1)


@pytest.fixture(scope="module")
def data():
    states = two_masses(TIMES)
    noise = NOISE * np.random.default_rng(0).normal(size=states.shape)
    return sgpd.Trajectories.from_arrays(TIMES, states + noise, names=["p1", "p2", "q1", "q2"])


@pytest.fixture(scope="module")
def model(data):
    return sgpd.fit(data, "separable")


def test_axes_are_the_eigenvectors_of_the_correlation_in_standard_deviations():
    rng = np.random.default_rng(1)
    plane = rng.normal(size=(3, 2))
    inputs = rng.normal(size=(500, 2)) @ plane.T * [1.0, 10.0, 0.1] + 1e-3 * rng.normal(size=(500, 3)) + 5.0
    axes, across = principal_axes(inputs[None])  # pyright: ignore[reportGeneralTypeIssues]
    assert across.tolist() == [[True, False, False]]
    seen = inputs @ axes[0].T
    covariance = np.cov(seen.T, bias=True)
    eigenvalues = np.linalg.eigvalsh(np.corrcoef(inputs.T))
    np.testing.assert_allclose(covariance, np.diag(eigenvalues), atol=1e-10)
    # Distances are those in standard deviations, whatever the axes.
    scaled = inputs / inputs.std(axis=0)
    np.testing.assert_allclose(((seen[0] - seen[1]) ** 2).sum(), ((scaled[0] - scaled[1]) ** 2).sum(), rtol=1e-12)


def test_inputs_that_leave_no_direction_out_keep_their_coordinates():
    rng = np.random.default_rng(2)
    assert principal_axes(rng.normal(size=(1, 100, 1))) is None
    assert principal_axes(rng.normal(size=(2, 100, 3)) * [1.0, 1e-6, 1e3]) is None


def test_fields_given_by_components_keep_their_coordinates(data):
    for structure in (sgpd.structures.Free(), sgpd.structures.Separable(form="components")):
        assert initial_posterior(structure, data, points=9).groups[0].axes is None


def test_a_constant_coordinate_or_latents_that_differ_keep_their_coordinates():
    rng = np.random.default_rng(3)
    line = np.repeat(rng.normal(size=(100, 1)), 2, axis=1)
    assert principal_axes(line[None]) is not None
    constant = np.full((100, 1), 0.1) + 1e-16 * rng.normal(size=(100, 1))
    assert principal_axes(np.concatenate([line, constant], axis=1)[None]) is None
    assert principal_axes(np.stack([line, rng.normal(size=(100, 2))])) is None


def test_axes_alone_do_not_change_where_a_fit_starts(data, monkeypatch):
    monkeypatch.setattr(initial, "ACROSS", (1.0,))
    with_axes = initial_posterior(sgpd.structures.Separable(), data)
    monkeypatch.setattr(initial, "CONFINED", 0.0)
    without = initial_posterior(sgpd.structures.Separable(), data)
    assert with_axes.groups[0].axes is not None
    assert without.groups[0].axes is None
    for x in two_masses(TIMES[::20]) + 0.3:  # off the subspace, too
        np.testing.assert_allclose(with_axes.mean()(on_device(x)), without.mean()(on_device(x)), rtol=1e-5, atol=1e-6)


def test_lengthscales_along_axes_have_a_narrower_prior(model):
    start = Hyper.unchanged(model.posterior, model.noise_std)
    np.testing.assert_array_equal(start.width(model.posterior).lengthscales[0], [3.0, 3.0])


def test_what_lies_across_the_subspace_is_found_not_to_matter(model):
    """Moving both masses by 0.3 changes no force; the forces themselves are up to 2."""
    for group in model.posterior.groups:
        across, along = np.asarray(group.kernel.lengthscale)[0]
        assert across > 30 * along
    field = model.draw(seed=0)
    force = lambda x: np.asarray(field(on_device(x)))[:2]
    here = two_masses(np.array([0.4]))[0]
    there = here + np.array([0, 0, 0.3, 0.3])
    np.testing.assert_allclose(force(there), force(here), atol=0.01)
    assert sum("moves along 1 of 2 directions" in note for note in model.notes) == 2


def test_the_forecast_stays_within_the_noise_over_three_times_the_recording(model):
    times = 0.2 * np.arange(240)
    forecast = model.predict(two_masses(times[:1])[0], times=times)
    assert np.sqrt(((forecast.best - two_masses(times)) ** 2).mean()) < NOISE


def test_a_saved_model_keeps_its_axes(model, tmp_path):
    model.save(tmp_path / "model.safetensors")
    again = sgpd.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.posterior.groups[0].axes, model.posterior.groups[0].axes)
    one, other = (each.predict(duration=2.0, paths=8).paths for each in (model, again))
    np.testing.assert_array_equal(one, other)


def test_a_training_leaves_axes_as_they_are(data):
    settings = Variational(shooting=False, prior_rate=1.0)
    guess = initial_posterior(sgpd.structures.Separable(), data)
    _, parameters, _ = prepare(data, guess, sgpd.integrators.get("stormer-verlet"), settings, "latent")
    rates = _rates(parameters, settings).field.groups[0]
    assert (rates.axes, rates.scale, rates.scaled_locations) == (0.0, 0.0, 1.0)


def test_recordings_with_and_without_axes_do_not_train_side_by_side(data):
    states = data.runs[0].states.copy()
    states[:, 3] = np.sin(TIMES)  # now q1 and q2 move on their own
    other = sgpd.Trajectories.from_arrays(TIMES, states, names=data.names)
    with pytest.raises(ValueError, match="stay in a subspace and others do not; fit them one by one"):
        sgpd.fit([data, other], "separable", inference=Variational(shooting=False), seed=[0, 1])
