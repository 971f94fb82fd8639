"""A small version of benchmarks/default_fit.py, with generous limits."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

SEEDS = (300, 301)  # used for nothing else


@pytest.fixture(scope="module")
def benchmark():
    path = Path(__file__).parents[2] / "benchmarks" / "default_fit.py"
    spec = importlib.util.spec_from_file_location("default_fit", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name",
    [
        "pendulum",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("non-separable", "rigid-body, lie-poisson")),
    ],
)
def test_the_default_fit_is_accurate_and_its_bands_are_neither_far_too_narrow_nor_far_too_wide(benchmark, name):
    rows = [benchmark.measure(*benchmark.FITS[name], "known", seed) for seed in SEEDS]
    mean = lambda key: np.mean([row[key] for row in rows])
    assert all(row["converged"] and row["failed"] == 0 for row in rows)
    assert mean("l2_best") < 2 * benchmark.TARGETS[name]
    assert mean("l2_5") < 2 * benchmark.TARGETS[name]
    assert mean("coverage") > 0.6
    assert 0.2 < np.sqrt(mean("square_error") / mean("square_std")) < 3


def test_the_table_gives_means_with_standard_errors_over_seeds(benchmark):
    keys = ("l2_best", "l2_5", "coverage", "coverage_recorded", "coverage_later", "crps", "nld")
    numbers = ({key: value for key in keys} for value in (0.1, 0.3))
    rest = {"fit": "pendulum", "x0": "known", "seconds": 2.0, "converged": True, "square_error": 1.0, "square_std": 4.0}
    line = benchmark.table([rest | each for each in numbers]).splitlines()[2]
    assert "| pendulum | known | 2 | 0.200 ± 0.100 | 0.200 ± 0.100 | 0.24 |" in line
    assert "| 0.50 |" in line  # root mean square error over root mean square spread


def test_differences_are_paired_by_seed(benchmark):
    row = lambda fit, seed, error: {"fit": fit, "seed": seed, "x0": "known", "l2_5": error}
    rows = [row("pendulum", 1, 0.1), row("pendulum", 2, 5.0), row("pendulum", 3, 9.0)]
    rows += [row("pendulum, paper's sgpd", 1, 0.3), row("pendulum, paper's sgpd", 2, 5.4)]
    assert "| pendulum, paper's sgpd | pendulum | 2 | 0.300 ± 0.100 |" in benchmark.paired(rows)
    assert benchmark.paired(rows[:3]) == ""
