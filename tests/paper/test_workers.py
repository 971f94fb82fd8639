"""Experiments in processes of their own: the same numbers, heard of from here, and gone when this one stops."""

import multiprocessing
import pickle
import time

import numpy as np
import pytest

from sgpd.errors import BadInput, NumericalFailure, Outcome
from sgpd.paper.experiments import Experiment
from sgpd.paper.results import Trial
from sgpd.paper.workers import in_turn, side_by_side

TRIAL = Trial(3, 1)
NETWORKS = [
    (Experiment(name, "hnn", "exact", quick=True, reading=None), [TRIAL]) for name in ("non-separable", "pendulum")
]


class Heard:
    """Writes down what it hears."""

    def __init__(self):
        self.begun, self.progress = [], []

    def begin(self, experiment, index, count, trials):
        self.begun.append((index, count, trials))
        return lambda done, total: self.progress.append((index, done, total))

    def end(self, *_):
        raise AssertionError("whoever keeps the results tells of the end")


def _no_process_left(within=10.0):
    end = time.monotonic() + within
    while multiprocessing.active_children() and time.monotonic() < end:
        time.sleep(0.1)
    return not multiprocessing.active_children()


def test_side_by_side_gives_the_same_numbers_as_in_turn_and_tells_how_it_goes_on():
    heard = Heard()
    here = {done.experiment: done.results for done in in_turn(NETWORKS, Heard())}
    there = {done.experiment: done.results for done in side_by_side(NETWORKS, heard, 2)}
    assert set(there) == set(here)
    for experiment, (one,) in here.items():
        (other,) = there[experiment]
        assert other.row["l2"] == one.row["l2"]
        np.testing.assert_array_equal(other.curves["mean"], one.curves["mean"])
    assert sorted(heard.begun) == [(0, 2, [TRIAL]), (1, 2, [TRIAL])]
    for index in (0, 1):
        last = [each for each in heard.progress if each[0] == index][-1]
        assert last[1] == last[2] > 0
    assert _no_process_left()


def test_a_failure_there_is_raised_here_and_no_process_is_left():
    with pytest.raises(ValueError, match="no-such"):
        list(side_by_side([(Experiment("no-such", "hnn", "exact", quick=True, reading=None), [TRIAL])] * 2, Heard(), 2))
    assert _no_process_left()


def test_processes_end_when_nobody_wants_their_results():
    running = side_by_side([NETWORKS[0], *NETWORKS], Heard(), 2)
    next(running)
    running.close()
    assert _no_process_left()


def test_a_process_that_is_killed_is_told_with_what_to_do():
    running = side_by_side([NETWORKS[0], *NETWORKS], Heard(), 2)
    next(running)
    for process in multiprocessing.active_children():
        process.kill()
    with pytest.raises(BadInput, match=r"ended from outside.*--jobs 1"):
        list(running)
    assert _no_process_left()


@pytest.mark.parametrize(
    "failure",
    [NumericalFailure(Outcome.NOT_FINITE, "On path 3."), BadInput("wrong", "mend it", "a.csv", 3, "q")],
    ids=lambda failure: type(failure).__name__,
)
def test_failures_keep_their_words_between_processes(failure):
    again = pickle.loads(pickle.dumps(failure))
    assert (str(again), vars(again)) == (str(failure), vars(failure))
