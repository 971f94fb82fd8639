"""A plot for the browser: plotly's traces, with arrays in binary; the page's script lays the panels out."""

import base64
import json
from collections.abc import Iterator

import numpy as np

from sgpd.plots.marks import Arrows, Band, Dots, Levels, Line, Mark, Panel, Plot

CONTOURS = 14


def to_json(plots: dict[str, Plot]) -> str:
    """Everything that the page's script needs. Traces refer to arrays by number: most share their times."""
    arrays: dict[str, tuple[int, dict]] = {}
    drawn = {name: _plot(plot) for name, plot in plots.items()}
    for trace in (trace for plot in drawn.values() for trace in plot["traces"]):
        for axis in [axis for axis in ("x", "y", "z") if axis in trace]:  # not as a set has them: the same page again
            array = trace[axis]
            trace[axis] = arrays.setdefault(json.dumps(array), (len(arrays), array))[0]
    content = {"arrays": [array for _, array in arrays.values()], "plots": drawn}
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def _plot(plot: Plot) -> dict:
    traces, named = [], set()
    for index, panel in enumerate(plot.panels):
        for trace in (trace for mark in panel.marks for trace in _traces(mark)):
            shown = {"panel": index, "visible": trace["meta"] not in plot.toggles, "showlegend": _first(trace, named)}
            traces.append(trace | shown)
    panels = [_panel(panel) for panel in plot.panels]
    return {"columns": plot.columns, "height": plot.height, "panels": panels, "traces": traces}


def _first(trace: dict, named: set[str]) -> bool:
    """Whether this is the first trace with its name: one entry in the legend is enough."""
    label = trace["name"]
    if not label or label in named or trace["type"] == "contour":
        return False
    named.add(label)
    return True


def _panel(panel: Panel) -> dict:
    return {
        "x": panel.x,
        "y": panel.y,
        "title": panel.title,
        "log": panel.log,
        "span": panel.span,
        "x_span": panel.x_span,
        "rules": [{"at": float(r.at), "text": r.text, "axis": r.axis} for r in panel.rules],
        "shades": [[float(s.since), float(s.until)] for s in panel.shades],
    }


def packed(values: np.ndarray) -> dict:
    """An array as plotly reads it: single precision where a screen cannot tell the difference."""
    values = np.asarray(values, float)
    finite = values[np.isfinite(values)]
    span, size = (np.ptp(finite), np.abs(finite).max()) if finite.size else (0.0, 0.0)
    single = 1e-30 < size < 1e30 and size < 1e3 * span
    array = np.ascontiguousarray(values, dtype="<f4" if single else "<f8")
    packed = {"dtype": "f4" if single else "f8", "bdata": base64.b64encode(array.tobytes()).decode("ascii")}
    return packed if array.ndim == 1 else packed | {"shape": ",".join(map(str, array.shape))}


def _traces(mark: Mark) -> Iterator[dict]:
    match mark:
        case Line():
            yield _scatter(mark, packed(mark.x), packed(mark.y)) | {
                "mode": "lines",
                "opacity": mark.opacity,
                "line": {"color": mark.colour, "width": mark.width, "dash": mark.dash},
            }
        case Dots():
            yield _scatter(mark, packed(mark.x), packed(mark.y)) | {
                "mode": "markers",
                "opacity": mark.opacity,
                "marker": {"color": mark.colour, "size": mark.size, "symbol": mark.symbol},
            }
        case Band():
            x = np.concatenate([mark.x, mark.x[::-1]])
            y = np.concatenate([mark.high, mark.low[::-1]])
            yield _scatter(mark, packed(x), packed(y)) | {
                "mode": "lines",
                "line": {"width": 0, "color": mark.colour},
                "fill": "toself",
                "fillcolor": _faded(mark.colour, mark.opacity),
                "hoverinfo": "skip",
            }
        case Arrows():
            yield _arrows(mark)
        case Levels():
            yield from _levels(mark)


def _scatter(mark: Line | Dots | Band | Arrows, x: dict, y: dict) -> dict:
    return {"type": "scatter", "x": x, "y": y, "name": mark.label, "meta": mark.group}


def _faded(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def _arrows(mark: Arrows) -> dict:
    """One trace of short lines; only their ends carry a head, turned on the screen along the line."""
    nothing = np.full(len(mark.x), np.nan)
    x = np.stack([mark.x, mark.x + mark.dx, nothing], axis=1).ravel()
    y = np.stack([mark.y, mark.y + mark.dy, nothing], axis=1).ravel()
    head = {"symbol": "arrow", "angleref": "previous", "size": [0, 9, 0] * len(mark.x), "color": mark.colour}
    style = {"mode": "lines+markers", "line": {"color": mark.colour, "width": 1}, "marker": head, "hoverinfo": "skip"}
    return _scatter(mark, packed(x), packed(y)) | style


def _levels(mark: Levels) -> Iterator[dict]:
    low, high = mark.range
    base = {
        "type": "contour",
        "x": packed(mark.x),
        "y": packed(mark.y),
        "colorscale": "Cividis",
        "zmin": low,
        "zmax": high,
        "autocontour": False,
        "contours": {"start": low, "end": high, "size": (high - low) / CONTOURS or 1.0},
        "line": {"width": 0.5},
        "name": mark.label,
        "meta": "",
    }
    inside = np.where(mark.reached, mark.z, np.nan)
    yield base | {"z": packed(mark.z), "opacity": 0.3, "showscale": False, "hoverinfo": "skip"}
    yield base | {
        "z": packed(inside),
        "colorbar": {
            "title": {"text": mark.label, "side": "right"},
            "thickness": 12,
            "nticks": 6,
            "tickformat": ".3~g",
        },
    }
