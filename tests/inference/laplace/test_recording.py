"""A recording in blocks: every row has its place, and rollouts begin and end where they should."""

import numpy as np
import pytest

from sgpd.data import Trajectories, windows
from sgpd.inference.laplace.constants import BLOCK, CAPACITY, SLOTS
from sgpd.inference.laplace.recording import Layout, Recording, Rollouts

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


@pytest.fixture(scope="module", params=[(97, 11, 3, 60), (2,) * 64, (5, *(3,) * 40, 70)], ids=["few", "short", "both"])
def case(request):
    data, pieces = some_runs(request.param) if request.param[0] > 50 else plain_runs(request.param)
    layout, pinned = Layout.of(pieces, LENGTHS), np.arange(len(pieces)) % 2 == 0
    return pieces, pinned, layout, Recording.of(data, pieces, pinned, layout)


def plain_runs(rows):
    rng = np.random.default_rng(1)
    data = Trajectories.from_arrays([0.1 * np.arange(n) for n in rows], [rng.normal(size=(n, 2)) for n in rows])
    return data, windows(data, LENGTHS[-1])


def test_every_row_comes_back_from_its_place(case):
    pieces, _, layout, recording = case
    np.testing.assert_array_equal(layout.in_pieces(recording.states)[layout.real], pieces.states[layout.real])
    assert len(np.unique(layout.place[layout.real])) == layout.real.sum()
    drawn = np.random.default_rng(0).normal(size=(3, *pieces.states.shape))
    np.testing.assert_array_equal(layout.in_blocks(drawn, 1)[1], layout.in_blocks(drawn[1]))


def test_a_pinned_start_is_no_observation_and_what_was_not_observed_stays_so(case):
    pieces, pinned, layout, recording = case
    observed = layout.in_pieces(recording.observed)
    assert not observed[pinned, 0].any()
    np.testing.assert_array_equal(observed[layout.real].sum(), pieces.observed.sum() - pieces.observed[pinned, 0].sum())
    assert recording.observed.sum() == observed[layout.real].sum()
    np.testing.assert_array_equal(layout.in_pieces(recording.pinned)[:, 0], pinned)


def test_steps_lead_from_row_to_row(case):
    pieces, _, layout, recording = case
    line = np.cumsum(np.asarray(recording.steps).reshape(-1))
    for piece, count in enumerate(pieces.lengths):
        elapsed = line[layout.place[piece, :count]] - line[layout.place[piece, 0]]
        np.testing.assert_allclose(elapsed, pieces.times[piece, :count] - pieces.times[piece, 0], atol=1e-12)
    assert np.count_nonzero(recording.steps) == np.count_nonzero(pieces.steps)


@pytest.mark.parametrize("every", LENGTHS)
def test_rollouts_begin_every_so_many_rows_and_end_before_the_next_one_begins(case, every):
    pieces, _, layout, _ = case
    rollouts = Rollouts.every(every, layout)
    begins = np.asarray(rollouts.begins).reshape(-1)
    expected = [layout.place[piece, row] for piece, n in enumerate(pieces.lengths) for row in range(0, n, every)]
    np.testing.assert_array_equal(np.flatnonzero(begins), sorted(expected))
    assert np.asarray(rollouts.begins).sum(axis=1).max() <= SLOTS
    assert rollouts.complete.sum() == begins.sum()
    # The slot where a rollout ends is that of its last entry in the last block that it reaches.
    ends, slot = np.asarray(rollouts.ends).reshape(-1), np.asarray(rollouts.slot)
    firsts = np.flatnonzero(begins)
    for first, following in zip(firsts, [*firsts[1:], layout.blocks * BLOCK], strict=True):
        block, place = divmod(following - 1, BLOCK)
        assert ends[first] == block * (SLOTS + 1) + slot[block, place]
        assert rollouts.complete[block, slot[block, place]]
    if every == LENGTHS[-1]:
        np.testing.assert_array_equal(rollouts.of_pieces(layout), ends[layout.place[:, 0]])


def test_recordings_of_many_lengths_have_room_in_blocks_of_one_number():
    for rows in (3, 96, 100, 4000):
        assert Layout.of(plain_runs([rows])[1], LENGTHS).capacity == CAPACITY
    assert Layout.of(plain_runs([5000])[1], LENGTHS).capacity > CAPACITY


def test_no_block_is_crowded_where_several_steps_lead_to_a_row_at_its_border():
    """Row 20 of the first run, to which two steps lead across the border, begins a rollout in the second block."""
    steps = [2] * 11 + [1] * 8 + [2]
    times = [0.1 * np.cumsum([0, *steps]), *(0.1 * np.arange(2) for _ in range(2 * SLOTS))]
    rng = np.random.default_rng(0)
    pieces = windows(Trajectories.from_arrays(times, [rng.normal(size=(len(t), 1)) for t in times]), 21)
    layout = Layout.of(pieces, [20, 21])
    assert np.asarray(Rollouts.every(20, layout).begins).sum(axis=1).max() <= SLOTS


def test_no_block_of_random_recordings_is_crowded():
    rng = np.random.default_rng(1)
    for _ in range(200):
        rows = rng.integers(2, 60, size=rng.integers(1, 30))
        rows[0] = max(rows[0], 5)
        times = [0.1 * np.cumsum(rng.choice([1, 1, 1, 2, 3], size=n)) for n in rows]
        data = Trajectories.from_arrays(times, [rng.normal(size=(n, 1)) for n in rows])
        pieces = windows(data, 40)
        layout = Layout.of(pieces, [20, 40])
        rollouts = Rollouts.every(20, layout)
        assert np.asarray(rollouts.begins).sum(axis=1).max() <= SLOTS
        assert rollouts.complete.sum() == rollouts.begins.sum()
        assert len(np.unique(layout.place[layout.real])) == layout.real.sum()
