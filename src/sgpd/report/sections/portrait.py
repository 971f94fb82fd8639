"""Section 3: the learned field in the plane, with the recording and a few paths."""

import jax
import jax.numpy as jnp
import numpy as np

from sgpd.plots.marks import (
    CYCLE,
    DASHES,
    FREE_SCALE,
    INK,
    PURPLE,
    VERMILION,
    Arrows,
    Dots,
    Line,
    Mark,
    Panel,
    Plot,
    labelled,
    padded,
    thinned,
)
from sgpd.report.content import Box, Figure, Reading, Section
from sgpd.report.material import Material
from sgpd.report.sections.cuts import near_data
from sgpd.wording import number

SIDE = 17  # arrows along a side
PATHS = 3
EVERYWHERE = "arrows everywhere"

READING = Reading(
    shown="Two coordinates against one another. Arrows are the best estimate of the field, recorded states are dots, "
    "and three drawn paths go on from the end of the recording. With more than two coordinates the arrows are those "
    "of a cut through the middle of the recording, and need not be tangent to the paths.",
    good="Dots follow the arrows; paths stay where the dots are, or close the loops that the dots began.",
    bad="Paths spiral in or out although the recording does not; dots cross the arrows.",
    do="Spirals with a structure that keeps energy mean that another coordinate takes part; with `free` they mean "
    "that energy leaks: try `separable` or `hamiltonian` if the system has no friction.",
)


def portrait_section(material: Material) -> Section:
    """One plot for each pair of coordinates."""
    if material.model.dimension == 1:
        text = "A state of one coordinate has no plane to draw; its field is the curve of section 2."
        return Section("portrait", "Phase portrait", (Box(text),))
    plots = tuple(_plot(material, pair) for pair in material.pairs)
    cut = " Arrows: a cut with every other coordinate at its recorded mean." if material.model.dimension > 2 else ""
    caption = f"{plots[0].alt}{cut} Arrows stand near recorded states only, unless asked."
    figure = Figure("portrait", "Field, recording and three paths", plots, caption, READING, "Plane")
    return Section("portrait", "Phase portrait", (figure,))


def _plot(material: Material, pair: tuple[int, int]) -> Plot:
    model = material.model
    across, up = pair
    marks: list[Mark] = list(_arrows(material, pair))
    said = ""
    if material.views:
        view = material.views[0]
        chosen = view.ahead.paths[view.ahead.ok][:PATHS]
        keep = thinned(chosen.shape[1])
        for path, colour, dash in zip(chosen, CYCLE, DASHES, strict=False):
            marks.append(Line(path[keep, across], path[keep, up], "drawn path", colour, dash, 1, 0.8))
        states = material.states[:, list(pair)]
        grown = np.ptp(chosen, axis=1).max(axis=0)[list(pair)] / (np.ptp(states, axis=0) + np.finfo(float).tiny)
        parts = [
            f"{number(g, 2)} times the recorded range of {model.names[k]}" for g, k in zip(grown, pair, strict=True)
        ]
        said = f"Three paths span {', '.join(parts)}."
    marks += _recorded(material, pair)
    x, y = (labelled(model.names[k], model.units[k]) for k in pair)
    spans = [padded(material.states[:, k], 0.3) for k in pair]
    panel = Panel(x, y, tuple(marks), span=spans[1], x_span=spans[0])
    name = f"{model.names[across]}, {model.names[up]}"
    return Plot((panel,), said or "No path stayed finite.", name, toggles=(EVERYWHERE, FREE_SCALE), height=460)


def _recorded(material: Material, pair: tuple[int, int]) -> list[Mark]:
    across, up = pair
    keep = thinned(len(material.states))
    dots: list[Mark] = [Dots(material.states[keep, across], material.states[keep, up], "recorded", INK, size=4)]
    if material.held_out is not None:
        held = np.concatenate([run.states for run in material.held_out.data.runs])
        held = held[thinned(len(held))]
        dots.append(Dots(held[:, across], held[:, up], "held out", VERMILION, "diamond", 5))
    return dots


def _arrows(material: Material, pair: tuple[int, int]) -> tuple[Arrows, Arrows]:
    """Arrows of one length each way, in spans: direction is what they show."""
    states = material.states
    x, y = (np.linspace(*padded(states[:, k], 0.25), SIDE) for k in pair)
    points = np.tile(material.data.center, (SIDE * SIDE, 1))
    points[:, pair[0]], points[:, pair[1]] = np.tile(x, SIDE), np.repeat(y, SIDE)
    rate = np.asarray(jax.jit(jax.vmap(material.mean))(jnp.asarray(points)))[:, list(pair)]
    cell = np.array([x[1] - x[0], y[1] - y[0]])
    size = np.linalg.norm(rate / cell, axis=1, keepdims=True)
    # Slow places get shorter arrows, down to a third, so that equilibria are seen.
    length = 0.8 * np.clip(size / (np.quantile(size, 0.6) + np.finfo(float).tiny), 0.35, 1.0)
    turn = length * rate / (size + np.finfo(float).tiny)
    near = near_data(points[:, list(pair)], states[:, list(pair)])
    make = lambda chosen, label, group: Arrows(
        points[chosen, pair[0]], points[chosen, pair[1]], turn[chosen, 0], turn[chosen, 1], label, PURPLE, group
    )
    return make(near, "learned field", ""), make(~near, "field, nothing recorded", EVERYWHERE)
