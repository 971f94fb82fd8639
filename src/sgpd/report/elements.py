"""Pieces of HTML. Every text that comes from outside is escaped here, once."""

import re
from html import escape
from urllib.parse import quote

from sgpd.checks.verdicts import Verdict
from sgpd.judging.overall import Overall
from sgpd.plots.marks import Plot
from sgpd.plots.static import to_svg
from sgpd.report.content import Block, Box, Figure, Prose, Section, Table

# Shape, word and colour, always all three.
SHAPES: dict[str, tuple[str, str]] = {
    "PASS": ("pass", '<circle cx="8" cy="8" r="6.5"/>'),
    "ATTENTION": ("attention", '<rect x="2" y="2" width="12" height="12"/>'),
    "FAIL": ("fail", '<path d="M8 1 15.5 14.5H.5Z"/>'),
    "NOT MEASURED": ("missing", '<circle cx="8" cy="8" r="6" fill="none" stroke-width="2.5" stroke-dasharray="3 2"/>'),
}


def word(verdict: Verdict | str) -> str:
    """A verdict with its shape."""
    name, shape = SHAPES[verdict]
    return f'<span class="verdict {name}"><svg viewBox="0 0 16 16" aria-hidden="true">{shape}</svg>{verdict}</span>'


def text(words: str) -> str:
    """Escaped, with `code` set as code, and no line broken before a percent sign."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words).replace(" %", "\u00a0%"))


def verdict_box(overall: Overall, lines: list[str]) -> str:
    """The first screen: one sentence, four rows, one line on the data."""
    rows = "".join(
        f'<tr><th scope="row">{escape(row.question)}</th><td>{word(row.verdict)}</td><td>{text(row.sentence)}</td></tr>'
        for row in overall.rows
    )
    about = "".join(f"<p>{text(line)}</p>" for line in lines if line)
    return (
        f'<section class="box" aria-labelledby="verdict"><h2 id="verdict">{word(overall.verdict)} '
        f"<span>{text(overall.sentence)}</span></h2>"
        f'<table class="questions"><thead class="hidden"><tr><th scope="col">question</th><th scope="col">verdict</th>'
        f'<th scope="col">in words</th></tr></thead><tbody>{rows}</tbody></table>{about}'
        f'<p><a href="#checks">Every check</a></p></section>'
    )


def section(number: int, content: Section) -> str:
    """A numbered section."""
    blocks = "".join(block(each) for each in content.blocks)
    heading = f'<h2 id="{content.id}">{number}. {escape(content.title)}</h2>'
    return f'<section aria-labelledby="{content.id}">{heading}{blocks}</section>'


def block(content: Block) -> str:
    """A figure, a table, a box or a paragraph."""
    match content:
        case Figure():
            return _figure(content)
        case Table():
            return table(content)
        case Box():
            shown = f"{word(content.verdict)} " if content.verdict else ""
            return f'<p class="empty">{shown}{text(content.text)}</p>'
        case Prose():
            copy = '<button type="button" class="copy">Copy</button>'
            code = f'<pre tabindex="0">{escape(content.code)}</pre>'
            return f'<div class="paste"><p>{text(content.text)} {copy}</p>{code}</div>'


def table(content: Table) -> str:
    """Rows under headers; on a narrow screen every row becomes a card, whose cells name their column."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in content.head)
    rows = "".join(
        f"<tr>{''.join(_cell(name, cell) for name, cell in zip(content.head, row, strict=True))}</tr>"
        for row in content.rows
    )
    mark = f' id="{content.id}"' if content.id else ""
    title = f"<caption>{text(content.title)}</caption>"
    return f'<table class="cards"{mark}>{title}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _cell(name: str, cell: str) -> str:
    shown = word(cell) if cell in SHAPES else text(cell)
    return f'<td data-name="{escape(name, quote=True)}">{shown}</td>'


def plot_id(figure: Figure, index: int) -> str:
    """Of one plot of a figure."""
    return f"plot-{figure.id}-{index}"


def _figure(figure: Figure) -> str:
    plots = "".join(_plot(figure, index, plot) for index, plot in enumerate(figure.plots))
    reading = "".join(
        f"<dt>{question}</dt><dd>{text(answer)}</dd>"
        for question, answer in zip(
            ("What is shown", "What good looks like", "What bad looks like", "What to do"), figure.reading, strict=True
        )
    )
    return (
        f'<figure id="figure-{figure.id}"><h3>{text(figure.title)}</h3>{_controls(figure)}{plots}'
        f"<figcaption>{text(figure.caption)}</figcaption>"
        f"<details><summary>How to read this figure</summary><dl>{reading}</dl></details></figure>"
    )


def _controls(figure: Figure) -> str:
    """A menu where there are several plots, and a button for each toggle."""
    parts = []
    if len(figure.plots) > 1:
        options = "".join(f'<option value="{k}">{escape(plot.name)}</option>' for k, plot in enumerate(figure.plots))
        parts.append(f'<label>{escape(figure.menu)} <select class="menu">{options}</select></label>')
    for group in next(iter(figure.plots)).toggles:
        pressed = f'class="toggle" data-group="{escape(group, quote=True)}" aria-pressed="false"'
        parts.append(f'<button type="button" {pressed}>{escape(group)}</button>')
    return f'<div class="controls">{"".join(parts)}</div>' if parts else ""


def _plot(figure: Figure, index: int, plot: Plot) -> str:
    picture = quote(to_svg(plot), safe=" /:;,=()-.+'")
    alt = escape(plot.alt, quote=True)
    hidden = " hidden" if index else ""
    live = f'<div class="live" id="{plot_id(figure, index)}" role="img" aria-label="{alt}"></div>'
    return f'<div class="plot"{hidden}>{live}<img class="static" alt="{alt}" src="data:image/svg+xml,{picture}"></div>'
