"""A recording in blocks of one size, so that the same compiled programs fit every recording.

All pieces stand one after the other in one line of entries. An entry is a step of the integrator; one that ends at a
row of the recording carries what was observed there. The line is cut into blocks, and programs go through as many of
them as are used: room for more costs memory, hardly time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from sgpd.arrays import on_device
from sgpd.data import Trajectories, Windows
from sgpd.inference.constants import START_STD
from sgpd.inference.laplace.constants import BLOCK, CAPACITY, MORE, SLOTS


def room_for(count: int, least: int) -> int:
    """One of few sizes, so that few programs are compiled."""
    return least if count <= least else room_for(count, MORE * least)


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the rows of r pieces of n rows stand in the line."""

    place: Int[np.ndarray, "r n"]  # a row of padding stands where the last row of its piece does
    real: Bool[np.ndarray, "r n"]  # what is no padding
    blocks: int  # that are used
    capacity: int  # blocks for which there is room

    @classmethod
    def of(cls, pieces: Windows, lengths: Sequence[int]) -> "Layout":
        """For rollouts that may begin anew every `lengths[0]`, or every `lengths[1]`, ... rows of a piece.

        In no block more than `SLOTS` rollouts begin: where one more would, the rest of the block stays empty.
        """
        n = pieces.states.shape[1]
        real = np.arange(n) < pieces.lengths[:, None]
        begins = np.any([np.arange(n) % length == 0 for length in lengths], axis=0)
        entries = np.where(real, np.concatenate([real[:, :1], (pieces.steps > 0).sum(axis=2)], axis=1), 0).reshape(-1)
        first = np.flatnonzero((real & begins).reshape(-1))
        shift = _not_crowded(np.add.reduceat(entries, first), entries[first] - 1)
        belongs = np.searchsorted(first, np.arange(entries.size), side="right") - 1
        place = (np.cumsum(entries) - 1 + shift[belongs]).reshape(real.shape)
        last = np.take_along_axis(place, pieces.lengths[:, None] - 1, axis=1)
        blocks = int(last.max()) // BLOCK + 1
        return cls(np.where(real, place, last), real, blocks, room_for(blocks, CAPACITY))

    def in_blocks(self, values: np.ndarray, axis: int = 0) -> np.ndarray:
        """What is given for all rows, from that axis on, entry by entry; 0 where there is no row."""
        lead, rest = values.shape[:axis], values.shape[axis + 2 :]
        line = np.zeros((*lead, self.capacity * BLOCK, *rest), values.dtype)
        before = (slice(None),) * axis
        line[(*before, self.place[self.real])] = values[(*before, self.real)]
        return line.reshape(*lead, self.capacity, BLOCK, *rest)

    def in_pieces(self, values: Array) -> np.ndarray:
        """What is given for all entries, row by row."""
        return np.asarray(values).reshape(-1, *values.shape[2:])[self.place]


def _not_crowded(sizes: Int[np.ndarray, " m"], lead: Int[np.ndarray, " m"]) -> Int[np.ndarray, " m"]:
    """By how many empty entries each rollout moves on, so that no more than `SLOTS` begin in one block.

    A rollout of so many entries begins at the last of the steps that lead to its first row, `lead` entries later.
    """
    shifts, shift, end, block, begun = np.zeros(len(sizes), int), 0, 0, -1, 0
    for index, (size, before) in enumerate(zip(sizes.tolist(), lead.tolist(), strict=True)):
        if (end + before) // BLOCK == block and begun == SLOTS:
            skipped = -(end + before) % BLOCK
            shift, end = shift + skipped, end + skipped
        if (end + before) // BLOCK != block:
            block, begun = (end + before) // BLOCK, 0
        shifts[index], begun, end = shift, begun + 1, end + size
    return shifts


class Recording(eqx.Module):
    """What compiled programs know of a recording: b blocks of k entries."""

    states: Float[Array, "b k d"]
    observed: Bool[Array, "b k d"]
    steps: Float[Array, "b k"]  # that lead to an entry; 0 where nothing moves
    pinned: Bool[Array, "b k"]  # the first entry of a piece, if its state is exact
    centre: Float[Array, "b k d"]  # prior of starts
    start_std: Float[Array, " d"]
    used: Int[Array, ""]  # blocks

    @classmethod
    def of(cls, data: Trajectories, pieces: Windows, pinned: np.ndarray, layout: Layout) -> "Recording":
        """From windows so long that each is a whole piece. A pinned state is no longer an observation."""
        observed = pieces.with_exact_starts(pinned).observed
        first = np.zeros(layout.place.shape, bool)
        first[:, 0] = pinned
        in_blocks, std = layout.in_blocks, np.where(data.std > 0, data.std, 1.0)
        states, steps = in_blocks(pieces.states), _line_of_steps(pieces, layout)
        centre = np.broadcast_to(data.center, states.shape)
        arrays = (states, in_blocks(observed), steps, in_blocks(first), centre, START_STD * std, layout.blocks)
        return cls(*map(on_device, arrays))


def _line_of_steps(pieces: Windows, layout: Layout) -> np.ndarray:
    """The steps between two rows, up to the later one."""
    line = np.zeros(layout.capacity * BLOCK)
    piece, row, index = np.nonzero(pieces.steps)
    count = (pieces.steps > 0).sum(axis=2)
    line[layout.place[piece, row + 1] - count[piece, row] + 1 + index] = pieces.steps[piece, row, index]
    return line.reshape(-1, BLOCK)


class Rollouts(eqx.Module):
    """Where rollouts begin, and where what their rows say about the start is complete.

    A block has a slot for the rollout that goes on from the block before, and one for each that begins in it.
    """

    begins: Bool[Array, "b k"]
    slot: Int[Array, "b k"]
    complete: Bool[Array, "b q"]  # whether the rollout of a slot ends in this block
    ends: Int[Array, "b k"]  # of an entry where one begins: the slot in which it ends, counted through all blocks

    @classmethod
    def every(cls, rows: int, layout: Layout) -> "Rollouts":
        """Anew every so many rows of a piece."""
        begins = layout.in_blocks(layout.real & (np.arange(layout.real.shape[1]) % rows == 0))
        slot = np.cumsum(begins, axis=1)
        some, last = slot[:, -1:], np.append(begins[1:, 0], False)
        last[layout.blocks - 1] = True
        slots = np.arange(SLOTS + 1)[None, :]
        goes_on = ~begins[:, :1] & (np.arange(len(begins)) > 0)[:, None]
        there = np.where(slots == 0, goes_on, slots <= some) & (np.arange(len(begins)) < layout.blocks)[:, None]
        complete = there & ((slots < some) | last[:, None])
        ends = np.zeros(begins.shape, int)
        ends[begins] = np.flatnonzero(complete)
        return cls(*map(on_device, (begins, slot, complete, ends)))

    def of_pieces(self, layout: Layout) -> Int[np.ndarray, " r"]:
        """The slots in which the rollouts end that begin where pieces do."""
        return layout.in_pieces(self.ends)[:, 0]
