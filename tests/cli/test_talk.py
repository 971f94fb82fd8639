"""How the command line speaks: columns, wrapping, bars only on terminals, warnings as lines."""

import io
import json
import warnings

import numpy as np
import pytest
from rich.console import Console

from sgpd.cli.talk import Talk, clock_time
from sgpd.errors import SgpdWarning
from sgpd.runs.packing import pack_json


def on_terminal(talk):
    """The same talk as it would be on a terminal."""
    talk.err = Console(file=io.StringIO(), force_terminal=True, width=80, highlight=False)
    return talk


def test_long_sentences_are_wrapped_under_themselves(capsys):
    Talk().say("guessed", "word " * 30)
    first, *more = capsys.readouterr().err.splitlines()
    assert first.startswith("guessed  word")
    assert len(more) == 2
    assert all(line.startswith(" " * 9 + "word") and len(line) <= 80 for line in more)


def test_markup_and_long_names_stay_as_they_are(capsys):
    name = "[red]" + "a" * 100
    Talk().say("read", name)
    assert capsys.readouterr().err == f"read     {name}\n"


def test_quiet_says_nothing_but_results(capsys):
    talk = Talk(quiet=True)
    talk.say("read", "much")
    talk.attention("more")
    talk.result("Verdict: ", "fine")
    assert capsys.readouterr() == ("Verdict: fine\n", "")


def test_json_takes_the_place_of_results(capsys):
    talk = Talk(as_json=True)
    talk.result("Verdict: ", "fine")
    talk.data({"a": [1, "ü"]})
    assert json.loads(capsys.readouterr().out) == {"a": [1, "ü"]}


def test_what_is_no_number_is_null_as_in_the_files(capsys):
    Talk(as_json=True).data({"value": float("nan"), "limits": (float("inf"), np.float64(2.5))})
    said = capsys.readouterr().out
    assert json.loads(said) == {"value": None, "limits": [None, 2.5]}
    assert said.encode() == pack_json({"value": float("nan"), "limits": (float("inf"), np.float64(2.5))})


def test_colour_is_only_on_a_terminal_and_not_where_it_is_unwanted(capsys, monkeypatch):
    Talk().verdict("FAIL", "It does not hold.")
    assert capsys.readouterr().out == "  FAIL          It does not hold.\n"
    monkeypatch.setenv("NO_COLOR", "1")
    talk = on_terminal(Talk())
    talk.attention("look")
    assert "\x1b[33m" not in talk.err.file.getvalue()
    monkeypatch.delenv("NO_COLOR")
    talk = on_terminal(Talk())
    talk.attention("look")
    assert "\x1b" in talk.err.file.getvalue()


def test_a_bar_tells_the_stage_and_the_time_that_remains():
    talk = on_terminal(Talk())
    with talk.progress("fit", "stage") as progress:
        progress(1, 3)
    drawn = talk.err.file.getvalue()
    assert "stage 2 of 3" in drawn
    assert "━" in drawn


@pytest.mark.parametrize(("total", "lines"), [(4, 4), (10, 10), (1000, 10)])
def test_off_a_terminal_there_is_one_line_a_stage_and_at_most_ten(capsys, total, lines):
    with Talk().progress("fit", "epoch") as progress:
        for done in range(1, total + 1):
            progress(done, total)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == lines
    assert said[-1] == f"fit      epoch {total} of {total}"


def test_stages_that_are_not_alike_are_told_as_a_share_of_the_work(capsys):
    with Talk().progress("fit") as progress:
        progress(6, 19)
        progress(19, 19)
    assert capsys.readouterr().err.splitlines() == ["fit      32% done", "fit      100% done"]
    talk = on_terminal(Talk())
    with talk.progress("fit") as progress:
        progress(6, 19)
    assert " 32%" in talk.err.file.getvalue()


def test_only_our_warnings_become_lines(capsys):
    talk = Talk()
    with talk.heeding():
        warnings.warn("three paths failed", SgpdWarning, stacklevel=1)
    assert capsys.readouterr().err == "ATTENTION  three paths failed\n"
    with talk.heeding(), pytest.raises(DeprecationWarning):  # an error under the tests, as anywhere else in them
        warnings.warn("old", DeprecationWarning, stacklevel=1)


def test_clock_times():
    assert [clock_time(seconds) for seconds in (7.4, 750.0, 3723.0)] == ["0:07", "12:30", "1:02:03"]
