"""Recordings in words and as a card."""

import re

import numpy as np
import pytest

from sgpd.data import Trajectories
from sgpd.data.describing import data_sentence, share, wrapped_channels

X = np.random.default_rng(0).normal(size=(100, 2))


def at(times, states=None, **options):
    times = np.asarray(times, float)
    return Trajectories.from_arrays(times, X[: len(times)] if states is None else states, **options)


def test_even_rows_with_jitter_and_pauses():
    clock = np.round(np.arange(100) / 30, 3)
    assert data_sentence(at(clock)) == "0.033 to 0.034 between rows, no gaps, no missing values"
    clock[50:] += 2 / 30
    assert "1 gap (of 0.101 time units)" in data_sentence(at(clock))
    clock[70:] += 5
    assert "2 gaps (the longest 5.03 time units)" in data_sentence(at(clock))


def test_uneven_rows_are_called_so_and_have_no_gaps_unless_they_are_long():
    times = np.cumsum(np.random.default_rng(1).uniform(0.1, 2, size=100))
    sentence = data_sentence(at(times))
    assert "between rows (uneven), no gaps" in sentence
    times[60:] += 50
    assert "1 gap" in data_sentence(at(times))


def test_a_pause_between_runs_is_no_gap():
    data = Trajectories.from_arrays([np.arange(50.0), 500 + np.arange(50.0)], [X[:50], X[50:]])
    assert "no gaps" in data_sentence(data)


def test_missing_values_are_counted_by_channel():
    states = X.copy()
    states[5:8, 1] = np.nan
    states[0, 0] = np.nan
    assert data_sentence(at(np.arange(100), states)).endswith("4 missing values, 2% (x1 1, x2 3)")


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(1, 10**6, "< 0.1%"), (10**6 - 1, 10**6, "> 99.9%"), (0, 5, "0%"), (5, 5, "100%"), (1, 3, "33.3%")],
)
def test_a_share_is_never_rounded_to_nothing_or_all(part, whole, text):
    assert share(part, whole) == text


def test_an_angle_that_is_cut_at_a_full_turn_is_found_and_nothing_else():
    turning = 0.3 * np.arange(300.0)
    wrapped = (turning + np.pi) % (2 * np.pi) - np.pi
    degrees = np.degrees(turning) % 360
    swinging = np.pi * np.sin(turning)  # one turn wide, without a jump
    fast = (2.5 * np.arange(300.0)) % (2 * np.pi)  # steps of every size: cannot be told
    names = ["wrapped", "degrees", "swinging", "turning", "fast"]
    states = np.stack([wrapped, degrees, swinging, turning, fast], axis=1)
    states[5, 0] = np.nan
    data = Trajectories.from_arrays(np.arange(300), states, names=names)
    assert wrapped_channels(data) == ["wrapped", "degrees"]


def test_the_unit_of_time_is_said_where_it_is_known():
    data = Trajectories(at(np.arange(100)).runs, ("p", "q"), ("", ""), time_unit="ms")
    assert data_sentence(data).startswith("1 ms between rows")
    assert repr(data) == "Trajectories(1 run, 100 rows, 99 ms, step 1, channels p q)"


def test_the_card_is_small_and_plain():
    states = X.copy()
    states[3, 0] = np.nan
    html = at(np.arange(100), states, names=["<b>", "q"], units=["", "rad"])._repr_html_()
    assert html.count("<tr>") == 4
    assert "&lt;b&gt;, q [rad]" in html
    assert "100 rows in 1 run, 99 time units" in html
    assert "1 missing value, 0.5% (&lt;b&gt; 1)" in html
    assert not re.search(r"<script|http|src=|url\(|#[0-9a-f]{3}", html)
    assert len(html) < 10_000


def test_the_card_of_many_channels_stays_small():
    wide = Trajectories.from_arrays(np.arange(5), np.random.default_rng(0).normal(size=(5, 300)))
    assert "x11, and 289 more" in wide._repr_html_()
    assert len(wide._repr_html_()) < 10_000


def test_a_data_frame_has_a_row_for_each_row():
    data = Trajectories.from_arrays([np.arange(3), np.arange(2)], [X[:3], X[:2]], names=["p", "q"])
    frame = data.to_dataframe()
    assert frame["run"].tolist() == ["0", "0", "0", "1", "1"]
    np.testing.assert_array_equal(frame[["p", "q"]], np.concatenate([X[:3], X[:2]]))
    np.testing.assert_array_equal(frame["t"], [0, 1, 2, 0, 1])
