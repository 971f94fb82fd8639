"""The paper's figures, each with its title, its caption and the finding in words."""

from collections.abc import Callable, Collection
from types import MappingProxyType

import numpy as np
from matplotlib import rc_context

from sgpd.paper import conserved, transfer
from sgpd.paper.output.panels import (
    STYLE,
    SYSTEMS,
    TRUTH,
    Drawn,
    by_method,
    errors,
    first_trial,
    grid,
    having,
    heading,
    keep_in_view,
    l2,
    legend,
    line,
    log_axis,
    of_tasks,
    said_of,
    size,
    spread,
    tame,
    thin,
    training_end,
    trials_of,
)
from sgpd.paper.results import METHODS, TASKS, Result, chosen

CLIPPED = "The view ends at twice the truth's range, whatever a method does beyond."


@rc_context(STYLE)
def l2_over_time(results: list[Result]) -> Drawn | None:
    """Error of the averaged rollouts over time."""
    found = having(results, "mean", SYSTEMS)
    if not found:
        return None
    figure, panels = grid(len(found))
    for axes, (task, rows) in zip(panels, found.items(), strict=True):
        for method, group in by_method(rows).items():
            away = np.ma.masked_less_equal(errors(group), 0.0)  # the start is exact
            spread(axes, group[0].curves["times"], away, METHODS[method], np.ma.mean)
        training_end(axes, rows[0])
        reach = float(np.linalg.norm(np.ptp(rows[0].curves["truth"], axis=0)))
        log_axis(axes, 1e-4 * reach, 2 * reach)
        axes.set(title=heading(task), xlabel="time [s]", ylabel="|X - mean|")
    legend(figure, panels)
    run = trials_of(of_tasks(results, found))
    caption = f"Distance of averaged rollouts from the truth: mean (line), range over trials (band). {CLIPPED} {run}"
    alt = said_of([r for rows in found.values() for r in rows], list(found), l2)
    return Drawn(figure, "L2 error over time", caption, f"L2 error, mean over trials. {alt}")


@rc_context(STYLE)
def states(results: list[Result]) -> Drawn | None:
    """Trajectories of the first trial."""
    found = {task: first_trial(results, task) for task in SYSTEMS if chosen(results, task=task)}
    places = _places(found)
    if not places:
        return None
    figure, panels = grid(len(places))
    for axes, (task, k) in zip(panels, places, strict=True):
        (_orbit if task == "two-body" else _coordinate)(axes, task, k, found[task])
    legend(figure, panels)
    rows = [r for group in found.values() for r in group]
    finished = [r for r in rows if r.finished]
    caption = f"States over time, the two-body problem in space, average of 5 rollouts. {CLIPPED} {trials_of(rows)}"
    alt = said_of(finished, list(dict.fromkeys(r.row["task"] for r in finished)), l2)
    return Drawn(figure, "State trajectories", caption, f"L2 errors of the trajectories shown. {alt}")


def _places(tasks: Collection[str]) -> list[tuple[str, int]]:
    """A panel for each coordinate; the two-body problem has one, and is last."""
    places = [(task, k) for task in tasks if task != "two-body" for k in range(len(TASKS[task].states))]
    return places + [("two-body", TASKS["two-body"].states.index("q1x"))] * ("two-body" in tasks)


def _coordinate(axes, task: str, k: int, rows: list[Result]):
    """One coordinate over time: truth, recording, each method's average."""
    curves = rows[0].curves
    axes.plot(curves["times"], curves["truth"][:, k], **TRUTH)
    axes.plot(curves["recorded_times"], curves["recorded"][:, k], "k.", ms=2, label="recorded")
    for method, group in by_method([r for r in rows if r.finished]).items():
        line(axes, group[0].curves["times"], group[0].curves["mean"][:, k], METHODS[method])
    training_end(axes, rows[0])
    keep_in_view(curves["truth"][:, k], axes.get_ylim, axes.set_ylim)
    axes.set(title=heading(task), xlabel="time [s]", ylabel=TASKS[task].states[k])


def _orbit(axes, task: str, k: int, rows: list[Result]):
    """Both bodies in space; their starts are named."""
    curves, bodies = rows[0].curves, {"q1": slice(k, k + 2), "q2": slice(k + 2, k + 4)}
    for body, xy in bodies.items():
        axes.plot(*curves["truth"][:, xy].T, **TRUTH)
        axes.plot(*curves["recorded"][:, xy].T, "k.", ms=2, label="recorded")
        for method, group in by_method([r for r in rows if r.finished]).items():
            style = METHODS[method]
            path = tame(group[0].curves["mean"])[thin(curves["times"]), xy]
            axes.plot(*path.T, color=style.colour, ls=style.dash, label=style.title)
        axes.annotate(body, curves["truth"][0, xy], (5, 5), textcoords="offset points", weight="bold")
    keep_in_view(curves["truth"][:, 4::2], axes.get_xlim, axes.set_xlim)
    keep_in_view(curves["truth"][:, 5::2], axes.get_ylim, axes.set_ylim)
    axes.set(title=heading(task), xlabel="x", ylabel="y", aspect="equal")


@rc_context(STYLE)
def uncertainty(results: list[Result]) -> Drawn | None:
    """Bands of the first trial's five rollouts."""
    found = having(chosen(results, method="sgpd"), "std", SYSTEMS)
    places = _places(found)
    if not places:
        return None
    figure, panels = grid(len(places))
    for axes, (task, k) in zip(panels, places, strict=True):
        _band(axes, task, k, found[task][0])
    legend(figure, panels)
    shown = [rows[0] for rows in found.values()]
    caption = (
        "SGPD: mean and two standard deviations of 5 rollouts, as the supplement defines them; of the two-body "
        f"problem one coordinate of eight. {CLIPPED} {trials_of(shown)}"
    )
    return Drawn(figure, "Uncertainty", caption, "Truth within the band of two standard deviations. " + _inside(shown))


def _band(axes, task: str, k: int, result: Result):
    curves, style = result.curves, METHODS["sgpd"]
    keep = thin(curves["times"])
    times, mean, std = curves["times"][keep], tame(curves["mean"])[keep, k], tame(curves["std"])[keep, k]
    axes.fill_between(times, mean - 2 * std, mean + 2 * std, color=style.colour, alpha=0.25, lw=0, label="± 2 std")
    line(axes, times, np.ma.filled(mean, np.nan), style, label="mean of 5 rollouts")
    axes.plot(times, curves["truth"][keep, k], color="k", lw=0.9, ls=(0, (4, 2)), label="truth")
    training_end(axes, result)
    keep_in_view(curves["truth"][:, k], axes.get_ylim, axes.set_ylim)
    axes.set(title=heading(task), xlabel="time [s]", ylabel=TASKS[task].states[k])


def _inside(shown: list[Result]) -> str:
    sentences = []
    for result in shown:
        mean, std, truth = (tame(result.curves[key]) for key in ("mean", "std", "truth"))
        share, widest = float((abs(mean - truth) <= 2 * std).mean()), size(std)
        percent = f"{100 * share:.0f} %"
        sentences.append(f"{heading(result.row['task'])}: {percent} of all values; std up to {widest}.")
    return " ".join(sentences)


FIGURES: MappingProxyType[str, Callable[[list[Result]], Drawn | None]] = MappingProxyType(
    {
        "l2-over-time": l2_over_time,
        "states": states,
        "determinant": conserved.determinant,
        "invariant": conserved.invariant,
        "energy": conserved.energy,
        "uncertainty": uncertainty,
        "heun": transfer.heun,
    }
)
