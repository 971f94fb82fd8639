"""What more inducing points are worth: forecasts and bands with 32 to 256 of them, and with as many as a fit chooses.

    python benchmarks/growing.py [--seeds 1-3] [--only "double pendulum, hamiltonian" ...] [--points 0 32 64 128 256]

Recordings of a double pendulum, of a star in a galaxy (Hénon-Heiles) and of a planet in space, with noise of 1 % of
each channel's standard deviation. 0 points: the fit chooses. Errors of the best estimate are root mean squares in
standard deviations of the channels, over the half of the recording's duration that follows it; so are the widths of
bands.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.integrate import solve_ivp

import sgpd

COLUMNS = ("s", "points", "log evidence", "determined", "error", "coverage", "std", "draws", "rows cut to")


def planet(t, x):
    """Around a fixed centre."""
    return np.concatenate([-x[3:] / np.linalg.norm(x[3:]) ** 3, x[:3]])


def double_pendulum(t, x):
    """Masses, lengths and gravity 1."""
    apart = x[2] - x[3]
    v = np.linalg.solve([[2.0, np.cos(apart)], [np.cos(apart), 1.0]], x[:2])
    pull = v[0] * v[1] * np.sin(apart)
    return np.array([-pull - 2 * np.sin(x[2]), pull - np.sin(x[3]), *v])


def star(t, x):
    """Hénon and Heiles."""
    return np.array([-x[2] - 2 * x[2] * x[3], -x[3] - x[2] ** 2 + x[3] ** 2, x[0], x[1]])


def inclined():
    """The perihelion of an ellipse of eccentricity 0.3."""
    c, s = np.cos(0.5), np.sin(0.5)
    turn = np.array([[np.cos(0.7), -np.sin(0.7), 0], [np.sin(0.7), np.cos(0.7), 0], [0, 0, 1]])
    turn = turn @ np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return np.concatenate([turn @ [0, np.sqrt(1.3 / 0.7), 0], turn @ [0.7, 0, 0]])


SYSTEMS = {  # field, start, step, rows
    "double pendulum": (double_pendulum, np.array([0.0, 0.0, 1.0, 1.2]), 0.1, 200),
    "henon-heiles": (star, np.array([0.0, 0.3, 0.2, 0.1]), 0.2, 100),
    "kepler": (planet, inclined(), 0.1, 150),
}
CASES = [f"{name}, {structure}" for name in SYSTEMS for structure in ("hamiltonian", "separable", "free")]
CASES.remove("double pendulum, separable")


def measured(case: str, seed: int, points: int) -> list:
    """One fit: a cell for each column."""
    name, structure = case.split(", ")
    field, x0, step, rows = SYSTEMS[name]
    rng = np.random.default_rng([seed, 77])
    x0, times = x0 * (1 + 0.05 * rng.normal(size=len(x0))), step * np.arange(rows + rows // 2)
    exact = solve_ivp(field, (0, times[-1]), x0, t_eval=times, rtol=1e-11, atol=1e-12).y.T
    std = exact[:rows].std(axis=0)
    noisy = exact[:rows] + 0.01 * std * rng.normal(size=(rows, len(x0)))
    begin = time.perf_counter()
    data = sgpd.Trajectories.from_arrays(times[:rows], noisy)
    try:
        model = sgpd.fit(data, structure, inference=sgpd.Laplace(inducing=points or None))
    except sgpd.NumericalFailure as failure:
        return [f"{time.perf_counter() - begin:.0f}", failure.message, *[""] * (len(COLUMNS) - 2)]
    seconds = time.perf_counter() - begin
    ahead = model.predict(start="first", duration=(len(times) - 1 - 1e-6) * step, paths=64)
    low, high = ahead.interval(0.95)
    later, facts = slice(rows, None), model.facts.fit
    rms = lambda away: np.sqrt(((np.asarray(away) / std) ** 2).mean())
    return [
        f"{seconds:.0f}",
        "+".join(map(str, facts.inducing)),
        f"{facts.log_evidence:.1f}",
        "+".join(f"{share:.2f}" for share in facts.determined),
        f"{rms((ahead.best - exact)[later]):.4f}",
        f"{((low <= exact) & (exact <= high))[later].mean():.2f}",
        f"{rms(ahead.std[later]):.2g}",
        facts.draws + (", no features" if facts.features_dropped else ""),
        ", ".join(f"{check.value:.0f}" for check in model.diagnosis if check.id == "rollouts"),
    ]


def main():
    """A line for each fit."""
    sgpd.xla.tune()
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1-3")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--points", nargs="+", type=int, default=[0, 32, 64, 128, 256])
    options = parser.parse_args()
    low, high = map(int, options.seeds.split("-"))
    print(f"| recording, structure | seed | asked | {' | '.join(COLUMNS)} |")
    print("|" + "---|" * (3 + len(COLUMNS)))
    for case in options.only:
        for seed in range(low, high + 1):
            for points in options.points:
                print(f"| {case} | {seed} | {points} | {' | '.join(measured(case, seed, points))} |", flush=True)


if __name__ == "__main__":
    main()
