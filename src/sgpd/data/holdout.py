"""A part of a recording kept back, to judge a forecast by."""

import dataclasses
from collections.abc import Sequence

from sgpd.data.describing import amount, count
from sgpd.data.trajectories import Run, Trajectories
from sgpd.errors import BadInput

MANY = 5  # runs, from which on whole runs are kept back
SHORTEST = 2  # rows that a part of a run needs


def hold_out(data: Trajectories, share: float | int) -> tuple[Trajectories, Trajectories, str]:
    """The recording to fit, the rest to judge it by, and a sentence about the two.

    Of five runs or more, the last ones are held out as a whole; of fewer, the end of each. An end keeps the name of
    its run; a run that is too short to be cut is fitted whole.
    """
    if not 0 < share < 1:
        raise BadInput(f"a share of {share:g} cannot be held out", "give a share between 0 and 1, such as 0.2 (20%)")
    whole = len(data) >= MANY
    fitted, held = _whole_runs(data, share) if whole else _ends(data, share)
    return fitted, held, _whole_sentence(fitted, held) if whole else _end_sentence(fitted, held)


def _whole_runs(data: Trajectories, share: float) -> tuple[Trajectories, Trajectories]:
    kept = len(data) - min(max(round(share * len(data)), 1), len(data) - 1)
    return _part(data, data.runs[:kept], data.run_names[:kept]), _part(data, data.runs[kept:], data.run_names[kept:])


def _ends(data: Trajectories, share: float) -> tuple[Trajectories, Trajectories]:
    cuts = [len(run) - max(round(share * len(run)), SHORTEST) for run in data.runs]
    cut = [k for k, at in enumerate(cuts) if at >= SHORTEST]
    if not cut:
        raise BadInput(
            f"no run is long enough to hold out {100 * share:.3g}% of it (the longest has "
            f"{count(max(map(len, data.runs)), 'row')})",
            "hold out another share, or nothing",
        )
    fitted = [_rows(run, slice(cuts[k]) if k in cut else slice(None)) for k, run in enumerate(data.runs)]
    held = [_rows(data.runs[k], slice(cuts[k], None)) for k in cut]
    return _part(data, fitted, data.run_names), _part(data, held, [data.run_names[k] for k in cut])


def _rows(run: Run, rows: slice) -> Run:
    return Run(run.times[rows], run.states[rows])


def _part(data: Trajectories, runs: Sequence[Run], names: Sequence[str]) -> Trajectories:
    try:
        return dataclasses.replace(data, runs=tuple(runs), run_names=tuple(names))
    except BadInput as error:
        raise BadInput(f"one part of the split cannot be used: {error.message}", "hold out another share") from error


def _whole_sentence(fitted: Trajectories, held: Trajectories) -> str:
    names = ", ".join(held.run_names) if len(held) <= 6 else f"{', '.join(held.run_names[:5])} ..."
    return (
        f"{count(len(fitted), 'run')} fitted, {count(len(held), 'run')} ({names}; {count(held.rows, 'row')}) held out"
    )


def _end_sentence(fitted: Trajectories, held: Trajectories) -> str:
    length = amount(held.duration, held.time_unit, digits=3)
    if len(fitted) == 1:
        return f"first {count(fitted.rows, 'row')} are fitted, last {count(held.rows, 'row')} ({length}) held out"
    whole = [name for name in fitted.run_names if name not in held.run_names]
    too_short = f"; {', '.join(whole)} fitted whole (too short to cut)" if whole else ""
    of = f"first {fitted.rows:,} of {count(fitted.rows + held.rows, 'row')} are fitted, the end of each run"
    return f"{of} ({count(held.rows, 'row')}, at most {length} each) held out{too_short}"
