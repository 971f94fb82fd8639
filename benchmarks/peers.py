"""Speed against peers: each pair side by side in one process, in turns; medians of repeats with quartiles.

    pip install -e '.[bench]'
    python benchmarks/peers.py [NAME ...] [--repeats 7] [--paths 1 64 1024] [--steps 100] [--recordings 3]
        [--out build/performance]

prints one table of ratios and writes it to OUT/peers.md and OUT/peers.json. Every pair is first asserted to give the
same numbers, to what rounding becomes on the way. What is compared, and how each peer is given its own best way, stands
in the file of each part.
"""

import argparse
import json
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import sgpd.arrays  # in double precision, before anything is computed

# ruff: isort: split
from peers_diffrax import diffrax_adaptive, diffrax_equal_step
from peers_fields import throughput, torch_explicit, torch_implicit
from peers_learners import learners
from peers_paper import default_fit, paper_epochs
from peers_table import Row, Sizes, markdown

PARTS: dict[str, Callable[[Sizes], list[Row]]] = {
    "paper-pendulum": lambda sizes: paper_epochs("pendulum", sizes),
    "paper-non-separable": lambda sizes: paper_epochs("non-separable", sizes),
    "default-fit": default_fit,
    "torch-explicit": torch_explicit,
    "torch-implicit": torch_implicit,
    "diffrax-equal-step": diffrax_equal_step,
    "diffrax-adaptive": diffrax_adaptive,
    "learners": learners,
    "throughput": throughput,
}
PACKAGES = ("sgpd", "jax", "torch", "torchdiffeq", "diffrax", "pysindy", "numpy", "scipy")


def main():
    """Measure what was asked for, all by default."""
    sgpd.xla.tune()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(PARTS)}")
    usual = Sizes()
    parser.add_argument("--repeats", type=int, default=usual.repeats)
    parser.add_argument("--paths", type=int, nargs="+", default=usual.paths, help="rolled out by PyTorch, throughput")
    parser.add_argument("--steps", type=int, default=usual.steps, help="of a rollout")
    parser.add_argument("--recordings", type=int, default=usual.recordings, help="of default-fit and learners")
    parser.add_argument("--out", type=Path, default=Path("build/performance"))
    options = parser.parse_args()
    if unknown := set(options.names) - set(PARTS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    options.out.mkdir(parents=True, exist_ok=True)
    sizes = Sizes(options.repeats, tuple(options.paths), options.steps, options.recordings)
    rows, machine = [], about()
    for name in options.names or PARTS:
        print(f"{name}, load {os.getloadavg()[0]:.1f} ...", flush=True)
        found = PARTS[name](sizes)
        print(markdown(found), flush=True)
        rows += found
        write(options.out, rows, machine)


def about() -> dict:
    """The machine, how busy it was, and versions."""
    return {
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
    } | {package: version(package) for package in PACKAGES}


def write(folder: Path, rows: list[Row], machine: dict):
    """All rows so far."""
    facts = ", ".join(f"{key} {value}" for key, value in machine.items())
    (folder / "peers.md").write_text(f"{markdown(rows)}\n{facts}\n")
    (folder / "peers.json").write_text(
        json.dumps({"about": machine, "rows": [row.to_dict() for row in rows]}, indent=1)
    )


if __name__ == "__main__":
    main()
