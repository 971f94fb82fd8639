"""The report: one HTML page that needs nothing but itself."""

import base64
import hashlib
from collections.abc import Callable
from html import escape
from importlib.resources import files
from pathlib import Path

from sgpd.checks import CheckId, CheckReport
from sgpd.data import Trajectories
from sgpd.judging import Assessment, HeldOut
from sgpd.models import Model
from sgpd.plots.interactive import to_json
from sgpd.report.about import About
from sgpd.report.content import Figure, Section
from sgpd.report.elements import plot_id, section, verdict_box
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

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="sgpd">
<title>{title}: sgpd report</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1><button type="button" id="theme" aria-pressed="false">Dark</button></header>
<main>
{box}
<nav aria-label="Sections"><ol>{contents}</ol></nav>
{sections}
</main>
<script type="application/json" id="plots">{plots}</script>
<script>{plotly}</script>
<script>{script}</script>
</body>
</html>
"""


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
    overall = material.assessment.overall
    plotly, script = get_plotlyjs(), _beside("page.js")
    return _PAGE.format(
        policy=_policy(plotly, script),
        title=escape(material.about.title),
        style=_beside("page.css"),
        box=verdict_box(overall, [f"Data: {data_line(material)}.", _model_line(material), _energy_line(material)]),
        contents="".join(f'<li><a href="#{each.id}">{escape(each.title)}</a></li>' for each in sections),
        sections="\n".join(section(number, each) for number, each in enumerate(sections, 1)),
        plots=_plots(sections),
        plotly=plotly,
        script=script,
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


def _beside(name: str) -> str:
    return files("sgpd.report").joinpath(name).read_text(encoding="utf-8")


def _policy(*scripts: str) -> str:
    """Only these scripts run, and nothing is fetched from anywhere."""
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode("ascii") for each in scripts]
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def _plots(sections: list[Section]) -> str:
    """All plots for the script; no text in it can end the element that holds it."""
    figures = [block for each in sections for block in each.blocks if isinstance(block, Figure)]
    plots = {plot_id(f, index): plot for f in figures for index, plot in enumerate(f.plots)}
    return to_json(plots).replace("<", "\\u003c")
