"""What the experiments compare with: the exact solution, or the one that the paper's authors published."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from sgpd import Trajectories
from sgpd.integrators import get as get_integrator
from sgpd.integrators import rollout
from sgpd.systems import System

TRUTHS = ("exact", "published")

# The published references are explicit Euler with these steps: their energy drifts upwards. Those of the other two
# systems are as exact as ours.
PUBLISHED_STEPS = {"pendulum": 1e-4, "non-separable": 2e-4}


def truth_of(system: System, truth: str) -> str:
    """The kind of truth that a system has under `truth`."""
    return truth if system.name in PUBLISHED_STEPS else "exact"


def solve(system: System, truth: str) -> tuple[np.ndarray, np.ndarray]:
    """Times (n,) and states (n, d) over the horizon of the forecast."""
    times = system.step * np.arange(round(system.horizon / system.step))
    if truth_of(system, truth) == "exact":
        return times, system.simulate(system.x0, times)
    substeps = round(system.step / PUBLISHED_STEPS[system.name])
    return times, np.asarray(_euler(system.field, substeps, len(times) - 1, system.step)(jnp.asarray(system.x0)))


def _euler(field, substeps: int, count: int, step: float):
    steps = jnp.full(substeps * count, step / substeps)
    return jax.jit(lambda x0: partial(rollout, get_integrator("euler"), field)(x0, steps, substeps).states)


def record(system: System, states: np.ndarray, seed: int) -> Trajectories:
    """The first part of a solution with the paper's noise; its first state is free of it, as in the published data."""
    rows = round(system.duration / system.step)
    noise = np.random.default_rng(seed).normal(size=(rows - 1, states.shape[1])) * np.sqrt(system.noise_variance)
    noisy = np.concatenate([states[:1], states[1:rows] + noise])
    return Trajectories.from_arrays(system.step * np.arange(rows), noisy, names=system.names)


def noisy_start(system: System, seed: int) -> np.ndarray:
    """A noisy observation of the first state: where rollouts would start if it were not exact."""
    rng = np.random.default_rng([seed, 1])
    return system.x0 + rng.normal(size=len(system.x0)) * np.sqrt(system.noise_variance)
