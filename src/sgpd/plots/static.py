"""A plot for paper: the same marks by matplotlib, for print, for browsers without scripts and for failed plots."""

import io
import re

import numpy as np

from sgpd.plots.marks import INK, Arrows, Band, Dots, Levels, Line, Mark, Panel, Plot, thinned

POINTS = 500  # of one line: a page is about as many pixels wide
_MARKERS = {"circle": "o", "diamond": "D", "square": "s", "triangle-up": "^", "circle-open": "o", "x": "x"}
_STYLES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}


def to_svg(plot: Plot) -> str:
    """The plot before any button is pressed, on white."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    columns = min(plot.columns, len(plot.panels))
    rows = -(-len(plot.panels) // columns)
    # Text stays text, so that a page remains small and searchable; no date, so that the same report is the same file.
    with rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9, "svg.hashsalt": "sgpd"}):
        figure = Figure(figsize=(8, 0.5 + rows * plot.height / 115), layout="constrained", facecolor="white")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax, panel in zip(axes, plot.panels, strict=False):
            _draw(ax, panel, plot.toggles)
        for ax in axes[len(plot.panels) :]:
            ax.remove()
        handles = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
        if handles:
            figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=4, frameon=False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    # A hundredth of a point is finer than any printer.
    return re.sub(r"(\d\.\d\d)\d+", r"\1", text.getvalue()).replace("\n", " ")


def _draw(ax, panel: Panel, hidden: tuple[str, ...]):
    for mark in panel.marks:
        if getattr(mark, "group", "") not in hidden:
            _mark(ax, mark)
    if panel.log:
        ax.set_yscale("log")
    if panel.span is not None:
        ax.set_ylim(*panel.span)
    if panel.x_span is not None:
        ax.set_xlim(*panel.x_span)
    limits = ax.get_xlim()
    for shade in panel.shades:
        ax.axvspan(shade.since, shade.until, facecolor="#888888", alpha=0.12, hatch="//", edgecolor="#888888", lw=0)
    if panel.shades:
        ax.set_xlim(*limits)
    for rule in panel.rules:
        _rule(ax, rule)
    ax.set(xlabel=panel.x, ylabel=panel.y)
    ax.set_title(panel.title, size=9)


def _rule(ax, rule):
    across = ax.axvline if rule.axis == "x" else ax.axhline
    across(rule.at, color="grey", lw=0.8)
    if rule.text:
        place, coordinates = ((rule.at, 1.0), ("data", "axes fraction"))
        if rule.axis == "y":
            place, coordinates = (0.0, rule.at), ("axes fraction", "data")
        ax.annotate(rule.text, place, (3, -9), xycoords=coordinates, textcoords="offset points", size=7, color="grey")


def _mark(ax, mark: Mark):
    label = mark.label or None
    match mark:
        case Line():
            keep = thinned(len(mark.x), POINTS) if np.isfinite(mark.y).all() else slice(None)
            style = dict(color=_colour(mark.colour), lw=0.8 * mark.width, ls=_STYLES[mark.dash], alpha=mark.opacity)
            ax.plot(mark.x[keep], mark.y[keep], label=label, **style)
        case Dots():
            keep = thinned(len(mark.x), POINTS)
            hollow = dict(fillstyle="none") if mark.symbol.endswith("-open") else {}
            style = dict(color=_colour(mark.colour), ms=0.6 * mark.size, alpha=mark.opacity, ls="", **hollow)
            ax.plot(mark.x[keep], mark.y[keep], _MARKERS[mark.symbol], label=label, **style)
        case Band():
            keep = thinned(len(mark.x), POINTS)
            area = (mark.x[keep], mark.low[keep], mark.high[keep])
            ax.fill_between(*area, color=_colour(mark.colour), alpha=mark.opacity, lw=0, label=label)
        case Arrows():
            scale = dict(angles="xy", scale_units="xy", scale=1, width=0.0025, color=_colour(mark.colour))
            ax.quiver(mark.x, mark.y, mark.dx, mark.dy, label=label, **scale)
        case Levels():
            _levels(ax, mark)


def _colour(colour: str) -> str:
    return "#000000" if colour == INK else colour


def _levels(ax, mark: Levels):
    low, high = mark.range
    levels = np.linspace(low, high if high > low else low + 1.0, 15)
    ax.contourf(mark.x, mark.y, mark.z, levels, cmap="cividis", alpha=0.3, extend="max")
    inside = np.ma.array(mark.z, mask=~mark.reached)
    ax.figure.colorbar(ax.contourf(mark.x, mark.y, inside, levels, cmap="cividis"), ax=ax, label=mark.label)
