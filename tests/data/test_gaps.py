"""Cutting, smoothing and drawing mean the same gap: ten usual intervals belong together, eleven do not."""

import numpy as np
import pytest

import sgpd
from sgpd.data import windows
from sgpd.data.gaps import longest_bridged
from sgpd.data.smoothing import smooth_run
from sgpd.plots.marks import stretches


@pytest.mark.parametrize(("intervals", "pieces"), [(10, 1), (11, 2)])
def test_one_gap_is_meant_everywhere(intervals, pieces):
    step = 0.1
    times = np.delete(step * np.arange(60), slice(30, 29 + intervals))
    states = np.where(times < 3, times, 5 - times)[:, None]  # straight on either side
    data = sgpd.Trajectories.from_arrays(times, states)
    assert len(windows(data, 100)) == pieces
    assert len(stretches(times, longest_bridged(step))) == pieces
    rest = np.abs(smooth_run(data.runs[0]).states - states).max()
    assert (rest < 1e-6) == (pieces == 2)  # only a spline that ends at the gap is straight on either side
