"""What hangs on the settings that the paper leaves open, and what its schedules can give: the figures of NOTES.md.

    python benchmarks/paper_readings.py [NAME ...] [--seeds 10]

Development seeds (100, 101, ...), never those of `sgpd paper`. Prints one line for each reading, with the L2 error of
five draws and of the mean field, or of a Hamiltonian neural network: mean (median) over seeds.
"""

import argparse
import dataclasses
import time
from functools import partial

import jax
import numpy as np

import sgpd
from sgpd.paper.hnn import DIFFERENCES, roll, train_networks
from sgpd.paper.measuring import l2_error, measure_model
from sgpd.paper.settings import SETTINGS, WINDOWS
from sgpd.paper.training import train_models
from sgpd.paper.truths import record, solve
from sgpd.systems import System

FIRST_SEED = 100
CODE_RATES = ((0, 1e-3), (2, 1e-4), (5, 1e-5))
LONGER = {
    "non-separable": (60, ((0, 1e-2), (20, 1e-3), (40, 1e-4))),
    "rigid-body": (40, ((0, 1e-2), (10, 1e-3), (20, 1e-4), (30, 1e-5))),
}

# name: task, changes of its setting, whether the recording has noise
READINGS = {
    f"{task}, relative jitter {jitter:g}": (task, {"jitter": jitter}, True)
    for task in ("pendulum", "non-separable", "rigid-body")
    for jitter in (1e-8, 1e-4, 1e-2)
}
READINGS |= {f"{task}, no noise": (task, {}, False) for task in sgpd.systems.names()}
READINGS["non-separable, learning rates of the authors' code"] = ("non-separable", {"rates": CODE_RATES}, True)
for task, (epochs, rates) in LONGER.items():
    for noisy in (True, False):
        name = f"{task}, {epochs} epochs{'' if noisy else ', no noise'}"
        READINGS[name] = (task, {"epochs": epochs, "rates": rates}, noisy)
# name: steps, weight decay, whether the recording has noise
NETWORKS = {
    f"two-body HNN, {steps} steps{'' if noisy else ', no noise'}": (steps, decay, noisy)
    for steps, decay in ((2_000, 1e-4), (10_000, 0.0))
    for noisy in (True, False)
}


def recordings_of(system: System, truth: np.ndarray, noisy: bool, seeds: list[int]) -> list[sgpd.Trajectories]:
    """One for each seed; without noise they are all the same."""
    recordings = [record(system, truth, seed) for seed in seeds]
    if noisy:
        return recordings
    times = recordings[0].runs[0].times
    return [sgpd.Trajectories.from_arrays(times, truth[: len(times)], names=system.names)] * len(seeds)


def errors(task: str, changes: dict, noisy: bool, seeds: list[int]) -> np.ndarray:
    """L2 errors (seeds, 2): of five draws, and of the mean field."""
    system = sgpd.systems.get(task)
    _, truth = solve(system, "exact")
    recordings = recordings_of(system, truth, noisy, seeds)
    setting = dataclasses.replace(SETTINGS[task, "sgpd"], **changes)
    models = train_models(system, setting, WINDOWS[task], recordings, seeds)
    found = [measure_model(m, system, truth, system.x0, s)[0] for m, s in zip(models, seeds, strict=True)]
    return np.array([[row.get("l2") or np.nan, row.get("l2_best") or np.nan] for row in found])


def network_errors(steps: int, decay: float, noisy: bool, seeds: list[int]) -> np.ndarray:
    """L2 errors (seeds, 1) of networks for two bodies."""
    system = sgpd.systems.get("two-body")
    times, truth = solve(system, "exact")
    runs = [recording.runs[0] for recording in recordings_of(system, truth, noisy, seeds)]
    pairs = [DIFFERENCES["gradient"](run.times, run.states) for run in runs]
    networks = train_networks(*map(np.stack, zip(*pairs, strict=True)), steps, seeds, weight_decay=decay)
    return np.array([[l2_error(roll(network, system.x0, times)[0], truth) or np.nan] for network in networks])


def main():
    """Run the readings asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", help="parts of the readings' names; all by default")
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    seeds = list(range(FIRST_SEED, FIRST_SEED + arguments.seeds))
    readings = {name: partial(errors, *reading) for name, reading in READINGS.items()}
    readings |= {name: partial(network_errors, *reading) for name, reading in NETWORKS.items()}
    for name, measured in readings.items():
        if arguments.name and not any(part in name for part in arguments.name):
            continue
        began = time.monotonic()
        found = measured(seeds)
        means = ", mean field ".join(f"{np.nanmean(e):.3f} ({np.nanmedian(e):.3f})" for e in found.T)
        seconds = time.monotonic() - began
        failed = int(np.isnan(found[:, 0]).sum())
        print(f"{name}: {means}, {failed} failed, {seconds:.0f} s", flush=True)
        jax.clear_caches()


if __name__ == "__main__":
    main()
