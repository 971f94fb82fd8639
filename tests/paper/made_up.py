"""Results that no model made: right shapes, plausible sizes, known numbers."""

import numpy as np

from sgpd.paper.results import TASKS, Result
from sgpd.paper.settings import Reading

HORIZONS = {"pendulum": (0.1, 400, 100), "two-body": (0.15, 201, 126), "non-separable": (0.1, 400, 100)}
HORIZONS["rigid-body"] = (0.1, 500, 150)
SIZES = {"sgpd": 0.08, "euler": 0.25, "hnn": 0.6, "default": 0.06}
STEPS = {0.1: "heun", 0.05: "heun", 0.005: "heun", None: "adaptive"}
NUMBERS = (
    "l2",
    "l2_selected",
    "energy_error",
    "energy_std",
    "det_error",
    "symplectic_defect",
    "invariant_error",
    "coverage95",
)
ABOUT = {
    "command": "sgpd paper --out <DIR>",
    "version": "0.1.0",
    "recordings": 5,
    "trainings": 1,
    "truth": "exact",
    "quick": False,
    "settings": [("pendulum", "sgpd"), ("rigid-body", "sgpd"), ("heun", "pendulum")],
    "reading": Reading(),
    "features": ["64 Sobol features were used."],
    "seconds": 1234.0,
    "notes": "# Notes\n\n## A reading\n\n| printed | right |\n|---|---|\n| 1 | 0 |\n\nA sentence & a <b>sign</b>.\n",
}


def row(task: str, method: str, seed: int, **changes) -> dict:
    """A row with every key, of the first training on the recording `seed`; what is not given is null."""
    empty = dict.fromkeys([*NUMBERS, "l2_published", "l2_best", "l2_noisy_start", "failure"])
    known = {"task": task, "method": method, "truth": "exact", "seconds": 10.0 + seed}
    known |= {"recording": seed, "training": 0, "seed": seed}
    return empty | known | {"paths": 5, "failed_paths": 0, "features": "64 Sobol"} | changes


def result(task: str, method: str, seed: int, **changes) -> Result:
    """A good run, its error growing with time."""
    dt, n, recorded = HORIZONS[changes.get("system", task)]
    d = len(TASKS[changes.get("system", task)].states)
    rng, times = np.random.default_rng([seed, len(task), len(method)]), dt * np.arange(n)
    truth = np.cos(times[:, None] * (1 + 0.1 * (d == 3)) - np.pi / 2 * (np.arange(d) % 2) + np.pi * (np.arange(d) > 5))
    drift = rng.standard_normal((5, 1, d)) * np.sin(0.7 * times + rng.uniform(size=5)[:, None])[..., None]
    paths = truth + SIZES[method] * (times / times[-1])[:, None] * drift
    curves = {"times": times, "truth": truth, "mean": paths.mean(0), "paths": paths, "recorded_times": times[:recorded]}
    curves["recorded"] = truth[:recorded] + 0.05 * rng.standard_normal((recorded, d))
    curves["energy"] = 0.57 + SIZES[method] * 0.1 * rng.standard_normal((5, n)).cumsum(1) / np.sqrt(n)
    curves["energy_true"] = np.array(0.57)
    if method != "hnn":
        kept = 1e-2 if method == "euler" else 1e-15
        curves["std"] = paths.std(0, ddof=1)
        curves["determinant"] = 1 + kept * rng.standard_normal((5, n - 1))
        if task == "rigid-body":
            curves["invariant"] = 1 + kept * rng.standard_normal((5, n)).cumsum(1) / 10
    l2 = float(np.sqrt(((truth - curves["mean"]) ** 2).sum(1).mean()))
    numbers = {"l2": l2, "energy_error": 1e-3, "energy_std": 2e-3, "det_error": 1e-2, "coverage95": 0.9} | changes
    if method == "hnn":
        numbers |= {"l2_by_differences": {"gradient": l2, "forward": 2 * l2, "midpoint": l2 / 2}, "paths": 1}
    return Result(row(task, method, seed, **numbers), curves)


def failed(task: str, method: str, seed: int, **changes) -> Result:
    """A run of which no draw stayed finite."""
    whole = result(task, method, seed, **changes)
    kept = {name: whole.curves[name] for name in ("times", "truth", "recorded_times", "recorded")}
    known = {"failed_paths": 5, "failure": "No rollout stayed finite."} | changes
    return Result(row(task, method, seed, **known), kept)


def diverged(task: str, method: str, seed: int, **changes) -> Result:
    """A run that leaves the truth by far, and one of its draws all numbers."""
    whole = result(task, method, seed, **changes)
    growth = np.exp(np.minimum(whole.curves["times"] ** 2, 700.0))
    changed = {"mean": whole.curves["mean"] * growth[:, None], "energy": whole.curves["energy"] * growth}
    changed["energy"][0, -1], changed["mean"][-1] = np.nan, np.inf
    if "std" in whole.curves:
        changed["std"] = whole.curves["std"] * growth[:, None]
        changed["determinant"] = whole.curves["determinant"] * growth[1:]
    if "invariant" in whole.curves:
        changed["invariant"] = whole.curves["invariant"] * growth
    return Result(whole.row | {"l2": 1e200}, whole.curves | changed)


def everything(seeds: int = 2) -> list[Result]:
    """All tasks and methods of the paper."""
    pairs = [(t, m) for t in HORIZONS for m in ("sgpd", "euler", "hnn") if (t, m) != ("rigid-body", "hnn")]
    return [result(t, m, seed) for seed in range(seeds) for t, m in pairs] + heun(seeds)


def heun(seeds: int = 2) -> list[Result]:
    """The Heun experiment: Euler fails with an adaptive solver, and is far off at other steps."""
    found = []
    for seed in range(seeds):
        for system in ("pendulum", "non-separable"):
            for step, solver in STEPS.items():
                place = {"system": system, "step": step, "solver": solver}
                found.append(result("heun", "sgpd", seed, **place))
                make = {0.1: result, None: failed}.get(step, diverged)
                found.append(
                    make("heun", "euler", seed, **(place | {"solver": "adaptive" if step is None else "euler"}))
                )
    return found
