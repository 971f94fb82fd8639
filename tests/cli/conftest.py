"""A recording and a fitted run for all tests of the command line."""

import sys

import numpy as np
import pytest

from sgpd.cli.app import main
from tests.cli.running import sgpd_here as sgpd_here

ROWS = 125  # 100 of them fitted, as in other tests, so that programs are compiled once for all


def write_recording(path):
    """A noisy oscillator, the position first as recordings mostly have it."""
    rng = np.random.default_rng(0)
    t = 0.2 * np.arange(ROWS)
    states = np.stack([np.cos(t), -np.sin(t)], axis=1) + 0.02 * rng.normal(size=(ROWS, 2))
    lines = [f"{time:.3f},{x:.6f},{v:.6f}" for time, (x, v) in zip(t, states, strict=True)]
    path.write_text("\n".join(["t,x,v", *lines]) + "\n")
    return path


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """(recording, run folder) of one fit with rows held out."""
    folder = tmp_path_factory.mktemp("fitted")
    data, run = write_recording(folder / "air.csv"), folder / "air"
    arguments = ["sgpd", "fit", str(data), "-s", "separable", "--holdout", "20%", "--unit", "x=mm", "--unit", "t=s"]
    before, sys.argv = sys.argv, [*arguments, "--quiet", "--json", "--out", str(run)]
    try:
        with pytest.raises(SystemExit) as ended:
            main()
    finally:
        sys.argv = before
    assert ended.value.code == 0
    return data, run
