"""Section 4: what the structure keeps along drawn paths, and whether the recording keeps it too."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sgpd.checks import CheckId, determinant_error, step_jacobian, symplectic_defect
from sgpd.fields import Field, taken
from sgpd.inference.course import Course
from sgpd.inference.laplace.engine import tuned_on
from sgpd.plots.marks import (
    BLUE,
    CYCLE,
    INK,
    MOST_PATHS,
    SYMBOLS,
    VERMILION,
    Dots,
    Line,
    Panel,
    Plot,
    Rule,
    padded,
    thinned,
)
from sgpd.report.content import Block, Box, Figure, Reading, Section
from sgpd.report.material import Material, View
from sgpd.report.sections.kept import ENERGY, Kept, changes, kept_by, recorded_courses

STEPS = 48  # states at which the derivative of a step is taken
ROUNDING = 1e-17  # shown instead of 0 on a logarithmic axis

ALONG = Reading(
    shown="Every drawn field has its own energy H; each line is the change of one path's own H since its start, "
    "relative to the energy exchanged (that its motion turns over). A symplectic method does not keep H exactly: it "
    "lets it wander within bounds.",
    good="Lines that go up and down within the limit and end where they began to swing.",
    bad="Lines that climb or fall steadily, or leave the limit.",
    do="Take a shorter step or a method of higher order (`yoshida-4`, `gauss-4`).",
)
STEP = Reading(
    shown="How far a step is from keeping volume (determinant of its derivative against 1) and the symplectic form, "
    "at states along drawn paths, on a logarithmic axis.",
    good="Everything near rounding, 1e-16 to 1e-13, far below the limit.",
    bad="Dots above the limit.",
    do="For implicit methods check that every step converged; otherwise this pair of structure and method does not "
    "keep what it claims: please report it.",
)
RECORDED = Reading(
    shown="The quantity that the model keeps, evaluated along the recorded values after a smoothing spline that "
    "knows nothing of the structure. Dots are averages over twelfths of a run, the dashed line is their straight "
    "trend.",
    good="Dots scatter around a level line.",
    bad="Dots that fall or rise steadily: the system loses or gains what the model keeps. The model then keeps its "
    "physics, but it is not the physics of this recording.",
    do="If the trend is real (friction, a motor), use the structure `free`, or forecast only a short time ahead.",
)


def conservation_section(material: Material) -> Section:
    """Along paths, in single steps, along the recording."""
    kept, view = kept_by(material), _going_on(material)
    blocks: list[Block] = []
    if kept is None:
        pair = f"{material.model.posterior.structure.name} with {material.model.integrator.name}"
        text = (
            f"{pair} has no energy and no invariant, so there is nothing to follow along paths or along the recording."
        )
        blocks.append(Box(f"{text} If the system keeps its energy, try `separable` or `hamiltonian`.", "NOT MEASURED"))
    elif view is None:
        blocks.append(Box("Nothing could be followed, because no path of the forecast stayed finite.", "FAIL"))
    else:
        blocks.append(_along_paths(material, view, kept))
    if material.model.preserves & {"volume", "symplectic form"} and view is not None:
        blocks.append(_single_steps(material, view))
    if kept is not None:
        blocks.append(_along_recording(material, kept))
    return Section("conservation", "Conservation", tuple(blocks))


def _going_on(material: Material) -> View | None:
    """A run whose forecast was drawn with the model's own fields, start and field together."""
    return next((view for view in material.views if view.fitted is not None), None)


def _chosen(material: Material, view: View, most: int) -> tuple[Field, np.ndarray, np.ndarray]:
    """Drawn fields with the paths that belong to them, and the paths' times."""
    ok = np.flatnonzero(view.ahead.ok)[:most]
    rows = thinned(len(view.ahead.times))
    return taken(material.drawn, ok), view.ahead.paths[ok][:, rows], view.ahead.times[rows]


def _along_paths(material: Material, view: View, kept: Kept) -> Figure:
    fields, paths, times = _chosen(material, view, MOST_PATHS)
    found = changes(kept, fields, paths)
    energy = kept.name == ENERGY.name
    shown = found if energy else np.maximum(np.abs(found), ROUNDING)
    marks = tuple(Line(times, row, "one path", BLUE, width=0.8, opacity=0.6) for row in shown)
    limits = _limits(material, CheckId.ENERGY_WANDER if energy else CheckId.INVARIANT)
    rules = tuple(Rule(at, "limit", "y") for limit in limits for at in ((limit, -limit) if energy else (limit,)))
    panel = Panel(material.time, f"change of {kept.name}, relative", marks, rules=rules, log=not energy)
    worst, last = np.abs(found).max(), np.abs(found[:, -1]).max()
    alt = (
        f"{kept.name} changes by at most {worst:.1e} along {len(found)} paths over "
        f"{material.lasting(times[-1] - times[0])}; at their end it differs from the start by at most {last:.1e}."
    )
    ids = (CheckId.ENERGY_WANDER, CheckId.ENERGY_TREND, CheckId.INVARIANT)
    words = [alt, *material.assessment.sentences(*ids)]
    title = "Energy along drawn paths" if energy else "Invariant along drawn paths"
    return Figure("energy", title, (Plot((panel,), alt, height=320),), " ".join(words), ALONG)


def _limits(material: Material, check_id: CheckId) -> list[float]:
    """The limit of a check; none where it was not made."""
    return [c.limit for c in material.assessment.checks if c.id == check_id and c.limit is not None]


@eqx.filter_jit
def _defects(fields: Field, integrator, states: Float[Array, "paths n d"], h) -> tuple[Array, Array]:
    def one(field, rows):
        jacobians = jax.vmap(lambda x: step_jacobian(integrator, field, x, h))(rows)
        even = rows.shape[1] % 2 == 0
        form = jax.vmap(symplectic_defect)(jacobians) if even else jnp.full(rows.shape[0], jnp.nan)
        return jax.vmap(determinant_error)(jacobians), form

    return eqx.filter_vmap(one)(fields, states)


def _single_steps(material: Material, view: View) -> Figure:
    fields, paths, times = _chosen(material, view, 8)
    rows = thinned(len(times), STEPS)
    claims = material.model.preserves
    found = _defects(fields, material.model.integrator, jnp.asarray(paths[:, rows]), jnp.asarray(material.model.step))
    measures = [("volume", "|det - 1|", found[0]), ("symplectic form", "symplectic defect", found[1])]
    marks, said = [], []
    for (claim, label, values), colour, symbol in zip(measures, CYCLE, SYMBOLS, strict=False):
        if claim in claims:
            worst = np.maximum(np.asarray(values).max(axis=0), ROUNDING)
            marks.append(Dots(times[rows], worst, label, colour, symbol, 6))
            said.append(f"{label} is at most {worst.max():.1e}")
    limits = _limits(material, CheckId.DETERMINANT)
    alt = f"{'; '.join(said)}, on {len(paths)} paths (limit {', '.join(f'{limit:.0e}' for limit in limits)})."
    rules = tuple(Rule(limit, "limit", "y") for limit in limits)
    panel = Panel(material.time, f"worst of {len(paths)} paths", tuple(marks), rules=rules, log=True)
    caption = f"Each at {STEPS} states of {len(paths)} paths. {alt[0].upper()}{alt[1:]}"
    return Figure("steps", "Volume and symplectic form of a step", (Plot((panel,), alt, height=280),), caption, STEP)


def _along_recording(material: Material, kept: Kept) -> Figure:
    plots = tuple(_course_plot(material, kept.name, name, course) for name, course in recorded_courses(material, kept))
    said = material.assessment.sentences(CheckId.RECORDED_ENERGY)
    if tuned_on(material.data).rows < material.data.rows:
        said.append("Of long runs stretches are shown.")
    level = ["H is 0 at the recording's mean state, or at its lowest."] if kept.name == ENERGY.name else []
    title = "The recording's own energy" if kept.name == ENERGY.name else "The recording's own xᵀQx"
    return Figure("recorded", title, plots, " ".join([plots[0].alt, *level, *said]), RECORDED, "Run")


def _course_plot(material: Material, quantity: str, name: str, course: Course) -> Plot:
    keep = thinned(len(course.times))
    marks = (
        Line(course.times[keep], course.values[keep], "along the recording", BLUE, width=1, opacity=0.6),
        Dots(course.middle, course.mean, "average of a twelfth", INK, size=8),
        Line(*course.line, "trend", VERMILION, "dash", 2),
    )
    span = (min(0.0, float(course.values.min())), padded(course.values, 0.1)[1])
    lasting = material.lasting(course.times[-1] - course.times[0])
    alt = f"Along run {name} {course.sentence(quantity, lasting)}"
    return Plot((Panel(material.time, quantity, marks, span=span),), alt, f"run {name}", height=300)
