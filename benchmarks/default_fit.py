"""The default fit on the paper's tasks: accuracy, calibration and time, over noise seeds, beside the other methods.

    python benchmarks/default_fit.py [--seeds 1000-1019] [--out build/default-fit] [--only pendulum ...] [--x0 known]

Exact truth, the paper's sampling and noise. Every fit is kept as one line of JSON, so an interrupted run goes on where
it stopped. The table is printed and written to OUT/table.md; docs/default-fit.md shows it. `--others` adds the paper's
own scheme (as its authors' program has it), the explicit-Euler GP with both engines and the HNN on the same recordings.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import sgpd
from sgpd.paper.experiments import Experiment, run
from sgpd.paper.measuring import l2_error
from sgpd.paper.results import Trial
from sgpd.paper.settings import Reading
from sgpd.paper.truths import noisy_start, record, solve
from sgpd.structures import Free, Hamiltonian, QuadraticInvariant, Separable
from sgpd.xla.cache import keep_compiled_programs

RELATIVE = {"V": [[1, 0, -1, 0], [0, 1, 0, -1]]}  # the potential sees q1 - q2 alone
# name: system, structure, integrator
FITS = {
    "pendulum": ("pendulum", Separable(), "auto"),
    "two-body": ("two-body", Separable(), "auto"),
    "two-body, relative": ("two-body", Separable(depends_on=RELATIVE), "auto"),
    "non-separable": ("non-separable", Hamiltonian(), "auto"),
    "rigid-body, lie-poisson": ("rigid-body", QuadraticInvariant(form="lie-poisson"), "auto"),
    "rigid-body, tangent": ("rigid-body", QuadraticInvariant(form="tangent"), "auto"),
}
EULER = {f"{name}, Euler": (name, Free(), "euler") for name in sgpd.systems.names()}
TARGETS = {
    "pendulum": 0.24,
    "two-body": 0.042,
    "two-body, relative": 0.028,
    "non-separable": 0.012,
    "rigid-body, lie-poisson": 0.018,
    "rigid-body, tangent": 0.035,
}
DRAWS, PATHS = 5, 64
HEADER = ["fit", "x0", "seeds", "L2 best", "L2 5 draws", "limit", "coverage", "recorded", "later", "err/std", "CRPS"]
HEADER += ["NLD", "median s", "converged"]


def main():
    """Fit what is missing, then print the table."""
    sgpd.xla.tune()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1000-1019")
    parser.add_argument("--out", type=Path, default=Path("build/default-fit"))
    parser.add_argument("--only", nargs="*", default=list(FITS))
    parser.add_argument("--x0", nargs="*", default=["known", "latent"], choices=["known", "latent"])
    parser.add_argument("--others", action="store_true")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split("-"))
    seeds = range(first, last + 1)
    keep_compiled_programs()
    options.out.mkdir(parents=True, exist_ok=True)
    lines = options.out / "fits.jsonl"
    rows = [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []
    for row in missing_fits(options, seeds, rows):
        rows.append(row)
        with lines.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}), flush=True)
    rows = [row for row in rows if row["seed"] in seeds]
    text = f"Seeds {options.seeds}, sgpd {sgpd.__version__}.\n\n{table(rows)}\n{paired(rows)}"
    (options.out / "table.md").write_text(text)
    print(text)


def missing_fits(options, seeds, rows: list[dict]):
    """Rows that are not there yet, one by one."""
    done = {(row["fit"], row["x0"], row["seed"]) for row in rows}
    fits = {name: FITS[name] for name in options.only}
    systems = list(dict.fromkeys(system for system, *_ in fits.values())) if options.others else []
    for name, recipe in (fits | {name: e for name, e in EULER.items() if e[0] in systems}).items():
        for x0 in options.x0 if name in FITS else ("known",):
            for seed in seeds:
                if (name, x0, seed) not in done:
                    yield {"fit": name, "x0": x0, "seed": seed} | measure(*recipe, x0, seed)
    for system in systems:
        for method in ("sgpd", "euler", "hnn"):
            name = f"{system}, paper's {method}"
            left = [seed for seed in seeds if (name, "known", seed) not in done]
            if left and (system, method) != ("rigid-body", "hnn"):
                reading = None if method == "hnn" else Reading()
                experiment = Experiment(system, method, "exact", quick=False, reading=reading)
                for result in run(experiment, [Trial(seed, 0) for seed in left]):
                    if result.row["task"] == system:
                        numbers = {key: result.row.get(key) for key in ("l2", "coverage95", "seconds")}
                        yield {"fit": name, "x0": "known", "seed": result.row["seed"], "l2_5": numbers["l2"]} | numbers


def measure(system_name: str, structure, integrator: str, x0: str, seed: int) -> dict:
    """One fit and its forecast over the paper's horizon."""
    system = sgpd.systems.get(system_name)
    times, truth = solve(system, "exact")
    data = record(system, truth, seed)
    if x0 == "latent":
        states = data.runs[0].states.copy()
        states[0] = noisy_start(system, seed)
        data = sgpd.Trajectories.from_arrays(data.runs[0].times, states, names=system.names)
    began = time.monotonic()
    model = sgpd.fit(data, structure, integrator, x0=x0, seed=seed)
    seconds = time.monotonic() - began
    row = {
        "seconds": seconds,
        "converged": model.facts.fit.converged,
        "draws": model.facts.fit.draws,
        "effective": model.facts.fit.importance_sample_size / model.facts.fit.drawn,
    }
    recorded = len(data.runs[0].times)
    if x0 == "known":
        return row | judge(model.predict(system.x0, times=times, paths=PATHS, seed=seed), truth, recorded)
    # From the joint posterior: the smoothed recording, then on from its last state.
    smoothed = model.smooth(paths=PATHS, seed=seed)
    ahead = model.predict(times=times[recorded - 1 :], paths=PATHS, seed=seed)
    paths = np.concatenate([smoothed.paths, ahead.paths[:, 1:]], axis=1)
    best = np.concatenate([smoothed.best, ahead.best[1:]])
    joined = sgpd.Forecast(times, paths, best, smoothed.ok & ahead.ok, ahead.residual, model.names, model.units)
    exact = model.predict(system.x0, start="first", times=times, paths=PATHS, seed=seed)
    given = {f"given_{key}": value for key, value in judge(exact, truth, recorded).items()}
    return row | judge(joined, truth, recorded) | given


def judge(forecast: sgpd.Forecast, truth: np.ndarray, recorded: int) -> dict:
    """Errors, and how well the bands tell them."""
    paths = forecast.paths[forecast.ok]
    low, high = forecast.interval(0.95)
    inside = (low <= truth) & (truth <= high)
    later = slice(recorded, None)
    mean, std = paths.mean(axis=0), paths.std(axis=0, ddof=1)
    spread = np.abs(paths[:, None] - paths[None, :]).mean(axis=(0, 1)) / 2
    z, width = (mean - truth)[1:] / std[1:], std[1:] * np.sqrt(2 * np.pi)  # the start may be exact
    nld = z**2 / 2 + np.log(width)
    return {
        "l2_best": l2_error(forecast.best, truth),
        "l2_5": l2_error(paths[:DRAWS].mean(axis=0), truth),
        "coverage": float(inside[1:].mean()),
        "coverage_recorded": float(inside[1:recorded].mean()),
        "coverage_later": float(inside[later].mean()),
        "square_error": float(((mean - truth) ** 2).mean()),
        "square_std": float((std**2).mean()),
        "crps": float((np.abs(paths - truth).mean(axis=0) - spread).mean()),
        "nld": float(np.mean(nld)),
        "failed": int((~forecast.ok).sum()),
    }


def table(rows: list[dict]) -> str:
    """One line for each fit and way to start, in Markdown."""
    out = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    for fit in dict.fromkeys(row["fit"] for row in rows):
        for x0, prefix in (("known", ""), ("latent", ""), ("latent", "given_")):
            own = [row for row in rows if (row["fit"], row["x0"]) == (fit, x0)]
            if own and f"{prefix}l2_5" in own[0]:
                out.append(_line(fit, "latent, then given" if prefix else x0, own, prefix))
    return "\n".join(out) + "\n"


def paired(rows: list[dict]) -> str:
    """L2 of 5 draws: other methods less the default fit on the same recordings, so that what the noise does cancels."""
    errors = {
        (row["fit"], row["seed"]): row["l2_5"] for row in rows if row["x0"] == "known" and row["l2_5"] is not None
    }
    out = []
    for other in dict.fromkeys(fit for fit, _ in errors if fit not in FITS):
        for fit in (name for name in FITS if FITS[name][0] == other.split(",")[0]):
            seeds = [seed for name, seed in errors if name == fit and (other, seed) in errors]
            if seeds:
                differences = np.array([errors[other, seed] - errors[fit, seed] for seed in seeds])
                out.append(f"| {other} | {fit} | {len(seeds)} | {_mean(differences, 3)} |")
    header = ["| other | default fit | seeds | L2 5 draws, other less default |", "|---|---|---|---|"]
    return "\n".join([*header, *out]) + "\n" if out else ""


def _line(fit: str, x0: str, rows: list[dict], prefix: str) -> str:
    take = lambda key: np.array([row[prefix + key] for row in rows if row.get(prefix + key) is not None], float)
    mean = lambda key, digits=3: _mean(take(key), digits)
    ratio = take("square_error").mean() / take("square_std").mean() if len(take("square_std")) else np.nan
    converged = sum(bool(row.get("converged")) for row in rows) if "converged" in rows[0] else ""
    seconds = np.median([row["seconds"] for row in rows])
    coverage = mean("coverage", 2) if len(take("coverage")) else _mean(take("coverage95"), 2)
    cells = [fit, x0, len(rows), mean("l2_best"), mean("l2_5"), TARGETS.get(fit, ""), coverage]
    cells += [_mean(take(key), 2) for key in ("coverage_recorded", "coverage_later")]
    cells += [f"{np.sqrt(ratio):.2f}" if np.isfinite(ratio) else "", mean("crps"), mean("nld", 2), f"{seconds:.1f}"]
    return "| " + " | ".join(map(str, [*cells, converged])) + " |"


def _mean(values: np.ndarray, digits: int) -> str:
    """Mean ± standard error over seeds."""
    if len(values) == 0:
        return ""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{values.mean():.{digits}f} ± {error:.{digits}f}"


if __name__ == "__main__":
    main()
