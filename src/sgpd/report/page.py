"""The report: one HTML page that needs nothing but itself."""

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from sgpd.checks import CheckId, CheckReport
from sgpd.data import Trajectories
from sgpd.judging import Assessment, HeldOut
from sgpd.models import Model
from sgpd.plots.interactive import to_json
from sgpd.report.about import About
from sgpd.report.content import Figure, Section
from sgpd.report.material import Material, gather
from sgpd.report.sections.calibration import calibration_section
from sgpd.report.sections.conservation import conservation_section
from sgpd.report.sections.forecast import forecast_section
from sgpd.report.sections.kept import ENERGY, recorded_courses
from sgpd.report.sections.learned import learned_section
from sgpd.report.sections.listing import checks_section
from sgpd.report.sections.origin import data_line, origin_section
from sgpd.report.sections.portrait import portrait_section
from sgpd.report.sections.residuals import residuals_section
from sgpd.report.templating import TEMPLATES
from sgpd.writing import write_whole

# The order of the page.
SECTIONS: tuple[Callable[[Material], Section], ...] = (
    forecast_section,
    learned_section,
    portrait_section,
    conservation_section,
    residuals_section,
    calibration_section,
    checks_section,
    origin_section,
)


def write_report(
    path: str | Path,
    model: Model,
    data: Trajectories,
    checks: Assessment | CheckReport,
    about: About,
    held_out: HeldOut | None = None,
) -> Path:
    """Write the page of a model, whole or not at all; the same arguments give the same page.

    **Arguments:**

    - `data`: the recording that was fitted.
    - `checks`: of `model.check`, or claims that were measured in another way.
    - `about`: where the model comes from.
    - `held_out`: the forecasts of what was held out of the fit, where `model.check` did not make them.
    """
    material = gather(model, data, checks, about, held_out)
    path = Path(path)
    write_whole(path, render(material).encode())
    return path


def render(material: Material) -> str:
    """The page as text."""
    from plotly.offline import get_plotlyjs

    sections = [make(material) for make in SECTIONS]
    lines = (f"Data: {data_line(material)}.", _model_line(material), _energy_line(material))
    return TEMPLATES.get_template("page.html.j2").render(
        title=material.about.title,
        overall=material.assessment.overall,
        lines=[line for line in lines if line],
        sections=sections,
        plots=_plots(sections),
        plotly=Markup(get_plotlyjs()),  # Markup: of the package that is installed here, and known by its hash
        style=_beside("page.css"),
        script=_beside("page.js"),
    )


def _model_line(material: Material) -> str:
    model = material.model
    return f"Model: {model.posterior.structure.name} + {model.integrator.name}, state ({', '.join(model.names)})."


def _energy_line(material: Material) -> str:
    """What the recording does with its energy, where that is not to be overlooked."""
    found = [check.verdict for check in material.assessment.checks if check.id == CheckId.RECORDED_ENERGY]
    if found in ([], ["PASS"]):
        return ""
    name, course = recorded_courses(material, ENERGY)[0]
    return f"Run {name}: {course.sentence('the energy', material.lasting(course.times[-1] - course.times[0]))}"


def _beside(name: str) -> Markup:
    """A file of this package: Markup, because nothing in it comes from outside."""
    return Markup(files("sgpd.report").joinpath(name).read_text(encoding="utf-8"))


def _plots(sections: list[Section]) -> Markup:
    """All plots for the script: Markup, because a browser reads no escapes there; no text in it can end the element."""
    figures = [block for each in sections for block in each.blocks if isinstance(block, Figure)]
    plots = {name: plot for figure in figures for name, plot in figure.plots_by_id.items()}
    return Markup(to_json(plots).replace("<", "\\u003c"))
