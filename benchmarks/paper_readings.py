"""What hangs on the settings that the paper leaves open, and what its schedules can give: the figures of NOTES.md.

    python benchmarks/paper_readings.py [NAME ...] [--seeds 10]

Development seeds (100, 101, ...), never those of `sgpd paper`. Prints one line for each reading, with the L2 error of
five draws and of the mean field: mean (median) over seeds.
"""

import argparse
import dataclasses
import time

import jax
import numpy as np

import sgpd
from sgpd.paper.measuring import measure_model
from sgpd.paper.settings import SETTINGS, WINDOWS
from sgpd.paper.training import train_models
from sgpd.paper.truths import record, solve

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


def errors(task: str, changes: dict, noisy: bool, seeds: list[int]) -> np.ndarray:
    """L2 errors (seeds, 2): of five draws, and of the mean field."""
    system = sgpd.systems.get(task)
    _, truth = solve(system, "exact")
    recordings = [record(system, truth, seed) for seed in seeds]
    if not noisy:
        rows = len(recordings[0].runs[0])
        times = system.step * np.arange(rows)
        recordings = [sgpd.Trajectories.from_arrays(times, truth[:rows], names=system.names)] * len(seeds)
    setting = dataclasses.replace(SETTINGS[task, "sgpd"], **changes)
    models = train_models(system, setting, WINDOWS[task], recordings, seeds)
    found = [measure_model(m, system, truth, system.x0, s)[0] for m, s in zip(models, seeds, strict=True)]
    return np.array([[row.get("l2") or np.nan, row.get("l2_best") or np.nan] for row in found])


def main():
    """Run the readings asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="*", help="parts of the readings' names; all by default")
    parser.add_argument("--seeds", type=int, default=10)
    arguments = parser.parse_args()
    seeds = list(range(FIRST_SEED, FIRST_SEED + arguments.seeds))
    for name, reading in READINGS.items():
        if arguments.name and not any(part in name for part in arguments.name):
            continue
        began = time.monotonic()
        found = errors(*reading, seeds)
        draws, best = (f"{np.nanmean(e):.3f} ({np.nanmedian(e):.3f})" for e in found.T)
        seconds = time.monotonic() - began
        failed = int(np.isnan(found[:, 0]).sum())
        print(f"{name}: draws {draws}, mean field {best}, {failed} failed, {seconds:.0f} s", flush=True)
        jax.clear_caches()


if __name__ == "__main__":
    main()
