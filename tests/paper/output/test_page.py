"""The folder is whole, the page needs nothing outside itself, and both can be written again at any time."""

import json
import re
from html.parser import HTMLParser

import pytest

from sgpd.paper.output.figures import FIGURES
from sgpd.paper.output.page import write_page
from sgpd.paper.output.tables import QUICK
from sgpd.paper.results import Result
from tests.paper.made_up import ABOUT, everything, result


class Outline(HTMLParser):
    """Headings, images and the addresses that a page asks for."""

    def __init__(self):
        super().__init__()
        self.levels, self.images, self.addresses, self.tags = [], [], [], []

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.tags.append(tag)
        self.addresses += [known[name] for name in ("src", "href", "srcset", "data") if name in known]
        if re.fullmatch(r"h[1-6]", tag):
            self.levels.append(int(tag[1]))
        if tag == "img":
            self.images.append(known)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("paper") / "new"
    assert write_page(out, everything(), ABOUT) == out / "paper.html"
    return out


def outline(folder) -> tuple[str, Outline]:
    text, found = (folder / "paper.html").read_text(encoding="utf-8"), Outline()
    found.feed(text)
    return text, found


def test_every_figure_is_there_as_png_and_svg_and_nothing_else_is(folder):
    expected = {f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg")}
    assert {path.name for path in (folder / "figures").iterdir()} == expected
    assert {path.name for path in folder.iterdir()} == {
        "results.json",
        "tables.md",
        "figures",
        "paper.html",
        "paper.md",
    }


def test_the_markdown_has_the_tables_and_shows_every_figure(folder):
    text = (folder / "paper.md").read_text()
    assert text.startswith((folder / "tables.md").read_text())
    shown = re.findall(r"!\[.+\]\((figures/[a-z0-9-]+\.png)\)", text)
    assert sorted(shown) == sorted(f"figures/{path.name}" for path in (folder / "figures").glob("*.png"))


def test_rows_are_strict_json_in_the_papers_order(folder):
    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    rows = json.loads((folder / "results.json").read_text(encoding="utf-8"), parse_constant=refuse)
    made = [r.row for r in everything()]
    assert len(rows) == len(made)
    assert all(row in rows for row in made)
    assert [(r["task"], r["method"], r["seed"]) for r in rows[:4]] == [
        ("pendulum", method, seed) for method in ("sgpd", "euler") for seed in (0, 1)
    ]
    steps = [r["step"] for r in rows if (r["task"], r["method"], r["seed"]) == ("heun", "sgpd", 0)]
    assert steps == [None, 0.005, 0.05, 0.1] * 2


def test_the_page_asks_for_nothing_outside_itself(folder):
    text, found = outline(folder)
    assert all(address.startswith(("data:", "#")) for address in found.addresses)
    assert not re.search(r"url\(|@import", text)
    assert not {"script", "link", "iframe"} & set(found.tags)


def test_every_figure_has_its_alt_text_and_caption(folder):
    text, found = outline(folder)
    assert len(found.images) == len(FIGURES)
    assert all(len(image["alt"]) > 40 for image in found.images)
    assert text.count("<figcaption>") == len(FIGURES)
    assert "sgpd paper --out &lt;DIR&gt;" in text.split("<figcaption>")[1]


def test_headings_are_in_order_and_the_language_is_said(folder):
    text, found = outline(folder)
    assert found.levels[0] == 1
    assert found.levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(found.levels, found.levels[1:], strict=False))
    assert '<html lang="en">' in text


def test_tables_scroll_in_their_boxes_and_notes_come_last(folder):
    text, found = outline(folder)
    assert found.tags.count("table") == text.count('aria-label="table"><table>') == 10
    assert text.index('id="notes"') > text.rindex("<figcaption>")
    assert "A sentence &amp; a &lt;b&gt;sign&lt;/b&gt;." in text


def test_the_page_stays_small(folder):
    assert (folder / "paper.html").stat().st_size < 4e6


def test_the_page_can_be_written_from_nothing_and_again_with_more(tmp_path):
    write_page(tmp_path, [], ABOUT | {"notes": "No heading."})
    assert "No result yet" in (tmp_path / "paper.html").read_text(encoding="utf-8")
    write_page(tmp_path, [result("rigid-body", "sgpd", 0)], ABOUT | {"quick": True})
    text = (tmp_path / "paper.html").read_text(encoding="utf-8")
    assert text.count(f"<strong>{QUICK}</strong>") == 1
    assert all(QUICK in caption.split("</figcaption>")[0] for caption in text.split("<figcaption>")[1:])


def test_what_means_something_to_templates_or_to_html_is_text(tmp_path):
    hostile = "{{ 7*7 }} {% raw %} \"'<script>x</script>"
    write_page(tmp_path, [result("rigid-body", "sgpd", 0)], ABOUT | {"command": hostile, "notes": hostile})
    text, found = outline(tmp_path)
    for place in (text.split("<figcaption>")[1], text.split('id="notes"')[1]):
        assert "{{ 7*7 }} {% raw %}" in place
    assert "script" not in found.tags


def test_the_same_results_give_the_same_files(tmp_path):
    for name in ("one", "two"):
        write_page(tmp_path / name, [result("pendulum", "sgpd", 0)], ABOUT)
    assert (tmp_path / "one/paper.html").read_bytes() == (tmp_path / "two/paper.html").read_bytes()


def test_an_infinite_number_is_refused_before_anything_is_written(tmp_path):
    bad = result("pendulum", "sgpd", 0)
    with pytest.raises(ValueError, match="JSON"):
        write_page(tmp_path, [Result(bad.row | {"l2": float("inf")}, bad.curves)], ABOUT)
    assert not (tmp_path / "results.json").exists()
