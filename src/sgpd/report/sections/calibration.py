"""Section 6: whether held-out values fall into the bands as often as they should."""

import numpy as np

from sgpd.judging import HeldOut
from sgpd.judging.overall import HOLD_OUT
from sgpd.plots.marks import (
    BLUE,
    CYCLE,
    DASHES,
    INK,
    SYMBOLS,
    Band,
    Dots,
    Line,
    Mark,
    Panel,
    Plot,
    Rule,
    labelled,
    thinned,
)
from sgpd.report.content import Box, Figure, Reading, Section, Table
from sgpd.report.material import Material
from sgpd.wording import share

LEVELS = (0.5, 0.8, 0.95)
BINS = 8

READING = Reading(
    shown="Left: for every held-out value, the probability that the forecast put below it; their distribution should "
    "be the diagonal, and lie in the band for a sample of the effective size. Right: the share of "
    "held-out values inside the 50, 80 and 95 % bands (with the noise of a recorded value), by time since the "
    "forecast began.",
    good="The step curve inside the band; shares near their thin lines at every lead.",
    bad="A curve steep in the middle: bands too wide. Steep at both ends: too narrow. Shifted up or down: the "
    "forecast lies to one side. Shares that fall with the lead: wrong structure or a drift.",
    do="If bands are too narrow, look at residuals and the recording's energy first: a structure that is not true of "
    "the data makes bands that are too sure. With few effective samples, hold out more, or record several runs.",
)


def calibration_section(material: Material) -> Section:
    """The figures, or how to get them."""
    held = material.held_out
    if held is None and material.assessment.scores is not None:
        text = "Calibration is not drawn, because the forecasts behind the checks of section 7 are not at hand."
        return Section("calibration", "Calibration", (Box(text), _table(material)))
    if held is None:
        text = f"Calibration was not tested, because every recorded value was fitted. {HOLD_OUT}"
        return Section("calibration", "Calibration", (Box(text, "NOT MEASURED"),))
    pit = np.concatenate([one.ravel() for one in held.pit])
    if not np.isfinite(pit).any():
        text = "Calibration was not tested, because the held-out part has no recorded value."
        return Section("calibration", "Calibration", (Box(text, "NOT MEASURED"),))
    plot = Plot((_distribution(held, pit), _by_lead(material, held)), _alt(held, pit), columns=2, height=340)
    scores = material.assessment.scores
    said = "" if scores is None else " ".join(check.sentence for check in scores.checks)
    caption = f"{_alt(held, pit)} {said}"
    title = f"Held-out values in their bands: {held.sample_words}"
    figure = Figure("calibration", title, (plot,), caption, READING)
    return Section("calibration", "Calibration", (figure, _table(material)))


def ecdf_margin(size: int) -> float:
    """How far the empirical distribution of so many independent values may be from the true one, at any point, 19 times
    of 20 (Kolmogorov).
    """
    from scipy.stats import kstwo  # slow to import

    return float(kstwo.ppf(0.95, size))


def _distribution(held: HeldOut, pit: np.ndarray) -> Panel:
    values = np.sort(pit[np.isfinite(pit)])
    below = np.arange(1, len(values) + 1) / len(values)
    keep = thinned(len(values), 1000)
    grid = np.linspace(0, 1, 51)
    margin = ecdf_margin(held.sample_size)
    marks: tuple[Mark, ...] = (
        Band(
            grid, np.maximum(grid - margin, 0), np.minimum(grid + margin, 1), "95 % of calibrated forecasts", BLUE, 0.18
        ),
        Line(grid, grid, "calibrated", INK, "dot", 1),
        Line(values[keep], below[keep], "held-out values", BLUE, width=2),
    )
    return Panel("probability below the value", "share of values", marks, "PIT distribution", span=(0.0, 1.0))


def coverage_by_lead(held: HeldOut, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean lead, share inside the band of that level, and number of values, in bins with about as many values each."""
    lead = np.concatenate([np.repeat(t, p.shape[1]) for t, p in zip(held.leads, held.pit, strict=True)])
    pit = np.concatenate([p.ravel() for p in held.pit])
    lead, pit = lead[np.isfinite(pit)], pit[np.isfinite(pit)]
    order = np.argsort(lead, kind="stable")
    bins = [b for b in np.array_split(order, min(BINS, max(len(order) // 5, 1))) if len(b)]
    inside = np.abs(2 * pit - 1) <= level
    middle, shares = (np.array([values[b].mean() for b in bins]) for values in (lead, inside))
    return middle, shares, np.array([len(b) for b in bins])


def _by_lead(material: Material, held: HeldOut) -> Panel:
    marks: list[Mark] = []
    for level, colour, dash, symbol in zip(LEVELS, CYCLE, DASHES, SYMBOLS, strict=False):
        middle, inside, _ = coverage_by_lead(held, level)
        marks.append(Line(middle, inside, f"{share(level)} band", colour, dash))
        marks.append(Dots(middle, inside, f"{share(level)} band", colour, symbol, 7))
    rules = tuple(Rule(level, share(level), "y") for level in LEVELS)
    title = f"coverage by lead time, {held.sample_words}"
    return Panel(
        labelled("time since the forecast began", material.data.time_unit),
        "share inside",
        tuple(marks),
        title,
        rules,
        span=(0.0, 1.05),
    )


def _alt(held: HeldOut, pit: np.ndarray) -> str:
    shares = ", ".join(f"{share(held.coverage(level))} lie in the {share(level)} band" for level in LEVELS)
    count = int(np.isfinite(pit).sum())
    return f"Of {count} held-out values ({held.sample_words}), {shares}."


def _table(material: Material) -> Table:
    rows = tuple((name, share(error)) for name, error in material.assessment.error.items())
    return Table(
        "Rollout error on held-out values", ("coordinate", "rms error over standard deviation of the recording"), rows
    )
