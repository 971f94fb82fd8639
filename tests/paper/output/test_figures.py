"""Every figure can be drawn from whatever was finished, and says in words what it shows."""

import re

import numpy as np
import pytest

from sgpd.paper.output.figures import FIGURES
from sgpd.paper.output.panels import POINTS
from sgpd.paper.results import METHODS
from tests.paper.made_up import diverged, everything, failed, heun, result

NEEDS = {"invariant": "rigid-body", "energy": "rigid-body", "determinant": "two-body", "heun": "heun"}


def texts(drawn) -> str:
    return " ".join(text.get_text() for axes in drawn.figure.axes for text in [axes.title, axes.yaxis.label])


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_of_all_tasks_has_words_with_numbers(name):
    drawn = FIGURES[name](everything())
    assert drawn is not None
    assert re.search(r"\d", drawn.alt)
    assert "nan" not in drawn.alt
    assert re.search(r"Recordings? 0.*; training 0\.", drawn.caption)
    assert drawn.title
    drawn.figure.canvas.draw()


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("task", ["pendulum", "two-body", "non-separable", "rigid-body", "heun"])
def test_one_task_alone_is_drawn_or_left_out(name, task):
    drawn = FIGURES[name]([r for r in everything(1) if r.row["task"] == task])
    if drawn is not None:
        drawn.figure.canvas.draw()
    if NEEDS.get(name) == task:
        assert drawn is not None
    if name in ("invariant", "heun"):
        assert (drawn is not None) == (task == NEEDS[name])


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_gives_no_figure(name):
    assert FIGURES[name]([]) is None


@pytest.mark.parametrize("name", FIGURES)
def test_a_wholly_failed_euler_is_named_and_does_not_stop_the_others(name):
    good = [r for r in everything(2) if r.row["method"] != "euler"]
    tasks = ("pendulum", "two-body", "non-separable", "rigid-body")
    bad = [failed(task, "euler", seed) for task in tasks for seed in range(2)]
    bad += [failed("heun", "euler", 0, **{k: r.row[k] for k in ("system", "step", "solver")}) for r in heun(1)[::2]]
    drawn = FIGURES[name](good + bad)
    drawn.figure.canvas.draw()
    if name != "uncertainty":
        assert "no rollout stayed finite: Euler" in drawn.caption


@pytest.mark.parametrize("name", ["l2-over-time", "states", "determinant", "invariant", "energy", "uncertainty"])
def test_a_diverging_method_does_not_ruin_the_view(name):
    """The truth's range is 2 in every coordinate, energies are near 0.57 and the invariant near 1."""
    tasks = ("pendulum", "two-body", "non-separable", "rigid-body")
    drawn = FIGURES[name]([make(t, m, 0) for t in tasks for m, make in (("sgpd", result), ("euler", diverged))])
    drawn.figure.canvas.draw()
    top = {"l2-over-time": 12.0, "determinant": 1e3, "invariant": 1e3, "energy": 1.0}.get(name, 2.1)
    assert all(axes.get_ylim()[1] <= top for axes in drawn.figure.axes)


def test_a_diverging_sgpd_is_drawn_too():
    for draw in FIGURES.values():
        drawn = draw([diverged(t, "sgpd", 0) for t in ("pendulum", "rigid-body")])
        if drawn is not None:
            drawn.figure.canvas.draw()


def test_methods_differ_in_colour_and_in_dash():
    assert len({m.colour for m in METHODS.values()}) == len({m.dash for m in METHODS.values()}) == len(METHODS)


def test_panels_are_only_those_of_the_tasks_that_are_there():
    few = [result("pendulum", "sgpd", 0), result("rigid-body", "default", 0)]
    assert len(FIGURES["l2-over-time"](few).figure.axes) == 2
    assert len(FIGURES["states"](few).figure.axes) == 5
    assert "two-body" not in texts(FIGURES["states"](few))


def test_lines_are_thinned():
    times = np.linspace(0, 40, 8000)
    long = result("heun", "sgpd", 0, system="pendulum", step=0.005, solver="heun")
    wave = np.stack([np.cos(times), np.sin(times)], 1)
    long.curves.update(times=times, truth=wave, mean=1.01 * wave)
    drawn = FIGURES["heun"]([long])
    assert max(len(line.get_xdata()) for axes in drawn.figure.axes for line in axes.lines) <= POINTS
    assert "step 0.005 L2 0.01" in drawn.alt


def test_the_words_hold_the_numbers_of_the_curves():
    one, two = result("pendulum", "sgpd", 0), result("pendulum", "sgpd", 1)
    expected = (one.row["l2"] + two.row["l2"]) / 2
    assert f"SGPD {expected:.2g}." in FIGURES["l2-over-time"]([one, two]).alt
    worst = max(abs(r.curves["determinant"] - 1).max() for r in (one, two))
    assert f"SGPD {worst:.2g}." in FIGURES["determinant"]([one, two]).alt
