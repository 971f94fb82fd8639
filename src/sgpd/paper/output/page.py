"""The folder that the paper's experiments leave: rows, tables, figures, and one page that needs nothing else."""

import base64
import io
import json
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure

from sgpd.paper.output.figures import FIGURES
from sgpd.paper.output.panels import Drawn
from sgpd.paper.output.tables import QUICK, About, tables
from sgpd.paper.results import Result, sorted_rows
from sgpd.writing import write_whole

TEMPLATES = Environment(
    loader=PackageLoader("sgpd.paper.output"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
SCROLL = '<div class="scroll" tabindex="0" role="region" aria-label="table"><table>'
NEVER = {"Date": None}  # the same numbers give the same file


def write_tables(out: Path, results: list[Result], about: About) -> str:
    """Write results.json and tables.md: a few milliseconds, so after every finished result. Gives the tables."""
    out.mkdir(parents=True, exist_ok=True)
    rows, text = json.dumps(sorted_rows(results), indent=1, allow_nan=False), tables(results, about)
    write_whole(out / "results.json", f"{rows}\n".encode())
    write_whole(out / "tables.md", text.encode())
    return text


def write_page(out: Path, results: list[Result], about: About) -> Path:
    """Write the tables, figures/, paper.html and paper.md: a few seconds, for the figures are drawn."""
    text = write_tables(out, results, about)
    (out / "figures").mkdir(exist_ok=True)
    figures, markdown = [], []
    for name, draw in FIGURES.items():
        drawn = draw(results)
        if drawn is not None:
            figures.append(_shown(drawn, _save(drawn.figure, out / "figures" / name)))
            markdown.append(f"### {drawn.title}\n\n![{drawn.alt}](figures/{name}.png)\n\n{drawn.caption}\n")
    write_whole(out / "paper.md", "\n".join([text, "## Figures\n", *markdown]).encode())
    write_whole(out / "paper.html", _page(text, figures, about).encode())
    return out / "paper.html"


def _save(figure: Figure, path: Path) -> bytes:
    """Keep a figure as PNG and SVG; the SVG is also what the page shows."""
    png, svg = io.BytesIO(), io.BytesIO()
    with rc_context({"svg.hashsalt": "sgpd"}):
        figure.savefig(png, format="png", dpi=150)
        figure.set_layout_engine("none")  # the layout is found; to find it again would only cost time
        figure.savefig(svg, format="svg", metadata=NEVER)
    write_whole(path.with_suffix(".png"), png.getvalue())
    write_whole(path.with_suffix(".svg"), svg.getvalue())
    return svg.getvalue()


def _shown(drawn: Drawn, svg: bytes) -> dict:
    """What the page says of a figure; it holds the picture itself."""
    width, height = (round(96 * inches) for inches in drawn.figure.get_size_inches())
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    words = {"title": drawn.title, "caption": drawn.caption, "alt": drawn.alt}
    return words | {"source": source, "width": width, "height": height}


def _html(markdown: str) -> Markup:
    """Markdown as a part of the page: headings one level down, tables in boxes that scroll."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = reader.parse(markdown)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"
    html = reader.renderer.render(tokens, reader.options, {})
    # Markup: with "html" off the reader has escaped every text.
    return Markup(html.replace("<table>", SCROLL).replace("</table>", "</table></div>"))


def _page(text: str, figures: list[dict], about: About) -> str:
    style = files("sgpd.paper.output").joinpath("page.css").read_text(encoding="utf-8")
    notes = about["notes"] if about["notes"].startswith("# ") else f"# Notes\n\n{about['notes']}"
    return TEMPLATES.get_template("page.html.j2").render(
        # Markup: both stand in this package.
        style=Markup(style),
        quick=Markup(QUICK if about["quick"] else ""),
        command=about["command"],
        tables=_html(text),
        figures=figures,
        notes=_html(notes),
    )
