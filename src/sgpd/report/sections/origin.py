"""Section 8: where everything came from, and how to make it again."""

import numpy as np

from sgpd.inference.facts import Round
from sgpd.plots.marks import CYCLE, DASHES, Line, Panel, Plot, thinned
from sgpd.report.content import Block, Box, Figure, Prose, Reading, Section, Table
from sgpd.report.material import Material
from sgpd.report.methods import methods_text
from sgpd.wording import number

READING = Reading(
    shown="What the fit maximised, after each round or epoch. The default engine works in stages whose rollouts become "
    "longer; each is a curve of its own, since their evidences are those of different models.",
    good="Curves that rise and level off.",
    bad="A curve that still rises at its end, or never settles.",
    do="If it still rises, train longer (`variational`) or compare with another seed (`laplace`).",
)


def origin_section(material: Material) -> Section:
    """Data, run, problems."""
    blocks: list[Block] = [_data(material), _run(material), *_history(material)]
    if material.about.files:
        blocks.append(Table("Files that were read", ("file", "SHA-256"), material.about.files))
    if material.about.command:
        blocks.append(Prose("The exact command.", material.about.command))
    blocks.append(Prose("Methods text, to paste and change as you like.", methods_text(material)))
    if material.problems:
        blocks.append(Table("Problems", ("problem",), tuple((text,) for text in material.problems), id="problems"))
    else:
        blocks.append(Box("Problems: none."))
    return Section("origin", "Data, run, problems", tuple(blocks))


def data_line(material: Material) -> str:
    """The data in one line: files, runs, rows, what is missing."""
    data = material.data
    files = ", ".join(name for name, _ in material.about.files)
    parts = [
        f"{len(data)} run{'' if len(data) == 1 else 's'}",
        f"{data.rows:,} rows fitted",
        f"{data.missing:,} values missing" if data.missing else "nothing missing",
    ]
    if material.held_out is not None:
        parts.append(f"{material.held_out.data.rows:,} rows held out")
    return f"{files}: {', '.join(parts)}" if files else ", ".join(parts)


def _data(material: Material) -> Table:
    said = material.about.said or (("data", data_line(material)),)
    return Table("What was read, guessed and left out", ("", "in words"), said)


def _run(material: Material) -> Table:
    model, about = material.model, material.about
    structure = model.posterior.structure
    form = getattr(structure, "form", "")
    implicit = "implicit" if model.integrator.implicit else "explicit"
    rows = [
        ("structure", f"{structure.name}{form and f' ({form})'}: {structure.promise}"),
        (
            "integrator",
            f"{model.integrator.name}: order {model.integrator.order}, {implicit}, step {material.lasting(model.step)}",
        ),
        ("kept to rounding", ", ".join(sorted(model.preserves)) or "nothing is claimed"),
        ("maximised", model.objective),
        ("seed", str(about.seed)),
    ]
    if about.seconds is not None:
        rows.append(("time of the fit", f"{about.seconds:.0f} s"))
    converged = [line.steps_converged for line in model.history if line.steps_converged is not None]
    if converged:
        rows.append(("steps of the fit that converged", f"{100 * float(np.mean(converged)):.4g} %"))
    rows += [(name, version) for name, version in about.versions.items()]
    rows += [("note", remark) for remark in model.remarks]  # what the diagnosis says stands in section 7
    return Table("The run", ("what", "value"), tuple(rows))


def _history(material: Material) -> tuple[Block, ...]:
    lines = [line for line in material.model.history if np.isfinite(line.objective)]
    if len(lines) < 2:
        return (Box("There is no history of the fit to draw."),)
    stages: dict[str, list[tuple[int, float]]] = {}  # an evidence with other restarts is that of another model
    for step, line in enumerate(lines, start=1):
        stage = f"restarts every {line.restart} rows" if isinstance(line, Round) else ""
        stages.setdefault(stage, []).append((step, line.objective))
    marks, words = [], []
    for k, (stage, points) in enumerate(stages.items()):
        steps, values = np.array(points, float).T
        keep = thinned(len(values))
        marks.append(Line(steps[keep], values[keep], stage, CYCLE[k % 4], DASHES[k % 4]))
        words.append(f"from {number(values[0], 4)} to {number(values[-1], 4)}{stage and f' ({stage})'}")
    panel = Panel("round or epoch", material.model.objective, tuple(marks))
    alt = f"The {material.model.objective} goes {', then '.join(words)}, in {len(lines)} rounds."
    return (Figure("history", "History of the fit", (Plot((panel,), alt, height=260),), alt, READING),)
