"""Recordings are taken as they are: irregular, in several runs, with holes. What cannot be right is refused."""

import numpy as np
import pytest

from sgpd.data import Run, Trajectories

T = np.array([0.0, 0.1, 0.2, 0.35])
X = np.arange(8.0).reshape(4, 2)


def test_one_run_and_several_runs_of_different_length_are_taken():
    one = Trajectories.from_arrays(T, X)
    two = Trajectories.from_arrays([T, T[:3] + 5], [X, X[:3]], names=["p", "q"], units=["", "rad"])
    assert (len(one), one.rows, one.dimension, one.names, one.units) == (1, 4, 2, ("x1", "x2"), ("", ""))
    assert (len(two), two.rows, two.names, two.units, two.run_names) == (2, 7, ("p", "q"), ("", "rad"), ("0", "1"))
    np.testing.assert_array_equal(two.runs[1].states, X[:3])


def test_stacked_arrays_are_several_runs_too():
    assert len(Trajectories.from_arrays(np.stack([T, T]), np.stack([X, X]))) == 2


def test_plain_lists_are_one_run():
    assert Trajectories.from_arrays([0, 1, 2], [[1], [2], [3]]).rows == 3


def test_step_is_the_median_interval_and_duration_that_of_the_longest_run():
    data = Trajectories.from_arrays([T, T[:2]], [X, X[:2]])
    assert data.step == pytest.approx(0.1)
    assert data.duration == pytest.approx(0.35)


def test_nan_none_and_masked_values_are_missing():
    holes = X.copy()
    holes[1, 0] = np.nan
    as_none = [[0, 1], [None, 3], [4, 5], [6, 7]]
    masked = np.ma.masked_equal(X.astype(int), 2)
    for states in (holes, as_none, masked):
        data = Trajectories.from_arrays(T, states)
        np.testing.assert_array_equal(data.runs[0].states, holes)
        np.testing.assert_array_equal(data.runs[0].observed, ~np.isnan(holes))
        assert data.missing == 1
        assert not data.complete


def test_center_and_spread_are_those_of_the_observed_values():
    holes = X.copy()
    holes[1, 0] = np.nan
    data = Trajectories.from_arrays([T, T], [holes, X])
    seen = [0, 4, 6, 0, 2, 4, 6]
    np.testing.assert_allclose(data.center, [np.mean(seen), X[:, 1].mean()])
    np.testing.assert_allclose(data.std, [np.std(seen), X[:, 1].std()])


def test_the_recording_does_not_change_with_the_array_that_it_came_from():
    states = X.copy()
    data = Trajectories.from_arrays(T, states)
    states[0, 0] = 99
    assert data.runs[0].states[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        data.runs[0].states[0, 0] = 99


def test_repr_is_one_line_that_says_what_there_is():
    times = np.arange(75) * 0.1
    states = np.zeros((75, 2))
    states[3:6, 0] = np.nan
    data = Trajectories.from_arrays([times, times], [states, np.zeros((75, 2))], names=["p", "q"])
    assert repr(data) == "Trajectories(2 runs, 150 rows, 7.4 time units, step 0.1, channels p q, 3 values missing)"
    assert repr(Trajectories.from_arrays(T, X)).endswith("channels x1 x2)")
    assert repr(Trajectories.from_arrays(T, X)).startswith("Trajectories(1 run, 4 rows")


def test_units_may_be_given_by_name():
    assert Trajectories.from_arrays(T, X, names=["p", "q"], units={"q": "rad"}).units == ("", "rad")
    with pytest.raises(ValueError, match="no channel called 'pos'"):
        Trajectories.from_arrays(T, X, units={"pos": "m"})


def with_value(array, index, value):
    array = array.copy()
    array[index] = value
    return array


REFUSED = {
    "run 0, row 2: time 0.05 does not come after 0.1": lambda: (with_value(T, 2, 0.05), X),
    "run 1, row 1: time 0.0 does not come after 0.0": lambda: ([T, with_value(T, 1, 0.0)], [X, X]),
    "run 0, row 1: the time is nan; give this row": lambda: (with_value(T, 1, np.nan), X),
    "run 0, row 3: the time is inf": lambda: (with_value(T, 3, np.inf), X),
    "run 0, row 1: 'x2' is -inf; correct it": lambda: (T, with_value(X, (1, 1), -np.inf)),
    "run 1: a run needs at least two rows, this one has 1": lambda: ([T, T[:1]], [X, X[:1]]),
    "every value of 'x1' is missing; leave that channel out": lambda: (T, with_value(X, (slice(None), 0), np.nan)),
    "run 0: times of shape (4,) do not go with states of shape (3, 2)": lambda: (T, X[:3]),
    "for one channel states[:, None]": lambda: (T, X[:, 0]),
    "do not go with states of shape (4, 0)": lambda: (T, X[:, :0]),
    "times of 2 runs, but states of 1": lambda: ([T, T], [X]),
    "run 1: there are 1 channels, but 2 names (x1, x2)": lambda: ([T, T], [X, X[:, :1]]),
    "the states cannot be taken as an array of numbers": lambda: (T, [["a", "b"]] * 4),
    "the times cannot be taken as an array of numbers": lambda: (T.astype("datetime64[s]"), X),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_a_recording_is_refused_with_its_place(message):
    with pytest.raises(ValueError) as refusal:
        Trajectories.from_arrays(*REFUSED[message]())
    assert message in str(refusal.value)


def test_names_and_units_must_fit_the_channels():
    with pytest.raises(ValueError, match="the name 'p' occurs 2 times; give every channel its own name"):
        Trajectories.from_arrays(T, X, names=["p", "p"])
    with pytest.raises(ValueError, match="2 channels, but 1 names"):
        Trajectories.from_arrays(T, X, names=["p"])
    with pytest.raises(ValueError, match="There are 1 units where 2 are needed"):
        Trajectories.from_arrays(T, X, units=["m"])


def test_a_recording_without_a_run_is_refused():
    with pytest.raises(ValueError, match="no run"):
        Trajectories((), ("p",), ("",))


def test_runs_can_be_put_together_by_hand():
    data = Trajectories((Run(T, X), Run(T, X)), ("p", "q"), ("", ""), ("left", "right"))
    assert data.run_names == ("left", "right")
    with pytest.raises(ValueError, match="There are 1 names of runs where 2 are needed"):
        Trajectories((Run(T, X), Run(T, X)), ("p", "q"), ("", ""), ("left",))
    with pytest.raises(ValueError, match="run right, row 1: time"):
        Trajectories((Run(T, X), Run(-T, X)), ("p", "q"), ("", ""), ("left", "right"))


def test_importing_the_data_layer_loads_neither_jax_nor_pandas():
    import subprocess
    import sys

    code = "import sgpd.data, sys; print([name for name in ('jax', 'pandas') if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
