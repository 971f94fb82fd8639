"""Windows lose nothing, invent nothing and never cross a gap."""

import numpy as np
import pytest

from sgpd.data import Trajectories, Windows, windows


def jittered(rng, rows):
    """Times about 0.1 apart, like those of a camera."""
    return np.cumsum(rng.uniform(0.08, 0.12, rows))


@pytest.fixture
def data():
    """Three runs of 23, 7 and 2 rows; the first has intervals of 3 and 8 steps and a gap; 10 % is missing."""
    rng = np.random.default_rng(0)
    times = [jittered(rng, rows) for rows in (23, 7, 2)]
    times[0][5:] += 0.2
    times[0][9:] += 0.7
    times[0][16:] += 50.0
    states = [rng.normal(size=(len(t), 2)) + 10 for t in times]
    for x in states:
        x[rng.uniform(size=x.shape) < 0.1] = np.nan
    return Trajectories.from_arrays(times, states)


LENGTHS = [2, 3, 5, 16, 40]
STRIDES = [None, 1, 2, 7]


def rows_of(cut: Windows):
    """Each window as (run, rows)."""
    return [(run, range(row, row + n)) for run, row, n in zip(cut.run, cut.row, cut.lengths, strict=True)]


@pytest.mark.parametrize("length", LENGTHS)
def test_every_row_is_in_exactly_one_window(data, length):
    found = sorted((run, row) for run, rows in rows_of(windows(data, length)) for row in rows)
    assert found == [(run, row) for run in range(3) for row in range(len(data.runs[run]))]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("stride", STRIDES)
def test_windows_hold_what_the_run_holds_and_nothing_where_padded(data, length, stride):
    cut = windows(data, length, stride)
    for w, (run, rows) in enumerate(rows_of(cut)):
        n, source = len(rows), data.runs[run]
        np.testing.assert_array_equal(cut.times[w, :n], source.times[rows])
        np.testing.assert_array_equal(cut.states[w, :n], np.nan_to_num(source.states[rows]))
        np.testing.assert_array_equal(cut.observed[w, :n], source.observed[rows])
        assert np.all(cut.times[w, n:] == cut.times[w, n - 1])
        assert not cut.observed[w, n:].any()
        assert not cut.states[w, n:].any()
        assert not cut.steps[w, n - 1 :].any()


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("step", [None, 0.03, 0.1, 1])
def test_steps_add_up_to_the_intervals_and_are_about_as_long_as_asked(data, length, stride, step):
    cut = windows(data, length, stride, step)
    np.testing.assert_allclose(cut.steps.sum(axis=2), np.diff(cut.times, axis=1), rtol=1e-12, atol=0)
    asked = data.step if step is None else step
    longest, counts = cut.steps[:, :, 0], np.count_nonzero(cut.steps, axis=2)
    assert longest.max() <= 1.5 * asked * (1 + 1e-6)
    assert np.all(longest[counts > 1] >= 0.75 * asked)
    assert np.all(np.diff((cut.steps > 0).astype(int), axis=2) <= 0), "zeros are at the end"


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("stride", STRIDES)
def test_no_window_crosses_the_gap_or_the_end_of_a_run(data, length, stride):
    for run, rows in rows_of(windows(data, length, stride)):
        assert rows[-1] < len(data.runs[run])
        assert not (run == 0 and rows[0] < 16 <= rows[-1])


def test_an_interval_of_several_steps_is_stepped_in_as_many(data):
    cut = windows(data, 16)
    assert cut.steps_per_interval == 8
    counts = np.count_nonzero(cut.steps[0], axis=1)
    assert (counts[4], counts[8]) == (3, 8)
    assert np.all(np.delete(counts, [4, 8]) == 1)


def test_max_gap_says_what_a_gap_is(data):
    assert windows(data, 40, max_gap=1).row[:4].tolist() == [0, 5, 9, 16]
    assert windows(data, 40, max_gap=3).row[:3].tolist() == [0, 9, 16]
    assert windows(data, 40, max_gap=1000).row[:2].tolist() == [0, 0]


def test_a_fine_step_does_not_make_every_interval_a_gap(data):
    fine = windows(data, 16, step=data.step / 50)
    np.testing.assert_array_equal(fine.times, windows(data, 16).times)
    assert fine.steps_per_interval > 50


def test_clock_jitter_does_not_split_steps():
    times = np.cumsum(np.where(np.arange(100) % 3, 0.033, 0.034))
    assert windows(Trajectories.from_arrays(times, np.ones((100, 1))), 10).steps_per_interval == 1


def test_up_to_one_and_a_half_steps_are_one_step():
    times = np.array([0, 1, 2, 3, 4.5, 6.0001, 8.5])
    cut = windows(Trajectories.from_arrays(times, np.ones((7, 1))), 7, step=1.0)
    assert np.count_nonzero(cut.steps[0], axis=1).tolist() == [1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize("length", [2, 3, 5, 7, 9, 16])
@pytest.mark.parametrize("stride", [1, 2, 7])
def test_overlapping_windows_are_as_many_as_fit(data, length, stride):
    pieces = [16, 7, 7, 2]
    assert len(windows(data, length, stride)) == sum(max(0, n - length) // stride + 1 for n in pieces)


def test_overlapping_windows_are_full_where_the_piece_is_long_enough(data):
    cut = windows(data, 7, stride=3)
    assert cut.row[cut.run == 0].tolist() == [0, 3, 6, 9, 16]
    assert cut.lengths.tolist() == [7, 7, 7, 7, 7, 7, 2]


@pytest.fixture
def sparse():
    """Four rows, a gap, a row, a gap, a row."""
    return Trajectories.from_arrays([0, 1, 2, 3, 50, 100], np.ones((6, 1)))


def test_a_row_alone_between_gaps_is_kept_side_by_side_and_skipped_when_overlapping(sparse):
    assert windows(sparse, 3).lengths.tolist() == [2, 2, 1, 1]
    assert windows(sparse, 3, stride=1).row.tolist() == [0, 1]


def test_a_window_of_one_row_has_steps_of_length_zero(sparse):
    alone = windows(sparse, 4).take([1, 2])
    assert alone.row.tolist() == [4, 5]
    assert alone.flat_steps.shape == (2, 3)
    assert not alone.steps.any()


def test_starts_with_missing_values_are_skipped_or_refused(data):
    every, complete = windows(data, 3, stride=1), windows(data, 3, stride=1, start_observed=True)
    start = every.observed[:, 0].all(axis=1)
    assert 0 < len(complete) < len(every)
    np.testing.assert_array_equal(complete.states, every.states[start])
    np.testing.assert_array_equal(complete.row, every.row[start])
    with pytest.raises(ValueError, match=r"row \d+: a window starts here, but a value is missing; use x0='latent'"):
        windows(data, 2, start_observed=True)


def test_complete_starts_are_no_reason_to_refuse():
    states = np.ones((6, 1))
    states[1] = np.nan
    assert len(windows(Trajectories.from_arrays(np.arange(6.0), states), 3, start_observed=True)) == 2


def test_no_window_at_all_is_refused():
    states = np.array([[np.nan], [1.0], [1.0]])
    with pytest.raises(ValueError, match="No window is left"):
        windows(Trajectories.from_arrays(np.arange(3.0), states), 3, stride=1, start_observed=True)


def test_taking_windows_keeps_the_shapes(data):
    cut = windows(data, 5)
    some = cut.take([3, 0])
    assert len(some) == 2
    assert some.steps.shape[1:] == cut.steps.shape[1:]
    np.testing.assert_array_equal(some.states, cut.states[[3, 0]])
    np.testing.assert_array_equal(some.flat_steps, cut.steps[[3, 0]].reshape(2, -1))
    assert len(cut.take(cut.run == 0)) == np.sum(cut.run == 0)
    assert len(cut.take(1)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 1}, "at least 2 rows, got length=1"),
        ({"length": 3, "stride": 0}, "got stride=0"),
        ({"length": 3, "step": -0.1}, "step must be positive and finite, got step=-0.1"),
        ({"length": 3, "step": np.nan}, "got step=nan"),
        ({"length": 3, "max_gap": 0}, "every interval would be a gap"),
    ],
)
def test_options_that_make_no_sense_are_refused(data, options, message):
    with pytest.raises(ValueError, match=message):
        windows(data, **options)


@pytest.mark.parametrize("rows", [2, 500, 501, 999, 1001, 1750])
def test_windows_side_by_side_are_equally_long_to_within_a_row(rows):
    """A forecast goes on from the last one: of one row alone it would know next to nothing."""
    data = Trajectories.from_arrays(0.1 * np.arange(rows), np.zeros((rows, 1)) + np.arange(rows)[:, None])
    found = windows(data, 500)
    assert found.lengths.sum() == rows
    assert len(found) == -(-rows // 500)
    assert np.ptp(found.lengths) <= 1
    np.testing.assert_array_equal(found.row, np.cumsum(found.lengths) - found.lengths)
    np.testing.assert_array_equal(found.states[found.observed], np.arange(rows))
