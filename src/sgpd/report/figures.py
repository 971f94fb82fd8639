"""Figures for print, by matplotlib."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sgpd.data import Trajectories
from sgpd.models import Forecast
from sgpd.writing import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Readable on white and in grey; dash and marker vary too.
BAND, RECORDED, TRUE = "#0072B2", "#000000", "#D55E00"


def forecast_figure(forecast: Forecast, recording: Trajectories, truth: np.ndarray | None = None) -> "Figure":
    """Each coordinate over time: recording, forecast with its 50 and 95 % bands, and the truth where it is known.

    For two coordinates also the phase portrait.
    """
    from matplotlib.figure import Figure

    d = len(forecast.names)
    figure = Figure(figsize=(10, 1.2 + 2.0 * d), layout="constrained")
    columns = (
        figure.subplots(d, 2, width_ratios=[3, 1.3], squeeze=False) if d == 2 else figure.subplots(d, 1, squeeze=False)
    )
    for k in range(d):
        _coordinate(columns[k, 0], k, forecast, recording, truth)
    columns[-1, 0].set_xlabel("time")
    if d == 2:
        for row in columns[:, 1]:
            row.remove()
        _phase(figure.add_subplot(columns[0, 0].get_gridspec()[:, 1]), forecast, recording, truth)
    handles, labels = columns[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return figure


def _coordinate(axes, k: int, forecast: Forecast, recording: Trajectories, truth: np.ndarray | None):
    end = max(float(run.times[-1]) for run in recording.runs)
    for level, alpha in ((0.95, 0.2), (0.5, 0.35)):
        low, high = forecast.interval(level)
        axes.fill_between(
            forecast.times, low[:, k], high[:, k], color=BAND, alpha=alpha, lw=0, label=f"{level:.0%} band"
        )
    axes.plot(forecast.times, forecast.best[:, k], color=BAND, lw=1.2, label="forecast")
    if truth is not None:
        axes.plot(forecast.times, truth[:, k], color=TRUE, lw=1, ls=(0, (4, 2)), label="truth")
    for index, run in enumerate(recording.runs):
        label = None if index else "recorded"
        axes.plot(run.times, run.states[:, k], ".", color=RECORDED, ms=3, label=label)
    axes.axvline(end, color="grey", lw=0.8)
    axes.annotate(
        "end of what was fitted",
        (end, 1.0),
        (3, -9),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        size=7,
        color="grey",
    )
    unit = f" [{forecast.units[k]}]" if forecast.units[k] else ""
    axes.set_ylabel(forecast.names[k] + unit)
    axes.margins(x=0)


def _phase(axes, forecast: Forecast, recording: Trajectories, truth: np.ndarray | None):
    for path in forecast.paths[forecast.ok][:3]:
        axes.plot(path[:, 1], path[:, 0], color=BAND, lw=0.5, alpha=0.6)
    if truth is not None:
        axes.plot(truth[:, 1], truth[:, 0], color=TRUE, lw=1, ls=(0, (4, 2)))
    for run in recording.runs:
        axes.plot(run.states[:, 1], run.states[:, 0], ".", color=RECORDED, ms=3)
    axes.set_xlabel(forecast.names[1])
    axes.set_ylabel(forecast.names[0])
    axes.set_title("phase portrait, three paths", size=9)


def save_figure(figure: "Figure", path: Path):
    """Write a PNG, whole or not at all."""
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=150)
    write_whole(path, png.getvalue())
