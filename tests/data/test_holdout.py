"""What is held out and what is fitted are together the recording, and neither is in the other."""

import numpy as np
import pytest

from sgpd.data import Trajectories, hold_out
from sgpd.errors import BadInput

RNG = np.random.default_rng(0)


def recording(*lengths, **options):
    times = [3 * k + 0.5 * np.arange(n) for k, n in enumerate(lengths)]
    return Trajectories.from_arrays(times, [RNG.normal(size=(n, 2)) for n in lengths], names=["p", "q"], **options)


def test_the_end_of_a_run_is_held_out():
    data = recording(100, units=["", "rad"])
    fitted, held, sentence = hold_out(data, 0.2)
    np.testing.assert_array_equal(fitted.runs[0].states, data.runs[0].states[:80])
    np.testing.assert_array_equal(held.runs[0].states, data.runs[0].states[80:])
    np.testing.assert_array_equal(held.runs[0].times, data.runs[0].times[80:])
    assert (held.run_names, held.units, held.names) == (data.run_names, data.units, data.names)
    assert sentence == "first 80 rows are fitted, last 20 rows (9.5 time units) held out"


def test_of_a_few_runs_the_end_of_each_is_held_out():
    data = recording(100, 3, 50)
    fitted, held, sentence = hold_out(data, 0.1)
    assert [len(run) for run in fitted.runs] == [90, 3, 45]
    assert [len(run) for run in held.runs] == [10, 5]
    assert (fitted.run_names, held.run_names) == (("0", "1", "2"), ("0", "2"))
    assert sentence == (
        "first 138 of 153 rows are fitted, the end of each run (15 rows, at most 4.5 time units each) held out; "
        "1 fitted whole (too short to cut)"
    )


def test_of_five_runs_or_more_whole_runs_are_held_out():
    data = recording(10, 20, 30, 40, 50, 60)
    fitted, held, sentence = hold_out(data, 0.3)
    assert (fitted.run_names, held.run_names) == (("0", "1", "2", "3"), ("4", "5"))
    assert fitted.rows + held.rows == data.rows
    assert held.runs[0] is data.runs[4] or np.array_equal(held.runs[0].states, data.runs[4].states)
    assert sentence == "4 runs fitted, 2 runs (4, 5; 110 rows) held out"
    assert len(hold_out(data, 0.01)[1]) == 1
    assert len(hold_out(data, 0.99)[0]) == 1


def test_names_and_units_of_time_travel():
    data = Trajectories(recording(100).runs, ("p", "q"), ("", ""), ("a",), "clock", "ms")
    fitted, held, sentence = hold_out(data, 0.5)
    assert (fitted.time_name, held.time_unit, held.run_names) == ("clock", "ms", ("a",))
    assert "(24.5 ms)" in sentence


@pytest.mark.parametrize("share", [0, 1, -0.2, 20, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(BadInput, match="give a share between 0 and 1"):
        hold_out(recording(100), share)


def test_a_recording_that_is_too_short_is_refused():
    with pytest.raises(BadInput, match=r"no run is long enough to hold out 20% of it \(the longest has 3 rows\)"):
        hold_out(recording(3, 2), 0.2)
    assert hold_out(recording(4), 0.2)[1].rows == 2


def test_a_channel_that_is_missing_in_one_part_is_refused():
    data = recording(100)
    states = data.runs[0].states.copy()
    states[80:, 1] = np.nan
    data = Trajectories.from_arrays(data.runs[0].times, states, names=["p", "q"])
    with pytest.raises(BadInput, match="every value of 'q' is missing; hold out another share"):
        hold_out(data, 0.2)
    assert hold_out(data, 0.3)[1].missing == 20
