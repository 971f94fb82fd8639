"""What the paper's figures share: a grid of panels, lines and bands by method, views that no divergence can ruin."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sgpd.paper.output.summaries import number
from sgpd.paper.results import METHODS, TASKS, Method, Result, Trial, chosen, trial_of

STYLE: dict = {"font.size": 9, "axes.titlesize": 9, "legend.fontsize": 9, "axes.linewidth": 0.6, "lines.linewidth": 1.1}
TRUTH = {"color": "0.15", "lw": 2.4, "alpha": 0.35, "label": "truth"}
SYSTEMS = [task for task in TASKS if TASKS[task].states]
LARGE = 1e12  # what diverged is drawn no further
POINTS = 1000  # of a line


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure and its words."""

    figure: Figure
    title: str
    caption: str
    alt: str


def tame(values: np.ndarray) -> np.ma.MaskedArray:
    """Values that can be drawn and averaged whatever a rollout did."""
    return np.ma.masked_invalid(np.clip(np.asarray(values, float), -LARGE, LARGE))


def thin(times: np.ndarray) -> np.ndarray:
    """Indices of at most a thousand points, the ends among them."""
    return np.unique(np.linspace(0, len(times) - 1, min(len(times), POINTS)).round().astype(int))


def grid(panels: int, columns: int = 2, height: float = 2.1, width: float = 8.0) -> tuple[Figure, list]:
    """A figure with so many panels; the last places of the grid stay empty."""
    columns = min(columns, panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(width, 0.5 + height * rows), layout="constrained")
    places = list(figure.subplots(rows, columns, squeeze=False).flat)
    for place in places[panels:]:
        place.remove()
    return figure, places[:panels]


def log_axis(axes, low: float, high: float):
    """A logarithmic axis that shows what is drawn, but not below or above these values."""
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.set_ylim(max(axes.get_ylim()[0], low), min(axes.get_ylim()[1], high))


def legend(figure: Figure, panels: list):
    """One legend above all panels."""
    handles = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=len(handles), frameon=False)


def line(axes, times: np.ndarray, values: np.ndarray, method: Method, **changes):
    """A method's line, in its colour and dash."""
    keep = thin(times)
    drawn = {"color": method.colour, "ls": method.dash, "label": method.title} | changes
    axes.plot(times[keep], tame(values)[keep], **drawn)


def spread(axes, times: np.ndarray, values: np.ma.MaskedArray, method: Method, centre: Callable = np.ma.median):
    """The centre of several curves as a line, their whole range as a band."""
    keep = thin(times)
    low, high = values.min(axis=0)[keep], values.max(axis=0)[keep]
    axes.fill_between(times[keep], low, high, color=method.colour, alpha=0.18, lw=0)
    line(axes, times, np.ma.filled(centre(values, axis=0), np.nan), method)


def training_end(axes, result: Result):
    """The training horizon."""
    end = float(result.curves["recorded_times"][-1])
    axes.axvline(end, color="0.5", lw=0.9, ls=(0, (2, 2)), label="end of training")
    axes.margins(x=0)


def keep_in_view(truth: np.ndarray, get: Callable, put: Callable):
    """Limits of one axis: what is drawn, but at most twice the truth's range."""
    low, high = get()
    middle, reach = (truth.max() + truth.min()) / 2, np.ptp(truth)
    put(max(low, middle - reach), min(high, middle + reach))


def heading(task: str) -> str:
    """`(i) pendulum`."""
    return f"{TASKS[task].label} {TASKS[task].title}"


def first_trial(results: list[Result], task: str) -> list[Result]:
    """The results of a task's first trial."""
    found = chosen(results, task=task)
    return chosen(found, **trial_of(found[0].row)._asdict()) if found else []


def of_tasks(results: list[Result], tasks: Iterable[str]) -> list[Result]:
    """All results of some tasks, failed ones too."""
    return [result for task in tasks for result in chosen(results, task=task)]


def by_method(results: list[Result]) -> dict[str, list[Result]]:
    """Results by method, in the paper's order."""
    groups = {method: chosen(results, method=method) for method in METHODS}
    return {method: found for method, found in groups.items() if found}


def trials_of(results: list[Result]) -> str:
    """`Recordings 0, 1, 2; training 0.`, and what is missing because it failed."""
    kinds = [f"{kind}{_numbers({result.row[kind] for result in results})}" for kind in Trial._fields]
    return f"{'; '.join(kinds).capitalize()}.{_failures(results)}"


def _numbers(found: set[int]) -> str:
    return f"{'s' if len(found) > 1 else ''} {', '.join(map(str, sorted(found)))}"


def _failures(results: list[Result]) -> str:
    parts = []
    for task in TASKS:
        for method, found in by_method(chosen(results, task=task)).items():
            failed = sum(not result.finished for result in found)
            if failed:
                parts.append(f"{METHODS[method].title} on {heading(task)} in {failed} of {len(found)}")
    return f" Not drawn, for no rollout stayed finite: {'; '.join(parts)}." if parts else ""


def errors(results: list[Result]) -> np.ma.MaskedArray:
    """|X - mean| over time, one row a result."""
    return np.ma.stack([np.ma.sqrt((tame(r.curves["mean"] - r.curves["truth"]) ** 2).sum(axis=1)) for r in results])


def l2(results: list[Result]) -> str:
    """The L2 error, mean over results, in words."""
    return size(np.ma.sqrt((errors(results) ** 2).mean(axis=1)).mean())


def size(values: np.ndarray | float) -> str:
    """The largest of some sizes in words; how far a divergence went is no number worth printing."""
    largest = float(np.ma.max(values))
    return "over a million" if largest > 1e6 else number(largest, 2)


def stacked(results: list[Result], key: str) -> np.ma.MaskedArray:
    """The curves of this name of all results, one row a draw."""
    return tame(np.concatenate([np.atleast_2d(result.curves[key]) for result in results]))


def having(results: list[Result], key: str, tasks: list[str]) -> dict[str, list[Result]]:
    """By task, the results that have these curves; tasks without are left out."""
    found = {task: [r for r in chosen(results, task=task) if key in r.curves] for task in tasks}
    return {task: rows for task, rows in found.items() if rows}


def said_of(results: list[Result], tasks: list[str], say: Callable[[list[Result]], str]) -> str:
    """A finding for each method on each task: `Pendulum: SGPD 0.4, Euler 0.5.`"""
    sentences = []
    for task in tasks:
        groups = by_method(chosen(results, task=task)).items()
        sentences.append(f"{heading(task)}: {', '.join(f'{METHODS[m].title} {say(found)}' for m, found in groups)}.")
    return " ".join(sentences)
