"""The page in a real browser: every plot is drawn, every button works, nothing leaves the page."""

import shutil

import pytest

from sgpd.report import write_report
from tests.guesses import guessed, oscillators
from tests.report.conftest import ABOUT, CHECKS

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt install chromium")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def address(written) -> str:
    return written.as_uri()


@pytest.fixture
def opened(browser, address):
    """A function that opens the page, drawn; at the end nothing may have been complained about or fetched."""
    said, fetched, contexts = [], [], []

    def opened(width=1100, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": 800}, **options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: fetched.append(request.url))
        page.goto(address)
        page.wait_for_selector("html[data-drawn]", timeout=120_000)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in fetched if not url.startswith("data:")] == [address] * len(contexts)


def drawn(page) -> list[str]:
    """The plots that are drawn and seen, with their printed twins hidden."""
    return page.evaluate(
        """() => [...document.querySelectorAll(".plot:not([hidden])")].filter((plot) =>
            plot.querySelector(".live .main-svg")?.getBoundingClientRect().height > 100
            && getComputedStyle(plot.querySelector(".static")).display === "none").map((plot) => plot.children[0].id)"""
    )


def traces(page, plot: str, group: str) -> list[bool]:
    return page.evaluate(
        f"""() => document.getElementById("{plot}").data.filter((t) => t.meta === "{group}").map((t) => t.visible)"""
    )


def test_every_plot_is_drawn_and_not_only_its_printed_twin(opened):
    page = opened()
    assert len(drawn(page)) == page.locator(".plot:not([hidden])").count() == 9
    assert "PASS" in page.locator(".questions").inner_text()


def test_each_toggle_shows_and_hides_what_it_names(opened):
    page = opened()
    buttons = page.locator(".toggle")
    assert buttons.count() == 5
    for k in range(buttons.count()):
        button = buttons.nth(k)
        plot = button.locator("xpath=ancestor::figure").locator(".live").first.get_attribute("id")
        group = button.get_attribute("data-group")
        state = lambda plot=plot, group=group: (
            page.evaluate(f'document.getElementById("{plot}").layout.yaxis.autorange === true')
            if group == "free scale"
            else all(traces(page, plot, group))
        )
        assert button.get_attribute("aria-pressed") == "false"
        assert not state()
        button.press("Enter")
        page.wait_for_timeout(300)
        assert button.get_attribute("aria-pressed") == "true"
        assert state()
        button.click()
        page.wait_for_timeout(300)
        assert not state()
    assert traces(page, "plot-forecast-0", "single paths")


def test_the_theme_follows_the_system_until_the_button_is_pressed_and_plots_follow_it(opened):
    ink = 'document.getElementById("plot-forecast-0").layout.font.color'
    paper = "getComputedStyle(document.body).backgroundColor"
    light, dark = opened(), opened(color_scheme="dark")
    assert light.evaluate(paper) == "rgb(255, 255, 255)"
    assert dark.evaluate(paper) == "rgb(20, 23, 26)"
    assert light.evaluate(ink) != dark.evaluate(ink)
    light.click("#theme")
    light.wait_for_timeout(1500)
    assert light.evaluate(paper) == "rgb(20, 23, 26)"
    assert light.evaluate(ink) == dark.evaluate(ink)
    assert light.get_attribute("#theme", "aria-pressed") == "true"
    dark.click("#theme")
    assert dark.evaluate(paper) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_scrolls_sideways_on_a_phone(opened, width):
    page = opened(width, is_mobile=True, has_touch=True)
    page.evaluate('document.querySelectorAll("details").forEach((d) => { d.open = true; })')
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(drawn(page)) == 9


def test_on_paper_the_printed_twins_stand_in_for_the_plots_and_folded_text_is_open(opened):
    page = opened(color_scheme="dark")
    page.emulate_media(media="print")
    page.evaluate('window.dispatchEvent(new Event("beforeprint"))')
    shown = (
        """(what) => [...document.querySelectorAll(what)].filter((e) => e.getBoundingClientRect().height > 0).length"""
    )
    assert page.evaluate(shown, ".static") == 9
    assert page.evaluate(shown, ".live") == 0
    assert page.evaluate(shown, "button") == 0
    assert page.evaluate(shown, "details dl") == page.locator("details").count()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_without_scripts_the_page_shows_the_printed_twins(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator(".static").count() == sum(box is not None and box["height"] > 100 for box in (
        page.locator(".static").nth(k).bounding_box() for k in range(page.locator(".static").count())
    ))  # fmt: skip
    context.close()


def test_a_menu_changes_the_plot(browser, tmp_path):
    """Four coordinates: two planes to choose from."""
    data = oscillators(4)
    model = guessed(data, "separable")
    path = write_report(tmp_path / "r.html", model, data, CHECKS, ABOUT)
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn]", timeout=120_000)
    assert "plot-portrait-0" in drawn(page)
    page.select_option("#figure-portrait select", "1")
    page.wait_for_timeout(1000)
    assert "plot-portrait-1" in drawn(page)
    assert "plot-portrait-0" not in drawn(page)
    page.close()
