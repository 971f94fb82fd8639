"""Section 1: the recording, how the model sees it, and what comes next."""

import numpy as np

from sgpd.data import Run
from sgpd.data.gaps import longest_bridged
from sgpd.judging import HeldOut
from sgpd.models import Forecast, observed_interval
from sgpd.plots.marks import (
    BLUE,
    FREE_SCALE,
    GREEN,
    INK,
    MOST_PATHS,
    MOST_POINTS,
    VERMILION,
    Band,
    Dots,
    Line,
    Mark,
    Panel,
    Plot,
    Rule,
    Shade,
    labelled,
    padded,
    stretches,
    thinned,
)
from sgpd.report.content import Block, Box, Figure, Reading, Section
from sgpd.report.material import Material, View
from sgpd.wording import number, with_unit

LEVELS = ((0.95, 0.18), (0.5, 0.3))  # with the opacity of the band
OBSERVED, SINGLE = "observation band", "single paths"
MOST_COORDINATES = 8
MANY_PANELS = 4  # above which lines are thinned more, to keep the page small

READING = Reading(
    shown="Dots are recorded values, diamonds those that the fit did not see. Green is the recording as the model "
    "sees it, blue the forecast: its best estimate, and bands that hold half and 95 % of the drawn paths. The bands "
    "are of the state; the observation band adds the noise of a recorded value. Grey begins where nothing was "
    "compared.",
    good="Diamonds scatter around the line, half of them in the dark band; the bands widen slowly; amplitude and "
    "shape go on as recorded.",
    bad="Diamonds leave the bands together; amplitudes grow or shrink although the recording's do not (or the "
    "reverse); the bands fill the whole range soon after the end.",
    do="If the recording decays and the forecast does not, the structure forbids the loss: try `free`. If bands fill "
    "the range, record longer, or use a stricter structure. If paths fly off, see 'my forecast explodes' in the "
    "documentation.",
)


def forecast_section(material: Material) -> Section:
    """Every run that the page shows, one plot each."""
    blocks: list[Block] = []
    if material.views:
        plots = tuple(_plot(material, view) for view in material.views)
        blocks.append(Figure("forecast", "Recording and forecast", plots, _caption(material), READING, "Run"))
    if material.lost:
        text = f"No path stayed finite for run {', '.join(material.lost)}. Use another structure or a shorter step."
        blocks.append(Box(text, "FAIL"))
    return Section("forecast", "Forecast", tuple(blocks))


def _shown(material: Material) -> list[int]:
    return sorted(material.moving[:MOST_COORDINATES])


def _plot(material: Material, view: View) -> Plot:
    shown = _shown(material)
    toggles = (OBSERVED, SINGLE, FREE_SCALE)
    panels = tuple(_panel(material, view, k) for k in shown)
    return Plot(panels, _alt(material, view), f"run {view.name}", 1, toggles, 300 if len(shown) < 3 else 190)


def _panel(material: Material, view: View, k: int) -> Panel:
    model, ahead, shown = material.model, view.ahead, _shown(material)
    most = MOST_POINTS if len(shown) <= MANY_PANELS else MOST_POINTS // 2
    marks = _forecast_marks(ahead, k, most, float(model.noise_std[k]))
    rules: tuple[Rule, ...] = ()
    if view.fitted is not None:
        marks += _smoothed_marks(view.fitted.smoothed, k, longest_bridged(model.step))
        marks.append(_dots(view.fitted.run, k, "recorded", INK, "circle", 4))
        end = "end of recording" if view.held is None else "end of what was fitted"
        rules = (Rule(view.end, end if k == shown[0] else ""),)
    if view.held is not None:
        marks.append(_dots(view.held, k, "held out", VERMILION, "diamond", 6))
    checked, last = view.end + material.checked_to, float(ahead.times[-1])
    shades = (Shade(checked, last),) if checked < last else ()
    x, y = material.time if k == shown[-1] else "", labelled(model.names[k], model.units[k])
    return Panel(x, y, tuple(marks), rules=rules, shades=shades, span=_span(view, k))


def _span(view: View, k: int) -> tuple[float, float]:
    """What was recorded and what is expected, up to three times the recorded range."""
    recorded = view.recorded(k)
    expected = np.clip(view.ahead.best[:, k], *padded(recorded, 1.0))
    return padded(np.concatenate([recorded, expected[np.isfinite(expected)]]), 0.2)


def _dots(run: Run, k: int, label: str, colour: str, symbol: str, size: int) -> Dots:
    seen = np.flatnonzero(run.observed[:, k])
    keep = seen[thinned(len(seen))] if len(seen) else seen
    return Dots(run.times[keep], run.states[keep, k], label, colour, symbol, size)


def _forecast_marks(ahead: Forecast, k: int, most: int, noise: float) -> list[Mark]:
    keep = thinned(len(ahead.times), most)
    t = ahead.times[keep]
    marks: list[Mark] = []
    low, high = observation_band(ahead, keep, k, noise)
    marks.append(Band(t, low, high, "95 % of recorded values", GREEN, 0.12, OBSERVED))
    for level, opacity in LEVELS:
        low, high = (edge[keep, k] for edge in ahead.interval(level))
        marks.append(Band(t, low, high, f"{100 * level:.0f} % band", BLUE, opacity))
    few = thinned(len(ahead.times), most // 4)
    for path in ahead.paths[ahead.ok][:MOST_PATHS]:
        marks.append(Line(ahead.times[few], path[few, k], "single path", BLUE, width=0.6, opacity=0.5, group=SINGLE))
    marks.append(Line(t, ahead.best[keep, k], "forecast", BLUE, width=1.8))
    return marks


def observation_band(forecast: Forecast, rows: np.ndarray, k: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """95 % of recorded values."""
    return observed_interval(forecast.paths[forecast.ok][:, rows, k], noise, 0.95)


def _smoothed_marks(smoothed: Forecast, k: int, gap: float) -> list[Mark]:
    low, high = smoothed.interval(0.95)
    marks: list[Mark] = []
    for part in stretches(smoothed.times, gap):
        keep = np.arange(part.start, part.stop)[thinned(part.stop - part.start)]
        t = smoothed.times[keep]
        marks.append(Band(t, low[keep, k], high[keep, k], "smoothed, 95 % band", GREEN, 0.3))
        marks.append(Line(t, smoothed.best[keep, k], "smoothed", GREEN))
    return marks


def _widths(view: View, k: int) -> tuple[float, float]:
    """How wide the 95 % band is at the start of a forecast and at its end: means over a twentieth of it."""
    low, high = view.ahead.interval(0.95)
    width, part = (high - low)[:, k], max(len(low) // 20, 1)
    return float(width[:part].mean()), float(width[-part:].mean())


def _alt(material: Material, view: View) -> str:
    model, parts = material.model, []
    end = material.lasting(view.ahead.times[-1] - view.end)
    for k in _shown(material):
        low, high = padded(view.recorded(k), 0.0)
        first, last = map(number, _widths(view, k))
        between = with_unit(f"{number(low)} and {number(high)}", model.units[k])
        parts.append(
            f"{model.names[k]} was recorded between {between}; its 95 % band widens from {first} to "
            f"{with_unit(last, model.units[k])}"
        )
    return f"Forecast of run {view.name}, {end} ahead. {'. '.join(parts)}."


def _caption(material: Material) -> str:
    view, k = material.views[0], material.moving[0]
    first, last = map(number, _widths(view, k))
    spans = number(np.ptp(padded(view.recorded(k), 0.0)))
    words = [
        f"{int(view.ahead.ok.sum())} paths, {material.lasting(view.ahead.times[-1] - view.end)} past the end of the "
        f"recording. The 95 % band of {material.model.names[k]} is {first} wide at first and {last} at the end (the "
        f"recording spans {with_unit(spans, material.model.units[k])}).",
        f"Compared with held-out values up to {material.lasting(material.checked_to)} ahead; grey is untested."
        if material.held_out is not None
        else "Nothing was held out, so all of the forecast is untested (grey).",
    ]
    total = len(material.data.runs) + (0 if material.held_out is None else len(_new_runs(material, material.held_out)))
    if len(material.views) < total:
        words.append(f"{len(material.views)} of {total} runs are shown.")
    if max(len(view.ahead.times) for view in material.views) > MOST_POINTS or len(material.moving) > MANY_PANELS:
        words.append("Lines are thinned for the screen.")
    if len(material.moving) > MOST_COORDINATES:
        words.append(f"The {MOST_COORDINATES} most moving coordinates are shown.")
    return " ".join(words)


def _new_runs(material: Material, held: HeldOut) -> list[str]:
    return [name for name in held.data.run_names if name not in material.data.run_names]
