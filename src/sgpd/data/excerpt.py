"""Long recordings, cut down to stretches that tell as much."""

import dataclasses

import numpy as np

from sgpd.data.trajectories import Run, Trajectories


def excerpts(data: Trajectories, most: int, length: int) -> Trajectories:
    """At most about `most` rows: stretches of `length` rows spread evenly over all runs, and the end of every run.

    The runs stay what they are; the rows between the stretches are left out, and gaps in time stand in their place. The
    recording itself where it is short enough.
    """
    if data.rows <= most:
        return data
    stretches = [(k, first) for k, run in enumerate(data.runs) for first in _firsts(len(run), length)]
    last = np.cumsum([len(_firsts(len(run), length)) for run in data.runs]) - 1
    even = np.linspace(0, len(stretches) - 1, max(most // length, 1)).round().astype(int)
    kept = [stretches[index] for index in np.unique([*last, *even])]
    runs = []
    for k, run in enumerate(data.runs):
        rows = np.concatenate([np.arange(first, min(first + length, len(run))) for of, first in kept if of == k])
        runs.append(Run(run.times[rows], run.states[rows]))
    return dataclasses.replace(data, runs=tuple(runs))


def _firsts(rows: int, length: int) -> list[int]:
    """Where stretches start, counted from the end, so that the last one is whole."""
    return list(range(rows % length if rows >= length else 0, rows, length))
