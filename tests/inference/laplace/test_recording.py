"""A recording in one line: every row has its place, and rollouts begin and end where they should."""

import numpy as np
import pytest

from sgpd.data import Trajectories, windows
from sgpd.inference.chunks import chunks
from sgpd.inference.constants import CHUNK
from sgpd.inference.laplace.constants import BLOCK, LONGEST
from sgpd.inference.laplace.recording import Recording

LENGTHS = (20, 40, 60)


def some_runs(rows, seed=0):
    """Runs of so many rows; in the first, some intervals have several steps, and a value is missing."""
    rng = np.random.default_rng(seed)
    times = [0.1 * np.arange(n) for n in rows]
    times[0] = 0.1 * np.delete(np.arange(rows[0] + 4), [8, 9, 20, 41])
    states = [rng.normal(size=(len(t), 2)) for t in times]
    states[0][3, 1] = np.nan
    data = Trajectories.from_arrays(times, states)
    return data, windows(data, LENGTHS[-1])


@pytest.fixture(scope="module", params=[(97, 11, 3, 60), (2,) * 64, (70, *(11,) * 100)], ids=["few", "short", "long"])
def case(request):
    data, pieces = some_runs(request.param) if request.param[0] > 50 else plain_runs(request.param)
    pinned = np.arange(len(pieces)) % 2 == 0
    return pieces, pinned, Recording.of(data, pieces, pinned)


def plain_runs(rows):
    rng = np.random.default_rng(1)
    data = Trajectories.from_arrays([0.1 * np.arange(n) for n in rows], [rng.normal(size=(n, 2)) for n in rows])
    return data, windows(data, LENGTHS[-1])


def test_every_row_comes_back_from_its_place(case):
    pieces, _, recording = case
    real = recording.real
    np.testing.assert_array_equal(recording.in_pieces(recording.states)[real], pieces.states[real])
    np.testing.assert_array_equal(recording.in_line(pieces.states), recording.states)
    assert len(np.unique(recording.place[real])) == real.sum()
    np.testing.assert_array_equal(recording.place[~real], np.broadcast_to(recording.place[:, -1:], real.shape)[~real])


def test_a_pinned_start_is_no_observation_and_what_was_not_observed_stays_so(case):
    pieces, pinned, recording = case
    observed = recording.in_pieces(recording.observed)
    assert not observed[pinned, 0].any()
    expected = pieces.observed.sum() - pieces.observed[pinned, 0].sum()
    np.testing.assert_array_equal(observed[recording.real].sum(), expected)
    assert recording.observed.sum() == expected
    np.testing.assert_array_equal(recording.rollouts(LENGTHS[-1]).free, ~pinned)


def test_steps_lead_from_row_to_row(case):
    pieces, _, recording = case
    line = np.cumsum(recording.steps)
    for piece, count in enumerate(pieces.lengths):
        elapsed = line[recording.place[piece, :count]] - line[recording.place[piece, 0]]
        np.testing.assert_allclose(elapsed, pieces.times[piece, :count] - pieces.times[piece, 0], atol=1e-12)
    assert np.count_nonzero(recording.steps) == np.count_nonzero(pieces.steps)
    assert len(recording) == np.count_nonzero(pieces.steps) + len(pieces)  # nothing is filled up


@pytest.mark.parametrize("every", LENGTHS)
def test_rollouts_begin_every_so_many_rows_of_a_piece(case, every):
    pieces, _, recording = case
    expected = [recording.place[piece, row] for piece, n in enumerate(pieces.lengths) for row in range(0, n, every)]
    np.testing.assert_array_equal(recording.rollouts(every).first, expected)


@pytest.mark.parametrize("every", LENGTHS)
def test_chunks_are_the_line_and_segments_the_rollouts_in_them(case, every):
    _, _, recording = case
    rollouts = recording.rollouts(every)
    starts = np.random.default_rng(0).normal(size=(len(rollouts.first), 2))
    number = np.searchsorted(rollouts.first, np.arange(len(recording)), side="right") - 1  # whose an entry is
    seen = []
    for rows, chunk in chunks(recording.steps, rollouts, starts):
        used = int(chunk.used)
        assert used == rows.stop - rows.start <= CHUNK == len(chunk.steps)
        np.testing.assert_array_equal(chunk.steps[:used], recording.steps[rows])
        begins = np.isin(np.arange(rows.start, rows.stop), rollouts.first)
        np.testing.assert_array_equal(chunk.begins[:used], begins)
        np.testing.assert_array_equal(chunk.starts[:used][begins], starts[number[rows][begins]])
        np.testing.assert_array_equal(chunk.free[:used][begins], rollouts.free[number[rows][begins]])
        assert not chunk.begins[used:].any()
        found = np.full(used, -1)
        for k, own in rollouts.segments(rows.start, rows.stop):
            assert (found[own] == -1).all()
            found[own] = k
        np.testing.assert_array_equal(found, number[rows])
        seen.append(used)
    assert sum(seen) == len(recording)
    assert seen[:-1] == [CHUNK] * (len(seen) - 1)


def test_a_piece_of_the_usual_length_is_one_chunk_of_whole_blocks():
    assert LONGEST <= CHUNK
    assert CHUNK % BLOCK == 0
