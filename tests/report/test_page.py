"""One page, whole by itself, in a fixed order, for every structure and whatever the recording looks like."""

import base64
import dataclasses
import hashlib
import json
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest

import sgpd
from sgpd.errors import NumericalFailure, Outcome, SgpdWarning
from sgpd.judging.learned import learned
from sgpd.report import About, write_report
from sgpd.report.material import gather, paths_of
from sgpd.report.page import SECTIONS, render
from sgpd.report.sections.learned import learned_section
from tests.guesses import guessed
from tests.report.conftest import ABOUT, CHECKS, with_stored_draws

TITLES = [
    "Forecast",
    "What was learned",
    "Phase portrait",
    "Conservation",
    "Residuals",
    "Calibration",
    "Every check",
    "Data, run, problems",
]
LIMIT = 8_000_000


class Outline(HTMLParser):
    """What a page holds: headings, attributes that fetch, alternative texts, ids; and whether its tags are closed."""

    VOID = frozenset({"meta", "img"})

    def __init__(self, page: str):
        super().__init__()
        self.headings, self.fetched, self.alts, self.ids, self.links, self.open = [], [], [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        self.fetched += [found[name] for name in ("src", "data", "poster") if name in found]
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found["href"]] if "href" in found else []
        self.alts += [found["alt"]] if tag == "img" else []
        self.headings += [(tag, "")] if re.fullmatch("h[1-6]", tag) else []

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if any(re.fullmatch("h[1-6]", tag) for tag in self.open):
            tag, words = self.headings[-1]
            self.headings[-1] = (tag, words + data)


def page_of(case, about=ABOUT) -> str:
    return render(gather(case.model, case.data, CHECKS, about, case.held_out))


@pytest.fixture(scope="module")
def page(written) -> str:
    return written.read_text(encoding="utf-8")


def content_of(page: str) -> dict:
    return json.loads(re.search(r'id="plots">(.*?)</script>', page, re.DOTALL).group(1))


def plots_of(page: str) -> dict:
    return content_of(page)["plots"]


def test_the_page_of_every_structure_is_whole(case):
    page = page_of(case)
    outline = Outline(page)
    assert outline.open == []
    numbered = [words.split(". ", 1) for tag, words in outline.headings if tag == "h2" and re.match(r"\d+\. ", words)]
    assert [number for number, _ in numbered] == [str(k) for k in range(1, len(SECTIONS) + 1)]
    assert [title for _, title in numbered if title in TITLES] == TITLES
    assert all(source.startswith("data:") for source in outline.fetched)
    assert all(link.startswith("#") and link[1:] in outline.ids for link in outline.links)
    assert len(outline.ids) == len(set(outline.ids))
    assert all(len(alt) > 20 and "nan" not in alt for alt in outline.alts)
    assert len(page.encode()) < LIMIT
    potentials = getattr(case.model.mean(), "energy", None) is not None
    assert ("beside each process a parabola" in page) == potentials
    plots = plots_of(page)
    assert len(outline.alts) == len(plots) >= 4
    for plot in plots.values():
        assert plot["traces"]
        assert {trace["panel"] for trace in plot["traces"]} == set(range(len(plot["panels"])))


def test_the_default_fit_with_held_out_rows_shows_every_figure(page):
    plots = plots_of(page)
    names = {name.split("-")[1] for name in plots}
    assert names == {
        "forecast",
        "learned",
        "portrait",
        "energy",
        "steps",
        "recorded",
        "residuals",
        "calibration",
        "history",
    }
    labels = {trace["name"] for trace in plots["plot-forecast-0"]["traces"]}
    assert {"recorded", "held out", "smoothed", "forecast", "50 % band", "95 % band"} <= labels


def test_every_drawn_value_is_a_number_and_no_line_has_more_points_than_allowed(page):
    arrays = content_of(page)["arrays"]
    for plot in plots_of(page).values():
        for trace in plot["traces"]:
            packed = arrays[trace["y"]]
            values = np.frombuffer(base64.b64decode(packed["bdata"]), "<" + packed["dtype"])
            finite = np.isfinite(values)
            assert finite.any()
            assert finite.all() or trace["mode"] == "lines+markers"  # arrows are parted by NaN
            assert len(values) <= 2 * 2000


def page_full_of(words: str, case) -> str:
    """The page where every name and every text from outside are these words."""
    about = About(words, words, ((words, words),), ((words, words),), {words: words}, problems=(words,))
    names = (words, "q")
    model = dataclasses.replace(case.model, names=names)
    data = dataclasses.replace(case.data, names=names, run_names=(words,))
    return render(gather(model, data, CHECKS, about))


def test_texts_from_outside_are_escaped(pendulum):
    page = page_full_of('</script><script>alert("x")</script>', pendulum)
    assert "alert(" in page
    assert '<script>alert("x")' not in page
    assert page.count("<script") == 3
    assert Outline(page).open == []


@pytest.mark.parametrize("words", ["{{ 7*7 }}", "{% raw %}{# q", "{% endraw %}\"'&amp;<b>"])
def test_what_means_something_to_templates_or_attributes_stays_what_was_written(pendulum, words):
    outline = Outline(page_full_of(words, pendulum))
    assert outline.open == []
    assert ("h1", words) in outline.headings
    assert any(words in alt for alt in outline.alts)


def test_only_the_pages_own_scripts_may_run_and_nothing_may_be_fetched(page):
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page).group(1)
    assert policy.startswith("default-src 'none'")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    hashes = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts}
    assert set(re.findall(r"'sha256-([^']+)'", policy)) == hashes


def test_the_same_report_is_the_same_file_and_nothing_else_is_left_behind(pendulum, written):
    again = write_report(
        written.with_name("again.html"), pendulum.model, pendulum.data, CHECKS, ABOUT, pendulum.held_out
    )
    assert again.read_bytes() == written.read_bytes()
    assert {path.name for path in written.parent.iterdir()} == {"again.html", "report.html"}


def test_problems_stand_on_the_page_and_their_absence_is_said(pendulum, page):
    assert "Problems: none." in page
    troubled = page_of(pendulum, dataclasses.replace(ABOUT, problems=("The moon was full.",)))
    assert "The moon was full." in troubled
    assert "Problems: none." not in troubled


def test_without_held_out_rows_calibration_says_how_to_get_it(pendulum):
    page = page_of(dataclasses.replace(pendulum, held_out=None))
    assert "--holdout 20%" in page
    assert "plot-calibration-0" not in page


def test_no_more_paths_are_drawn_than_a_posterior_stores(pendulum):
    """Asking for more would repeat draws, with a warning, which is an error here."""
    model = with_stored_draws(pendulum.model, 6)
    assert paths_of(model) == 5
    page = page_of(dataclasses.replace(pendulum, model=model))
    assert "5 draws by randomise-then-optimise" in page
    weighed = dataclasses.replace(pendulum, model=with_stored_draws(pendulum.model, 6, "weighed"))
    assert "5 draws of it, resampled by importance weights" in page_of(weighed)


def test_paths_that_fail_are_counted_among_the_problems_and_left_out(pendulum, monkeypatch):
    smooth = type(pendulum.model).smooth

    def failing(self, **options):
        warnings.warn("1 of 8 paths failed.", SgpdWarning, stacklevel=2)
        return smooth(self, **options)

    monkeypatch.setattr(type(pendulum.model), "smooth", failing)
    assert "1 of 8 paths failed." in page_of(pendulum)


def test_a_run_without_any_finite_path_has_a_box_and_a_problem_instead_of_figures(pendulum, monkeypatch):
    def failing(self, **options):
        raise NumericalFailure(Outcome.NOT_FINITE)

    monkeypatch.setattr(type(pendulum.model), "predict", failing)
    page = page_of(pendulum)
    assert "no path stayed finite, so it is not shown" in page
    assert "plot-forecast-0" not in page
    assert "plot-learned-0" in page
    assert page.count("<section aria-labelledby=") == len(SECTIONS)


def test_what_was_learned_has_the_numbers_of_the_command_line_whatever_the_seed_and_no_point_of_a_grid(pendulum):
    """They come with standard deviations over draws, so that other draws would give other digits."""
    about = dataclasses.replace(ABOUT, seed=3)
    material = gather(pendulum.model, pendulum.data, CHECKS, about, pendulum.held_out)
    section = learned_section(material)
    numbers = str(learned(pendulum.model))  # what the command line prints
    figure, table = section.blocks
    shown = [value for _, value in table.rows[:3]]
    assert shown == [part.split(" = ")[-1].split("period ")[-1] for part in numbers.split(", ")]
    assert "lowest" not in figure.caption
    assert f"The equilibrium is q = {shown[1]}, p = {shown[0]}" in figure.caption


def test_runs_that_were_held_out_whole_are_shown():
    rng, d = np.random.default_rng(0), 2
    times = 0.1 * np.arange(20)
    states = [np.cos(times[:, None] + np.arange(d) + k) + 0.05 * rng.normal(size=(20, d)) for k in range(5)]
    data, held, _ = sgpd.data.hold_out(sgpd.Trajectories.from_arrays([times] * 5, states), 0.2)
    model = guessed(data, "free")
    judged = sgpd.judging.judge_held_out(model, held, paths=4)
    material = gather(model, data, CHECKS, ABOUT, judged)
    assert [view.name for view in material.views if view.fitted is None] == list(held.run_names)
    assert "held out" in render(material)
