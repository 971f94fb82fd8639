"""Models that were guessed and not fitted, and recordings for them: there to be drawn and judged."""

import dataclasses

import jax.numpy as jnp
import numpy as np

import sgpd
from sgpd.data import Trajectories, windows
from sgpd.data.smoothing import noise_std, smooth_run
from sgpd.inference import Joint
from sgpd.inference.facts import Epoch, FitFacts
from sgpd.inference.initial import initial_posterior
from sgpd.judging import HeldOut
from sgpd.models import Model, Pieces
from sgpd.models.facts import Facts, RecordingFacts
from sgpd.structures import Structure

FIT = FitFacts(
    log_evidence=0.0,
    parameters=8,
    effective_parameters=4.0,
    converged=True,
    steps_converged=1.0,
    worst_residual=0.0,
    autocorrelation_times=(1.0, 1.0),
    draws="gaussian",
    drawn=512,
    importance_sample_size=500.0,
    stored_draws=0,
    failed_draws=0,
    features=(16,),
    features_dropped=False,
)


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    model: Model
    data: Trajectories
    held_out: HeldOut | None = None


def recorded(system: str, rows: int) -> Trajectories:
    system = sgpd.systems.get(system)
    times, rng = system.step * np.arange(rows), np.random.default_rng(1)
    noise = np.sqrt(system.noise_variance) * rng.normal(size=(rows, len(system.names)))
    return Trajectories.from_arrays(times, system.simulate(system.x0, times) + noise, names=system.names)


def oscillators(d: int, rows: int = 40) -> Trajectories:
    """d/2 springs of different stiffness, or for odd d the first coordinates of them."""
    times, rng = 0.1 * np.arange(rows), np.random.default_rng(0)
    pace = 1 + 0.3 * np.arange((d + 1) // 2)
    p, q = -np.sin(times[:, None] * pace), np.cos(times[:, None] * pace)
    states = np.concatenate([p, q], axis=1)[:, :d] + 0.02 * rng.normal(size=(rows, d))
    return Trajectories.from_arrays(times, states)


def holes() -> Trajectories:
    """Two runs: one with missing values, one with a gap."""
    run = recorded("pendulum", 60).runs[0]
    first = run.states[:30].copy()
    first[5:9, 0] = np.nan
    later = np.delete(np.arange(60), slice(20, 40))
    return Trajectories.from_arrays([run.times[:30], run.times[later]], [first, run.states[later]], names=["p", "q"])


def guessed(data: Trajectories, structure: str | Structure) -> Model:
    """What a fit starts from: a field that explains the slopes of splines, each run in one piece."""
    structure = sgpd.structures.get(structure) if isinstance(structure, str) else structure
    posterior = initial_posterior(structure, data, points=8).plain()
    method = {"separable": "stormer-verlet", "free": "rk4"}.get(structure.name, "implicit-midpoint")
    cut, noise = windows(data, 500), noise_std(data)
    first = [smooth_run(data.runs[run]).states[row] for run, row in zip(cut.run, cut.row, strict=True)]
    starts = jnp.asarray(np.array(first))
    return Model(
        posterior=posterior,
        integrator=sgpd.integrators.get(method),
        step=data.step,
        noise_std=noise,
        names=data.names,
        units=data.units,
        joint=Joint.independent(posterior, starts, jnp.broadcast_to(jnp.asarray(noise), starts.shape)),
        pieces=Pieces.of(cut),
        objective="lower bound",
        features=(16,) * len(posterior.groups),
        history=(Epoch(1, -9.0, -8.0, 1.0, 0.0, 1.0), Epoch(2, -3.0, -2.0, 1.0, 0.0, 1.0)),
        run_names=data.run_names,
        facts=Facts(RecordingFacts.of(data)),
    )


def alternating() -> Trajectories:
    """Two channels that were never recorded at the same time."""
    run = recorded("pendulum", 60).runs[0]
    states = run.states.copy()
    states[::2, 0] = states[1::2, 1] = np.nan
    return Trajectories.from_arrays(run.times, states, names=["p", "q"])
