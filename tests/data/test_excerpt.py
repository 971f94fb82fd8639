"""Long recordings are cut down to stretches that are spread evenly, the end of every run among them."""

import numpy as np

import sgpd
from sgpd.data import excerpts, windows


def recording(*rows):
    times = [0.1 * np.arange(n) for n in rows]
    return sgpd.Trajectories.from_arrays(times, [np.stack([t, np.sin(t)], axis=1) for t in times])


def test_a_short_recording_is_left_as_it_is():
    data = recording(100, 50)
    assert excerpts(data, 150, 20) is data


def test_a_long_run_becomes_stretches_with_gaps_between_them_that_no_window_crosses():
    data = recording(1_000_003)
    cut = excerpts(data, 4000, 500)
    assert cut.rows == 4000
    assert cut.runs[0].times[-1] == data.runs[0].times[-1]
    pieces = windows(cut, 500)
    assert len(pieces) == 8
    assert (pieces.lengths == 500).all()
    np.testing.assert_allclose(np.diff(pieces.times, axis=1), 0.1, rtol=1e-6)
    np.testing.assert_allclose(np.diff(pieces.times[:, 0]), np.diff(pieces.times[:, 0]).mean(), rtol=0.01)
    np.testing.assert_array_equal(pieces.states[:, :, 0], pieces.times)  # rows keep their states


def test_every_run_keeps_its_end_and_its_name():
    data = recording(30, 700, 20, 650)
    cut = excerpts(data, 200, 50)
    assert cut.run_names == data.run_names
    assert [run.times[-1] for run in cut.runs] == [run.times[-1] for run in data.runs]
    assert [len(cut.runs[0]), len(cut.runs[2])] == [30, 20]
    assert cut.rows <= 200 + 4 * 50
