"""Section 2: what was learned, as functions that a physicist knows: potential, kinetic energy, energy, or forces."""

import numpy as np

from sgpd.plots.marks import (
    BLUE,
    VERMILION,
    Band,
    Dots,
    Levels,
    Line,
    Mark,
    Panel,
    Plot,
    Shade,
    labelled,
    padded,
    thinned,
)
from sgpd.report.content import Block, Figure, Reading, Section, Table
from sgpd.report.material import Material
from sgpd.report.sections.cuts import (
    BEYOND,
    Curve,
    Values,
    curve,
    energies,
    integrated,
    levelled,
    line,
    near_data,
    rates,
)
from sgpd.wording import number, plus_minus, with_unit

PLANE = 41  # points along a side
MOST_COMPONENTS = 4

READING = Reading(
    shown="The line is the best estimate, the bands hold half and 95 % of the functions that agree with the "
    "recording. Energies are fixed only up to a constant: their level is 0 at the lowest point of each curve. Grey "
    "(or pale) is where nothing was recorded. With more than two coordinates these are cuts through the middle of "
    "the recording.",
    good="Narrow bands where there are data; a shape that you expect (a parabola for a spring, a cosine for a "
    "pendulum).",
    bad="Wide bands in the recorded range; bumps that are as narrow as the distance between recorded values; a "
    "kinetic energy that falls away from zero (momentum and position may be swapped).",
    do="Record more, or with less noise, where bands are wide. If the shape is upside down, check the roles of the "
    "columns. Do not read anything off the grey parts: there the prior speaks.",
)


def learned_section(material: Material) -> Section:
    """Curves or a map, and a table of what they say."""
    d = material.model.dimension
    split = material.model.posterior.structure.traits(d).split
    if split and (material.has_energy or d == 2):
        figure = _figure(material, "Potential and kinetic energy", [_halves(material, pair) for pair in material.pairs])
    elif material.has_energy and d == 2:
        figure = _figure(material, "The energy H over the plane", [_plane(material)])
    elif material.has_energy:
        figure = _figure(material, "The energy H along cuts", [_energy_cuts(material, pair) for pair in material.pairs])
    else:
        cuts = [_field_cuts(material, k) for k in material.moving[:MOST_COMPONENTS]]
        figure = _figure(material, "The field along cuts", cuts)
    return Section("learned", "What was learned", (figure, *_table(material)))


def _figure(material: Material, title: str, plots: list[Plot]) -> Figure:
    words = [plots[0].alt]
    if material.model.dimension > 2:
        words.append("Every other coordinate stands at its recorded mean.")
    words.append("Nothing was recorded in the grey or pale parts.")
    return Figure("learned", title, tuple(plots), " ".join(words), READING, "Cut")


def _halves(material: Material, pair: tuple[int, int]) -> Plot:
    """V along a position and T along its momentum: integrals of the field, so that every form of it will do."""
    position, momentum = pair
    names = material.model.names
    several = material.model.dimension > 2
    panels, said = [], material.rest(*pair)
    for along, component, sign, letter in ((position, momentum, -1.0, "V"), (momentum, position, 1.0, "T")):
        points = line(material, along)
        found = rates(material, points)
        at = points[:, along]
        energy = Values(*(sign * integrated(at, values[..., component]) for values in found))
        drawn = curve(material, along, levelled(energy, curve(material, along, energy).inside))
        title = f"{letter} along {names[along]}" if several else f"{letter}({names[along]})"
        panels.append(_panel(material, along, drawn, title))
        said.append(f"{title} {_rise(drawn)}")
    return Plot(tuple(panels), f"{'. '.join(said)}.", f"{names[position]}, {names[momentum]}", columns=2)


def _energy_cuts(material: Material, pair: tuple[int, int]) -> Plot:
    names, panels, said = material.model.names, [], material.rest(*pair)
    for k in pair:
        found = energies(material, line(material, k))
        drawn = curve(material, k, levelled(found, curve(material, k, found).inside))
        panels.append(_panel(material, k, drawn, f"H along {names[k]}"))
        said.append(f"H along {names[k]} {_rise(drawn)}")
    return Plot(tuple(panels), f"{'. '.join(said)}.", ", ".join(names[k] for k in pair), columns=2)


def _field_cuts(material: Material, along: int) -> Plot:
    names, panels, said = material.model.names, [], []
    found = rates(material, line(material, along))
    for component in sorted(material.moving[:MOST_COMPONENTS]):
        drawn = curve(material, along, Values(*(values[..., component] for values in found)))
        title = f"d{names[component]}/dt along {names[along]}"
        panels.append(_panel(material, along, drawn, title))
        low, high = padded(drawn.best[drawn.inside], 0.0)
        said.append(f"{title} goes from {number(low)} to {number(high)}")
    return Plot(tuple(panels), f"{'. '.join(said)}.", f"along {names[along]}", columns=min(2, len(panels)))


def _rise(drawn: Curve) -> str:
    """How high a curve gets where there are data. (Where it is lowest is a point of a grid, and no result.)"""
    low, high = drawn.bands[0]
    rise, width = number(np.ptp(drawn.best[drawn.inside])), np.median((high - low)[drawn.inside])
    return f"rises by {rise} (95 % band {number(width, 2)} wide)"


def _panel(material: Material, k: int, drawn: Curve, title: str) -> Panel:
    low, high = padded(material.states[:, k], 0.0)
    marks: list[Mark] = [
        Band(drawn.at, *band, f"{level} % band", BLUE, opacity)
        for band, level, opacity in zip(drawn.bands, (95, 50), (0.18, 0.3), strict=True)
    ]
    marks.append(Line(drawn.at, drawn.best, "best estimate", BLUE, width=2))
    shades = (Shade(float(drawn.at[0]), low), Shade(high, float(drawn.at[-1])))
    bottom, top = padded(np.concatenate([edge[drawn.inside] for edge in (drawn.best, *drawn.bands[0])]), 0.0)
    span = (bottom - 0.1 * (top - bottom), top + 0.3 * (top - bottom))
    x = labelled(material.model.names[k], material.model.units[k])
    ends = (float(drawn.at[0]), float(drawn.at[-1]))
    return Panel(x, title, tuple(marks), shades=shades, span=span, x_span=ends)


def _plane(material: Material) -> Plot:
    """H over (q, p), and how uncertain it is."""
    model, states = material.model, material.states
    q, p = (np.linspace(*padded(states[:, k], BEYOND), PLANE) for k in (1, 0))
    points = np.stack([np.repeat(p, PLANE), np.tile(q, PLANE)], axis=1)
    box = ((points >= states.min(axis=0)) & (points <= states.max(axis=0))).all(axis=1)
    found = levelled(energies(material, points), box)
    std, reached = found.draws.std(axis=0), near_data(points, states)
    keep = thinned(len(states), 500)
    dots = Dots(states[keep, 1], states[keep, 0], "recorded", VERMILION, size=3)
    grid = lambda values: values.reshape(PLANE, PLANE)
    x, y = (labelled(model.names[k], model.units[k]) for k in (1, 0))
    kinds = ((found.best, "H", "energy H, best estimate"), (std, "std of H", "its standard deviation"))
    panels = tuple(
        Panel(x, y, (Levels(q, p, grid(values), grid(reached), label), dots), title) for values, label, title in kinds
    )
    rises, doubt = number(found.best[reached].max()), number(np.median(std[reached]), 2)
    rising = f"H rises by {rises} where there are data (standard deviation {doubt})."
    alt = ". ".join([*material.rest(1, 0), rising])
    return Plot(panels, alt, columns=2, height=360)


def _table(material: Material) -> tuple[Block, ...]:
    model = material.model
    rows: list[tuple[str, str]] = []
    found = material.learned
    if found is not None:
        parts = zip(model.names, found.equilibrium, found.equilibrium_std, model.units, strict=True)
        rows += [(f"equilibrium, {name}", with_unit(plus_minus(v, std), unit)) for name, v, std, unit in parts]
        period = with_unit(plus_minus(found.period, found.period_std), material.data.time_unit)
        rows.append(("small-swing period", period if np.isfinite(found.period) else "does not swing"))
    if material.has_energy:
        rows.append(("energy range of the recorded states", _energy_range(material)))
    rows.append(("noise of one recorded value (standard deviation)", material.noise_words))
    return (Table("What the model says, with standard deviations", ("quantity", "value"), tuple(rows)),)


def _energy_range(material: Material) -> str:
    """From the lowest to the highest energy of the recording, which does not depend on the level of H."""
    found = energies(material, material.states[thinned(len(material.states), 500)])
    return plus_minus(np.ptp(found.best), np.ptp(found.draws, axis=1).std())
