"""How the page's templates are read, and what they may ask for. They escape every text, once."""

import base64
import hashlib
import re
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from sgpd.plots.marks import Plot
from sgpd.plots.static import to_svg
from sgpd.report.content import Block


def text(words: str) -> Markup:
    """Escaped, with `code` set as code, and no line broken before a percent sign."""
    escaped = str(escape(words.replace(" %", "\u00a0%")))
    # Markup: everything is escaped by now but the element that is added here.
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))


def picture(plot: Plot) -> Markup:
    """The address of a plot's printed twin, for an attribute in double quotes."""
    # Markup: percent-encoded, so that nothing in it can end the attribute; escaped apostrophes would only be longer.
    return Markup("data:image/svg+xml," + quote(to_svg(plot), safe=" /:;,=()-.+'"))


def sha256(script: str) -> str:
    """By which a page's policy knows a script that may run."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")


def kind(block: Block) -> str:
    """The name of a block's template."""
    return type(block).__name__.lower()


TEMPLATES = Environment(
    loader=PackageLoader("sgpd.report"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.filters |= {each.__name__: each for each in (text, picture, sha256, kind)}
TEMPLATES.globals |= {"zip": zip}
