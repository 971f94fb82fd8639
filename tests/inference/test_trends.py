"""A potential that is a parabola is found to be one, and needs nothing of the process beside it."""

import json
from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import sgpd
from sgpd.arrays import on_device
from sgpd.gp import WhitenedGaussian, prior_root
from sgpd.inference.initial import initial_posterior
from sgpd.inference.laplace.evidence import Hyper
from sgpd.inference.posterior.kernels import Kernels
from sgpd.inference.variational.engine import _rates
from sgpd.inference.variational.problem import Variational, prepare

NOISE = 0.05


def oscillator(times):
    """H = p² - p/2 + q²/4: ellipses around p = 1/4, once in 2π."""
    return np.stack([0.25 - 0.5 * np.sin(times), np.cos(times)], axis=1)


@pytest.fixture(scope="module")
def data():
    times = 0.15 * np.arange(100)
    states = oscillator(times)
    noise = NOISE * np.random.default_rng(0).normal(size=states.shape)
    return sgpd.Trajectories.from_arrays(times, states + noise, names=["p", "q"])


@pytest.fixture(scope="module")
def model(data):
    return sgpd.fit(data, "hamiltonian")


def test_the_oscillator_of_these_tests_solves_its_equations():
    """p' = -q/2 and q' = 2p - 1/2, by central differences."""
    times, h = np.linspace(0, 3, 5), 1e-5
    p, q = oscillator(times).T
    slope = (oscillator(times + h) - oscillator(times - h)) / (2 * h)
    np.testing.assert_allclose(slope, np.stack([-q / 2, 2 * p - 1 / 2], axis=1), atol=1e-9)


def test_the_process_is_left_with_nothing_where_the_energy_is_a_parabola(model, data):
    """H has the bends 2 and 1/2: within four of its own standard errors, of 64 draws, and hardly any process."""
    bends = lambda field: jax.hessian(field.energy)(on_device(np.array([0.25, 0.0])))
    drawn = np.array([bends(model.draw(seed)) for seed in range(64)])
    away = np.asarray(bends(model.mean())) - np.diag([2.0, 0.5])
    assert (np.abs(away) < 4 * drawn.std(axis=0)).all()
    assert drawn.std(axis=0)[0, 0] < 0.1
    (group,) = model.posterior.groups
    u = model.posterior.flat_mean
    parts = Kernels.of(model.posterior).design(data.runs[0].states) * np.asarray(u)
    process, trend = parts[..., : group.points].sum(axis=2), parts[..., group.points :].sum(axis=2)
    assert np.sqrt((process**2).mean()) < 0.05 * np.sqrt((trend**2).mean())


def test_the_forecast_stays_within_the_noise_over_ten_times_the_recording(model):
    times = 0.15 * np.arange(1000)
    forecast = model.predict(oscillator(times[:1])[0], times=times)
    assert np.sqrt(((forecast.best - oscillator(times)) ** 2).mean()) < NOISE


def test_only_potentials_have_a_trend(data):
    trends = lambda structure: [group.trend is not None for group in initial_posterior(structure, data).groups]
    assert trends(sgpd.structures.Separable()) == [True, True]
    assert trends(sgpd.structures.Hamiltonian()) == [True]
    assert trends(sgpd.structures.Separable(form="components")) == [False, False]
    assert trends(sgpd.structures.Free()) == [False]


@dataclass(frozen=True, eq=False)
class TwoEnergies(sgpd.structures.Structure):
    """The energy is the sum of two latents of one group, and of one more: their unknowns must not be mixed up."""

    name: ClassVar[str] = "two energies"
    promise: ClassVar[str] = "p' = -∂H/∂q, q' = ∂H/∂p."

    def groups(self, dimension):
        maps = np.stack([np.eye(dimension), [[1.0, 1.0], [1.0, -1.0]]])
        both = self.spec("A", 2, np.eye(dimension), differentiated=True)
        return replace(both, depends_on=maps), self.spec("B", 1, np.eye(dimension)[1:], differentiated=True)

    def assemble(self, *latents):
        def field(x):
            p, q = sum(each.gradients(x).sum(axis=0) for each in latents)
            return jnp.stack([-q, p])

        return field

    def traits(self, dimension):
        return sgpd.Traits(hamiltonian=True)


def test_the_design_knows_which_unknowns_are_whose(data):
    posterior = initial_posterior(TwoEnergies(), data, points=4)
    states = np.random.default_rng(0).normal(size=(3, 2))
    by_differentiation = jax.jacfwd(lambda u: jax.vmap(posterior.field(posterior.unravel(u)))(on_device(states)))
    expected = by_differentiation(posterior.flat_mean)
    np.testing.assert_allclose(
        Kernels.of(posterior).design(states), expected, rtol=0, atol=1e-12 * np.abs(expected).max()
    )


def test_values_rewhitened_for_other_kernels_are_the_same_values_and_the_same_parabolas(data):
    posterior = initial_posterior(TwoEnergies(), data, points=4)
    start = Hyper.unchanged(posterior, np.ones(2))
    hyper = start.of_flat(start.flat + 0.3 * np.random.default_rng(1).normal(size=start.flat.size))
    old, new = (Kernels.of(each) for each in (posterior, hyper.kernels(posterior)))
    u = np.asarray(posterior.flat_mean)
    again = new.unknowns(old.values(u))
    assert np.abs(again - u).max() > 0.1
    np.testing.assert_allclose(new.unknowns(new.values(u)), u, rtol=1e-8)

    def meant(posterior, u):
        """Values at inducing points, slopes and bends, latent by latent."""
        for group, whitened in zip(posterior.groups, posterior.unravel(u), strict=True):
            for index, own in enumerate(whitened):
                kernel, inducing, trend = jax.tree.map(
                    lambda leaf: leaf[index],  # noqa: B023
                    (group.kernel, group.inducing, group.trend),
                )
                yield prior_root(kernel, inducing, group.jitter) @ own[: group.points]
                yield from trend.parabola(kernel, own[group.points :])[1:]

    pairs = list(zip(meant(posterior, u), meant(hyper.kernels(posterior), again), strict=True))
    assert len(pairs) == 3 * 3
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)


def test_a_saved_model_keeps_its_trends(model, tmp_path):
    model.save(tmp_path / "model.safetensors")
    again = sgpd.load(tmp_path / "model.safetensors")
    one, other = (each.posterior.groups[0].trend for each in (model, again))
    np.testing.assert_array_equal(one.log_variances, other.log_variances)
    one, other = (each.predict(duration=2.0, paths=8).paths for each in (model, again))
    np.testing.assert_array_equal(one, other)


def test_a_model_of_the_format_before_trends_is_read(data, tmp_path):
    guess = initial_posterior(sgpd.structures.Hamiltonian(), data, points=9)
    groups = tuple(replace(g, trend=None) for g in guess.groups)
    values = tuple(WhitenedGaussian(q.mean[:, :9], q.plain().raw_root[:, :9, :9]) for q in guess.whitened)
    without = replace(guess, groups=groups, values=values)
    model = sgpd.fit(data, "hamiltonian", initial=without, inference=Variational(shooting=False, steps=1))
    model.save(tmp_path / "new.safetensors")
    with safe_open(tmp_path / "new.safetensors", framework="numpy") as file:
        header = json.loads(file.metadata()["sgpd"]) | {"format": "sgpd.model/5", "features": 256}
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(arrays, tmp_path / "old.safetensors", metadata={"sgpd": json.dumps(header)})
    old = sgpd.load(tmp_path / "old.safetensors")
    assert old.posterior.groups[0].trend is None
    np.testing.assert_array_equal(old.predict(duration=1.0).paths, model.predict(duration=1.0).paths)


def test_a_training_leaves_the_centres_of_trends_as_they_are(data):
    settings = Variational(shooting=False, prior_rate=1.0)
    guess = initial_posterior(sgpd.structures.Separable(), data)
    _, parameters, _ = prepare(data, guess, sgpd.integrators.get("stormer-verlet"), settings, "latent")
    rates = _rates(parameters, settings).field.groups[0].trend
    assert rates is not None
    assert (rates.centre, rates.log_variances) == (0.0, 1.0)
