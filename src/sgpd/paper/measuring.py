"""The paper's metrics, and ours beside them, of one model's rollouts against the truth."""

import warnings
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd import Model, NumericalFailure, SgpdWarning
from sgpd.checks import step_jacobian, symplectic_defect
from sgpd.fields import Field, taken
from sgpd.inference import selection_draws
from sgpd.integrators import Integrator, rollout
from sgpd.systems import System

DRAWS = 5  # rollouts that the paper averages
PATHS = 64  # rollouts behind coverage and the counts of failures; the first five are the paper's

Rows = Float[np.ndarray, "n d"]


def measure_model(
    model: Model, system: System, truth: Rows, noisy: np.ndarray, seed: int, paths: int = PATHS, **how
) -> tuple[dict, dict[str, np.ndarray]]:
    """Numbers and curves of a model's rollouts over the horizon; `how` (another step or method) goes to `predict`."""
    times = system.step * np.arange(len(truth))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SgpdWarning)  # failed paths are counted, and other steps are what was asked for
        try:
            forecast = model.predict(system.x0, times=times, paths=paths, seed=seed, **how)
        except NumericalFailure as failure:
            return {"failure": str(failure), "paths": paths, "failed_paths": paths}, {}
        noisy_l2 = None if how else _noisy_l2(model, noisy, times, truth, seed, paths)
    counted = {"paths": paths, "failed_paths": int((~forecast.ok).sum())}
    usable = forecast.ok[:DRAWS]
    if not usable.any():
        return counted | {"failure": f"All of the first {DRAWS} rollouts, the paper's, failed."}, {}
    numbers, curves = measure_paths(forecast.paths[:DRAWS][usable], system, truth)
    low, high = forecast.interval(0.95)
    numbers |= counted | {
        "l2_best": l2_error(forecast.best, truth),
        "l2_noisy_start": noisy_l2,
        "coverage95": float(np.mean((low <= truth) & (truth <= high))),
        "invariant_error": invariant_error(system, forecast.paths[forecast.ok]),
    }
    if not how:
        numbers["l2_selected"] = selected_l2(model, system, truth)
        determinant, defect = steps_along(model, forecast.paths[:DRAWS], seed, paths)
        curves["determinant"] = determinant[usable]
        numbers["det_error"] = _number(np.abs(determinant[usable] - 1).max())
        numbers["symplectic_defect"] = None if model.dimension % 2 else _number(defect[usable].max())
    return numbers, curves


def _noisy_l2(model: Model, noisy: np.ndarray, times: np.ndarray, truth: Rows, seed: int, paths: int) -> float | None:
    """The error of the first rollouts from a noisy start; as many paths as before, so that nothing is compiled anew."""
    try:
        forecast = model.predict(noisy, times=times, paths=paths, seed=seed)
    except NumericalFailure:
        return None
    usable = forecast.ok[:DRAWS]
    return l2_error(forecast.paths[:DRAWS][usable].mean(axis=0), truth) if usable.any() else None


def selected_l2(model: Model, system: System, truth: Rows) -> float | None:
    """The error of the very five draws that won the selection, as the paper computes it; none where none was made."""
    selection = model.facts.selection
    if selection is None:
        return None
    key = jax.random.wrap_key_data(jnp.asarray(selection.key, jnp.uint32))
    fields = selection_draws(model.posterior, key, model.features[0], model.sampling)
    steps = jnp.full(len(truth) - 1, model.step)
    return l2_error(np.asarray(_rolled(fields, model.integrator, jnp.asarray(system.x0), steps)).mean(axis=0), truth)


@eqx.filter_jit
def _rolled(fields: Field, integrator: Integrator, x0: Float[Array, " d"], steps: Float[Array, " n"]):
    return eqx.filter_vmap(lambda field: rollout(integrator, field, x0, steps).states)(fields)


def measure_paths(paths: Float[np.ndarray, "k n d"], system: System, truth: Rows) -> tuple[dict, dict[str, np.ndarray]]:
    """The paper's numbers of some rollouts: L2 of their mean, and their energy."""
    energy = np.asarray(jax.vmap(jax.vmap(system.energy))(jnp.asarray(paths)))
    energy_true = float(system.energy(jnp.asarray(truth[0])))
    mean_energy = energy.mean(axis=0)  # H_n
    numbers = {
        "l2": l2_error(paths.mean(axis=0), truth),
        "energy_error": _number(abs(mean_energy.mean() - energy_true)),
        "energy_std": _number(np.sqrt(((mean_energy - energy_true) ** 2).sum() / (len(mean_energy) - 1))),
    }
    curves = {"paths": paths, "mean": paths.mean(axis=0), "energy": energy, "energy_true": np.asarray(energy_true)}
    if len(paths) > 1:
        curves["std"] = paths.std(axis=0, ddof=1)
    if system.name == "rigid-body":
        curves["invariant"] = (paths**2).sum(axis=2)
    return numbers, curves


def l2_error(states: Rows, truth: Rows) -> float | None:
    """√(1/N Σ ‖Xᵢ - X̂ᵢ‖²)."""
    return _number(np.sqrt(((states - truth) ** 2).sum(axis=1).mean()))


def invariant_error(system: System, paths: np.ndarray) -> float | None:
    """The largest change of any invariant besides the energy, along any path."""
    changes = [_changes(invariant, paths) for invariant in system.invariants.values()]
    return _number(max(changes)) if changes else None


def _changes(invariant: Callable, paths: np.ndarray) -> float:
    values = np.asarray(jax.vmap(jax.vmap(invariant))(jnp.asarray(paths)))
    return float(np.abs(values - values[:, :1]).max())


def steps_along(
    model: Model, rollouts: Float[np.ndarray, "k n d"], seed: int, paths: int = PATHS
) -> tuple[np.ndarray, np.ndarray]:
    """det ψ' (k, n - 1) along the first of so many paths, and how far the steps are from symplectic (0 in odd d)."""
    fields = taken(model.draws(paths, seed), slice(len(rollouts)))
    determinant, defect = _along(fields, model.integrator, model.step, jnp.asarray(rollouts[:, :-1]))
    return np.asarray(determinant), np.asarray(defect)


@eqx.filter_jit
def _along(fields: Field, integrator: Integrator, h: float, states: Float[Array, "k n d"]):
    def one_path(field, states):
        jacobians = jax.vmap(lambda x: step_jacobian(integrator, field, x, jnp.asarray(h)))(states)
        even = states.shape[1] % 2 == 0
        defects = jax.vmap(symplectic_defect)(jacobians) if even else jnp.zeros(len(states))
        return jax.vmap(jnp.linalg.det)(jacobians), defects

    return eqx.filter_vmap(one_path)(fields, states)


def _number(value) -> float | None:
    """A finite number for JSON, or nothing."""
    return float(value) if np.isfinite(value) else None
