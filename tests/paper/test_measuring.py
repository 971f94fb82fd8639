"""The paper's metrics, computed a second time in plain numpy."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sgpd
from sgpd.paper.measuring import DRAWS, PATHS, invariant_error, measure_model, measure_paths, steps_along
from sgpd.paper.settings import Reading, setting_of
from sgpd.paper.training import train_models
from sgpd.paper.truths import record, solve


def test_l2_and_energy_are_those_of_the_papers_formulas():
    system = sgpd.systems.get("non-separable")
    _, truth = solve(system, "exact")
    rng = np.random.default_rng(0)
    paths = truth + 0.1 * rng.normal(size=(5, *truth.shape))
    numbers, curves = measure_paths(paths, system, truth)
    mean = sum(paths) / 5
    squares = [np.linalg.norm(x - y) ** 2 for x, y in zip(mean, truth, strict=True)]
    assert numbers["l2"] == pytest.approx(np.sqrt(sum(squares) / 400))
    h = lambda p, q: (q**2 + 1) * (p**2 + 1) / 2
    along = sum(h(*path.T) for path in paths) / 5
    assert numbers["energy_error"] == pytest.approx(abs(along.mean() - 0.5703125))
    assert numbers["energy_std"] == pytest.approx(np.sqrt(((along - 0.5703125) ** 2).sum() / 399))
    np.testing.assert_allclose(curves["std"], np.sqrt(((paths - mean) ** 2).sum(axis=0) / 4))


def test_the_worst_change_of_any_invariant_counts():
    system = sgpd.systems.get("two-body")
    _, truth = solve(system, "exact")
    assert invariant_error(system, truth[None]) < 1e-9
    bent = truth.copy()
    bent[-1, 0] += 0.25  # momentum along x; the angular momentum changes by 0.25 |y|
    assert invariant_error(system, bent[None]) >= 0.25
    assert invariant_error(sgpd.systems.get("pendulum"), truth[None]) is None


@pytest.fixture(scope="module")
def trained():
    """Barely trained models of the rigid body: the paper's form, which keeps the sphere, and explicit Euler."""
    system = sgpd.systems.get("rigid-body")
    _, truth = solve(system, "exact")
    recordings = [record(system, truth, 0)]
    short = {
        m: dataclasses.replace(setting_of(("rigid-body", m), Reading()), epochs=2, select_last=1)
        for m in ("sgpd", "euler")
    }
    models = {m: train_models(system, s, recordings, [0])[0] for m, s in short.items()}
    return system, truth[:100], models


def test_the_sphere_is_kept_by_the_papers_form_and_left_by_explicit_euler(trained):
    system, truth, models = trained
    kept, _ = measure_model(models["sgpd"], system, truth, system.x0, seed=0)
    left, _ = measure_model(models["euler"], system, truth, system.x0, seed=0)
    assert kept["invariant_error"] < 1e-12
    assert left["invariant_error"] > 1e-3
    assert kept["failed_paths"] == 0
    assert kept["l2_noisy_start"] == pytest.approx(kept["l2"], rel=0.5)
    assert 0 <= kept["coverage95"] <= 1
    assert kept["symplectic_defect"] is None


def test_the_determinant_along_a_path_is_that_of_finite_differences_of_one_step(trained):
    system, _, models = trained
    model = models["sgpd"]
    forecast = model.predict(system.x0, times=system.step * np.arange(3), paths=PATHS, seed=0)
    determinant, _ = steps_along(model, forecast.paths[:DRAWS], seed=0)
    fields = model.draws(PATHS, 0)
    field = jax.tree.map(lambda leaf: leaf[2], fields)
    step = lambda x: np.asarray(model.integrator.step(field, jnp.asarray(x), model.step)[0])
    x, e = forecast.paths[2, 1], 1e-6 * np.eye(3)
    jacobian = np.stack([(step(x + d) - step(x - d)) / 2e-6 for d in e], axis=1)
    assert determinant.shape == (DRAWS, 2)
    np.testing.assert_allclose(step(x), forecast.paths[2, 2], rtol=1e-10)  # the field is the one behind the path
    assert determinant[2, 1] == pytest.approx(np.linalg.det(jacobian), abs=1e-8)


def test_a_model_whose_draws_all_fail_is_a_row_with_a_sentence(trained, monkeypatch):
    system, truth, models = trained

    def fail(*_, **__):
        raise sgpd.NumericalFailure(sgpd.Outcome.NOT_FINITE, "All.")

    monkeypatch.setattr(sgpd.Model, "predict", fail)
    numbers, curves = measure_model(models["sgpd"], system, truth, system.x0, seed=0)
    assert numbers["failed_paths"] == PATHS
    assert "All." in numbers["failure"]
    assert curves == {}
