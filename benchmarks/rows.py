"""How a fit grows with the rows of a recording: time, memory, and what the rows buy.

    python benchmarks/rows.py [--rows 5000 50000 1000000] [--integrator stormer-verlet] [--out build/performance]

A pendulum is recorded every 0.1 s with noise of 0.1 in each channel; each fit is a process of its own with the compiled
programs of the one before. Error and band: root mean squares over 40 s of a forecast from an exact start, all of it
about as far from the truth as the learned field is.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

STEP, NOISE, FINE, AHEAD = 0.1, 0.1, 10, 401
HEADER = "| rows | seconds | MB | error ahead | its band | noise found |\n|---|---|---|---|---|---|"


def pendulum(rows: int):
    """(rows, 2): p' = -6 sin q, q' = p, by steps of a tenth of the interval that keep the energy for ever."""
    import math

    import numpy as np

    states, h = np.empty((rows, 2)), STEP / FINE
    p, q = 0.0, 2.0
    for row in range(rows):
        states[row] = p, q
        for _ in range(FINE):
            p -= h / 2 * 6 * math.sin(q)
            q += h * p
            p -= h / 2 * 6 * math.sin(q)
    return states


def child(rows: int, integrator: str):
    """One fit, as JSON."""
    import numpy as np

    import sgpd

    clean = pendulum(max(rows, AHEAD))
    noisy = clean[:rows] + NOISE * np.random.default_rng(0).normal(size=(rows, 2))
    data = sgpd.Trajectories.from_arrays(STEP * np.arange(rows), noisy, names=["p", "q"])
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    model = sgpd.fit(data, "separable", integrator)
    seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    forecast = model.predict(clean[0], duration=STEP * (AHEAD - 1))
    rms = lambda values: float(np.sqrt((np.asarray(values) ** 2).mean()))
    error, band = rms(forecast.best - clean[:AHEAD]), rms(forecast.std)
    print(json.dumps([rows, seconds, memory, error, band, *map(float, model.noise_std)]))


def main():
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[5000, 50_000, 1_000_000])
    parser.add_argument("--out", type=Path, default=Path("build/performance"))
    parser.add_argument("--integrator", default="auto")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        return child(chosen.child, chosen.integrator)
    lines = [HEADER]
    for rows in chosen.rows:
        command = [
            sys.executable,
            str(Path(__file__).resolve()),
            "--child",
            str(rows),
            "--integrator",
            chosen.integrator,
        ]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        rows, seconds, memory, error, band, *noise = json.loads(said.splitlines()[-1])
        found = ", ".join(f"{one:.4f}" for one in noise)
        lines.append(f"| {rows:,} | {seconds:.1f} | {memory:.0f} | {error:.2g} | {band:.2g} | {found} |")
        print(lines[-1], flush=True)
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "rows.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
