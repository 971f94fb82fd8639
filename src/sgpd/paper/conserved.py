"""Figures of what a rollout should keep: volume, the quadratic invariant, the energy."""

import numpy as np
from matplotlib import rc_context

from sgpd.paper.output.panels import (
    STYLE,
    Drawn,
    by_method,
    grid,
    having,
    heading,
    legend,
    log_axis,
    of_tasks,
    said_of,
    size,
    spread,
    stacked,
    training_end,
    trials_of,
)
from sgpd.paper.output.summaries import number
from sgpd.paper.results import METHODS, Result

SPREAD = "median (line) and range (band) over all draws and trials"


@rc_context(STYLE)
def determinant(results: list[Result]) -> Drawn | None:
    """Volume along rollouts."""
    found = having(results, "determinant", ["pendulum", "two-body", "non-separable"])
    if not found:
        return None
    figure, panels = grid(len(found), columns=3, height=2.4)
    for axes, (task, rows) in zip(panels, found.items(), strict=True):
        for method, group in by_method(rows).items():
            away = np.ma.maximum(abs(stacked(group, "determinant") - 1), 1e-17)
            spread(axes, group[0].curves["times"][1:], away, METHODS[method])
        training_end(axes, rows[0])
        log_axis(axes, 1e-17, 1e3)
        axes.set(title=heading(task), xlabel="time [s]", ylabel="|det ψ' - 1|")
    legend(figure, panels)
    every = [r for rows in found.values() for r in rows]
    caption = (
        f"Determinant of each step's derivative, |det ψ' - 1|: {SPREAD}; 0 is drawn at 1e-17, the view ends at 1000. "
        f"{trials_of(of_tasks(results, found))}"
    )
    alt = f"Largest |det ψ' - 1|. {_largest(every, 'determinant', 1.0)}"
    return Drawn(figure, "Volume preservation", caption, alt)


@rc_context(STYLE)
def invariant(results: list[Result]) -> Drawn | None:
    """The sphere of the rigid body."""
    rows = having(results, "invariant", ["rigid-body"]).get("rigid-body")
    if not rows:
        return None
    figure, panels = grid(2, height=2.4)
    _along(panels[0], rows, "invariant", 1.0)
    panels[0].set(title=heading("rigid-body"), xlabel="time [s]", ylabel="|x|²")
    for method, group in by_method(rows).items():
        away = np.ma.maximum(abs(stacked(group, "invariant") - 1), 1e-17)
        spread(panels[1], group[0].curves["times"], away, METHODS[method])
    training_end(panels[1], rows[0])
    log_axis(panels[1], 1e-17, 1e3)
    panels[1].set(title="its deviation", xlabel="time [s]", ylabel="||x|² - 1|")
    legend(figure, panels)
    run = trials_of(of_tasks(results, ["rigid-body"]))
    caption = f"The invariant |x|² = 1: {SPREAD}. What leaves the view is cut off. {run}"
    return Drawn(figure, "Quadratic invariant", caption, f"Largest ||x|² - 1|. {_largest(rows, 'invariant', 1.0)}")


@rc_context(STYLE)
def energy(results: list[Result]) -> Drawn | None:
    """True energy along the rollouts."""
    found = having(results, "energy", ["non-separable", "rigid-body"])
    if not found:
        return None
    figure, panels = grid(len(found), height=2.4)
    findings = []
    for axes, (task, rows) in zip(panels, found.items(), strict=True):
        true = float(rows[0].curves["energy_true"])
        _along(axes, rows, "energy", true)
        axes.set(title=heading(task), xlabel="time [s]", ylabel="energy")
        findings.append(f"True energy {number(true)}. {_largest(rows, 'energy', true)}")
    legend(figure, panels)
    run = trials_of(of_tasks(results, found))
    caption = f"The true energy along rollouts: {SPREAD}. What leaves the view is cut off. {run}"
    return Drawn(figure, "Energy along rollouts", caption, "Largest deviation of any draw. " + " ".join(findings))


def _along(axes, rows: list[Result], key: str, true: float):
    """A quantity that should stay at its true value."""
    axes.axhline(true, color="0.15", lw=2.4, alpha=0.35, label="truth")
    for method, group in by_method(rows).items():
        spread(axes, group[0].curves["times"], stacked(group, key), METHODS[method])
    training_end(axes, rows[0])
    reached = [float(abs(stacked(group, key) - true).max()) for group in by_method(rows).values()]
    away = 1.1 * min(max(reached), max(10 * min(reached), 0.05 * abs(true)))
    axes.set_ylim(true - away, true + away)


def _largest(rows: list[Result], key: str, true: float) -> str:
    tasks = list(dict.fromkeys(r.row["task"] for r in rows))
    return said_of(rows, tasks, lambda group: size(abs(stacked(group, key) - true)))
