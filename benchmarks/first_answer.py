"""How long a user waits: a first fit, the same again, a file of another length, and that in a process of its own.

    python benchmarks/first_answer.py [--against CHECKOUT] [--turns 3] [--only NAME ...] [--out build/performance]

A process with an empty compilation cache fits a recording, the same once more, and one that is seven rows shorter; a
second process, with the cache that the first has left, fits one that is twelve rows shorter. With another checkout of
sgpd (`git worktree add`), both take turns. Wall seconds, medians of the turns, and the first process's peak memory.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve()
CASES = {
    "pendulum": "separable",
    "two-body": "separable",
    "henon-heiles": "separable",
    "henon-heiles, one energy": "hamiltonian",
    "henon-heiles, free": "free",
}
COLUMNS = ("first fit", "the same again", "other length", "other length, new process", "peak MB")


def recording(name: str):
    """Times, noisy states and names: the paper's, or 100 rows of a star in a galaxy."""
    import numpy as np

    import sgpd

    if not name.startswith("henon-heiles"):
        system = sgpd.systems.get(name)
        return *system.record(seed=0), system.names
    from scipy.integrate import solve_ivp

    times = 0.2 * np.arange(100)
    field = lambda t, x: [-x[2] - 2 * x[2] * x[3], -x[3] - x[2] ** 2 + x[3] ** 2, x[0], x[1]]
    exact = solve_ivp(field, (0, times[-1]), [0.0, 0.3, 0.2, 0.1], t_eval=times, rtol=1e-10, atol=1e-12).y.T
    return times, exact + 0.01 * np.random.default_rng(0).normal(size=exact.shape), ("p1", "p2", "q1", "q2")


def child(name: str, shorter: list[int]):
    """Fit recordings that are so many rows shorter, and print how long each took."""
    import warnings

    import sgpd

    warnings.simplefilter("ignore")
    times, states, names = recording(name)
    seconds = []
    for rows in (len(times) - less for less in shorter):
        data = sgpd.Trajectories.from_arrays(times[:rows], states[:rows], names=names)
        begin = time.perf_counter()
        sgpd.fit(data, CASES[name])
        seconds.append(time.perf_counter() - begin)
    print(json.dumps([*seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def waited(name: str, checkout: Path) -> list[float]:
    """One turn of one version: the columns of the table."""
    with tempfile.TemporaryDirectory() as cache:
        kept = {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}
        environment = os.environ | kept | {"PYTHONPATH": str(checkout / "src")}
        run = lambda *less: json.loads(
            subprocess.run(
                [sys.executable, str(HERE), "--child", name, *map(str, less)],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout.splitlines()[-1]
        )
        first, again, other, megabytes = run(0, 0, 7)
        warm, _ = run(12)
    return [first, again, other, warm, megabytes]


def main():
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--out", type=Path, default=Path("build/performance"))
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        return child(chosen.child[0], list(map(int, chosen.child[1:])))
    versions = {"now": HERE.parent.parent} | ({"before": chosen.against.resolve()} if chosen.against else {})
    found = {}
    for name in chosen.only:
        turns = [{version: waited(name, path) for version, path in versions.items()} for _ in range(chosen.turns)]
        found[name] = {
            version: [median(turn[version][k] for turn in turns) for k in range(len(COLUMNS))] for version in versions
        }
    lines = [f"| recording, structure | version | {' | '.join(COLUMNS)} |", "|---|---|" + "---|" * len(COLUMNS)]
    for name, by_version in found.items():
        for version, numbers in by_version.items():
            cells = [f"{s:.2f} s" if s < 10 else f"{s:.1f} s" for s in numbers[:-1]] + [f"{numbers[-1]:.0f}"]
            lines.append(f"| {name}, {CASES[name]} | {version} | {' | '.join(cells)} |")
        if "before" in by_version:
            ratios = [f"{b / n:.2g}" for b, n in zip(by_version["before"], by_version["now"], strict=True)]
            lines.append(f"| | before / now | {' | '.join(ratios)} |")
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / "first_answer.md").write_text("\n".join(lines) + "\n")
    (chosen.out / "first_answer.json").write_text(json.dumps(found, indent=1))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
