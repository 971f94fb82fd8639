"""Section 5: what the model leaves over of the recording."""

from typing import NamedTuple

import numpy as np

from sgpd.checks import CheckId
from sgpd.data.smoothing import noise_std
from sgpd.inference.residuals import autocorrelation
from sgpd.plots.marks import BLUE, CYCLE, SYMBOLS, Band, Dots, Line, Mark, Panel, Plot, Rule, thinned
from sgpd.report.content import Box, Figure, Reading, Section, Table
from sgpd.report.material import Fitted, Material
from sgpd.wording import number, share, with_unit

LAGS = 30
SHOWN = 4  # coordinates in one plot

READING = Reading(
    shown="Recorded minus smoothed values, in standard deviations of the learned noise; and how strongly residuals "
    "some values apart resemble one another. The band is where 95 % of the correlations of white noise lie.",
    good="A cloud without a pattern, nearly all of it between -2 and 2; correlations inside the band, one in twenty "
    "outside.",
    bad="Waves, drifts or a funnel in the cloud; correlations that start high and fall slowly or swing: the model "
    "misses something that the recording does.",
    do="Try another structure (friction: `free`), a shorter step by a finer recording, or look at the disturbance "
    "itself.",
)


class Left(NamedTuple):
    """Standardised residuals of one run."""

    times: np.ndarray
    values: np.ndarray  # (n, d), NaN where nothing was recorded


def residuals_section(material: Material) -> Section:
    """Over time, against one another, and beside the recording's roughness."""
    views = [(view.name, view.fitted) for view in material.views if view.fitted is not None]
    if not views:
        text = "There are no residuals, because no smoothed path stayed finite."
        return Section("residuals", "Residuals", (Box(text, "FAIL"),))
    left = [left_over(fitted, material.model.noise_std) for _, fitted in views]
    plots = tuple(_plot(material, name, one) for (name, _), one in zip(views, left, strict=True))
    caption = plots[0].alt
    said = material.assessment.sentences(CheckId.RESIDUALS, CheckId.NOISE)
    figure = Figure("residuals", "Standardised residuals", plots, " ".join([caption, *said]), READING, "Run")
    return Section("residuals", "Residuals", (figure, _table(material, left)))


def left_over(fitted: Fitted, noise: np.ndarray) -> Left:
    """Recorded minus smoothed, in units of the noise, at the rows that the fit used."""
    run, smoothed = fitted
    rows = np.minimum(np.searchsorted(smoothed.times, run.times), len(smoothed.times) - 1)
    same = smoothed.times[rows] == run.times
    return Left(run.times[same], (run.states[same] - smoothed.best[rows[same]]) / noise[None])


def _plot(material: Material, name: str, left: Left) -> Plot:
    shown = sorted(material.moving[:SHOWN])
    names = material.model.names
    cloud: list[Mark] = []
    lines: list[Mark] = []
    said, pairs = [], np.ones(1)
    for k, colour, symbol in zip(shown, CYCLE, SYMBOLS, strict=False):
        seen = np.flatnonzero(np.isfinite(left.values[:, k]))
        if len(seen) < 3:
            continue
        keep = seen[thinned(len(seen))]
        cloud.append(Dots(left.times[keep], left.values[keep, k], names[k], colour, symbol, 4, 0.7))
        correlation, pairs = autocorrelation([left.values[seen, k]], LAGS)
        lags = np.arange(1, len(correlation) + 1)
        lines.append(Line(lags, correlation, names[k], colour, width=1))
        lines.append(Dots(lags, correlation, names[k], colour, symbol, 5))
        inside = np.mean(np.abs(left.values[seen, k]) < 1.96)
        said.append(f"{names[k]}: {share(inside)} within 1.96")
    lags = np.arange(1, len(pairs) + 1, dtype=float)
    edge = 1.96 / np.sqrt(np.maximum(pairs, 1))
    panels = (
        Panel(material.time, "residual / noise", tuple(cloud), rules=(Rule(-1.96, "", "y"), Rule(1.96, "", "y"))),
        Panel("values apart", "correlation", (Band(lags, -edge, edge, "95 % of white noise", BLUE, 0.15), *lines)),
    )
    alt = f"Residuals of run {name}. {'; '.join(said)}."
    return Plot(panels, alt, f"run {name}", columns=2, height=320)


def _table(material: Material, left: list[Left]) -> Table:
    model, rough = material.model, noise_std(material.data)
    together = np.concatenate([one.values for one in left])
    parts = zip(model.names, model.units, model.noise_std, rough, together.T, strict=True)
    rows = tuple(
        (name, with_unit(number(a), unit), with_unit(number(b), unit), number(np.sqrt(np.nanmean(column**2))))
        for name, unit, a, b, column in parts
    )
    head = ("coordinate", "noise learned", "roughness from row to row", "rms residual / noise")
    return Table("Learned noise beside the recording's own roughness: they should be alike", head, rows)
